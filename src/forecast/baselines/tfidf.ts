/**
 * TF-IDF of texts, with document frequencies of the training rows only.
 *
 * Texts are counted once (`countTerms`); `tfidf` then turns the counts into sparse rows for one training set:
 * tf = 1 + ln(count), idf = ln((1 + n) / (1 + df)) + 1 over the n training rows, terms with df < minDf dropped, rows
 * scaled to length 1. These are scikit-learn's TfidfVectorizer(sublinear_tf=True, smooth_idf=True, norm='l2').
 */
import type { CsrMatrix } from '../../math/sparse.ts';

/** Texts as term counts: row i has terms[start[i] … start[i+1]) ascending, each with its count. */
export interface TermCounts {
  readonly start: Int32Array;
  readonly terms: Int32Array;
  readonly counts: Float32Array;
  readonly vocabulary: readonly string[];
}

export type Analyzer = (text: string) => Iterable<string>;

/** Words are runs of letters, digits and underscores, lower-cased; single characters count, since an hour may be one. */
const WORD = /[\p{L}\p{N}_]+/gu;

/** Words and pairs of neighbouring words. */
export function* wordPairs(text: string): Generator<string> {
  let previous: string | null = null;
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    yield word;
    if (previous !== null) yield `${previous} ${word}`;
    previous = word;
  }
}

/** Runs of 3 to 5 characters inside words, with a space at either end (scikit-learn's char_wb). */
export function* characterRuns(text: string): Generator<string> {
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    const padded = Array.from(` ${word} `);
    for (let size = 3; size <= 5; size += 1) {
      if (padded.length <= size) {
        yield padded.join('');
        break;
      }
      for (let i = 0; i + size <= padded.length; i += 1) yield padded.slice(i, i + size).join('');
    }
  }
}

/**
 * Terms that stand in fewer than `minDf` of all texts are dropped at once: no subset of the rows could bring them back,
 * so nothing about the test rows enters.
 */
export function countTerms(texts: readonly string[], analyzer: Analyzer, minDf: number): TermCounts {
  const ids = new Map<string, number>();
  const documents: number[] = [];
  const perRow: { terms: Int32Array; counts: Float32Array }[] = [];
  for (const text of texts) {
    const counts = new Map<number, number>();
    for (const term of analyzer(text)) {
      let id = ids.get(term);
      if (id === undefined) {
        id = ids.size;
        ids.set(term, id);
        documents.push(0);
      }
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    for (const id of counts.keys()) documents[id] += 1;
    const terms = Int32Array.from(counts.keys());
    perRow.push({ terms, counts: Float32Array.from(counts.values()) });
  }
  const kept = new Int32Array(ids.size).fill(-1);
  const vocabulary: string[] = [];
  for (const [term, id] of ids) {
    if (documents[id] < minDf) continue;
    kept[id] = vocabulary.length;
    vocabulary.push(term);
  }
  const rows = perRow.map(({ terms, counts }) =>
    Array.from(terms, (id, k) => [kept[id], counts[k]] as const)
      .filter(([id]) => id >= 0)
      .sort((a, b) => a[0] - b[0]),
  );
  const start = new Int32Array(rows.length + 1);
  rows.forEach((row, i) => (start[i + 1] = start[i] + row.length));
  const terms = new Int32Array(start.at(-1)!);
  const counts = new Float32Array(start.at(-1)!);
  rows.forEach((row, i) =>
    row.forEach(([id, count], k) => {
      terms[start[i] + k] = id;
      counts[start[i] + k] = count;
    }),
  );
  return { start, terms, counts, vocabulary };
}

/** Sparse rows for all texts, weighted by the frequencies among `training` (row indices). Columns are renumbered. */
export function tfidf(counted: TermCounts, training: Int32Array, minDf: number): CsrMatrix {
  const { start, terms, counts } = counted;
  const df = new Int32Array(counted.vocabulary.length);
  for (const row of training) for (let k = start[row]; k < start[row + 1]; k += 1) df[terms[k]] += 1;
  const column = new Int32Array(df.length).fill(-1);
  let columns = 0;
  for (let term = 0; term < df.length; term += 1) {
    if (df[term] < Math.max(1, minDf)) continue;
    column[term] = columns;
    columns += 1;
  }
  const rows = start.length - 1;
  const outStart = new Int32Array(rows + 1);
  const index = new Int32Array(terms.length);
  const value = new Float64Array(terms.length);
  let at = 0;
  for (let row = 0; row < rows; row += 1) {
    const first = at;
    let squares = 0;
    for (let k = start[row]; k < start[row + 1]; k += 1) {
      const to = column[terms[k]];
      if (to < 0) continue;
      const weight = (1 + Math.log(counts[k])) * (Math.log((1 + training.length) / (1 + df[terms[k]])) + 1);
      index[at] = to;
      value[at] = weight;
      squares += weight * weight;
      at += 1;
    }
    const length = Math.sqrt(squares) || 1;
    for (let k = first; k < at; k += 1) value[k] /= length;
    outStart[row + 1] = at;
  }
  return { rows, columns, indptr: outStart, indices: index.subarray(0, at), values: value.subarray(0, at) };
}
