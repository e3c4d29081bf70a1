/** Text readers: TF-IDF of what stood before the position, and logistic regression (EVALUATION.md 12). */
import type { Candidate, ForecastInput, TextScope } from '../types.ts';
import { hasText } from '../positions.ts';
import { keysOf, type LandmarkData, type Reader } from '../readers.ts';
import { searchRows } from '../search.ts';
import { prepareText } from './text-fit.ts';
import { type Analyzer, characterRuns, countTerms, wordPairs } from './tfidf.ts';

/** Terms of fewer training texts than this are dropped. */
const MIN_DF = 2;

const ANALYZERS: Readonly<Record<'words' | 'characters', Analyzer>> = { words: wordPairs, characters: characterRuns };

/** `text:so_far` for words, `text:so_far:characters` for character runs. */
export function textReaderName(scope: TextScope, analyzer: 'words' | 'characters'): string {
  return analyzer === 'words' ? `text:${scope}` : `text:${scope}:${analyzer}`;
}

/** One reader per scope and analyzer at each position; none at positions whose text is not known. */
export async function textReaders(input: ForecastInput, data: LandmarkData): Promise<readonly Reader[]> {
  const { texts: readTexts, textScopes, textCs, textAnalyzers } = input;
  if (readTexts === null) return [];
  const readers: Reader[] = [];
  for (const { position, exists, atRisk } of data.landmark.positions) {
    if (!hasText(position)) continue;
    const { keys, matrixRow } = keysOf(data.landmark, position, exists);
    for (const scope of textScopes) {
      input.progress?.note(`${data.landmark.landmark}: ${position}, text ${scope}`);
      const texts = await readTexts(keys, scope);
      if (texts.length !== keys.length) {
        throw new Error(`texts(${scope}): expected ${keys.length} texts, got ${texts.length}`);
      }
      for (const analyzer of textAnalyzers) {
        const name = textReaderName(scope, analyzer);
        const counted = countTerms(texts, ANALYZERS[analyzer], MIN_DF);
        const candidates = textCs.map((C): Candidate => ({ tap: name, position, estimator: 'tfidf_logistic', C }));
        const scores = searchRows(
          candidates,
          atRisk,
          exists,
          data.sides,
          prepareText(counted, matrixRow, textCs, MIN_DF),
        );
        readers.push({ name, tap: null, position, atRisk, scores });
      }
    }
  }
  return readers;
}
