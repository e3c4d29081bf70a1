import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Stretch } from '../../../src/plan/chat/emission.ts';
import type { Family } from '../../../src/plan/chat/family-type.ts';
import { dumpsPython } from '../../../src/plan/chat/python-json.ts';
import { generatedTurn } from '../../../src/plan/generated.ts';
import { promptMessages } from '../../../src/plan/chat/messages.ts';
import { observationMarks, observationTokens } from '../../../src/plan/observations.ts';
import type { TokenSpan } from '../../../src/plan/offsets.ts';
import { buildSequences } from '../../../src/plan/sequences.ts';
import type { Capture, Episode } from '../../../src/types.ts';
import { chatFixtures } from '../fixtures.ts';
import { chatSetup, goldenEpisode, goldenTemplate, goldenTokenizer, kwargsOf } from './golden-episode.ts';

interface Span {
  readonly src: 'generated' | 'next_prompt';
  readonly first: number;
  readonly last: number;
  readonly straddles_start: boolean;
  readonly straddles_end: boolean;
}

interface GoldenTurn {
  readonly generated: string;
  readonly prompt_ids: readonly number[];
  readonly generated_ids: readonly number[];
  readonly anchors: Readonly<Record<string, number | boolean>>;
  readonly spans: Readonly<Record<string, Span>>;
}

interface Golden {
  readonly id: string;
  readonly template: string;
  readonly tokenizer: string;
  readonly now: string;
  readonly context: string;
  readonly turns: readonly GoldenTurn[];
}

const goldens = readFileSync(join(chatFixtures(), 'positions.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Golden);

const suffix = (name: string, index: string): string => (index === '0' ? name : `${name}:${index}`);

/** Our name of a golden anchor (DESIGN.md section 2), what it counts against it, and whether it is only a flag. */
function anchorHere(
  name: string,
): { readonly position: string; readonly shift: number; readonly flag: boolean } | null {
  const [kind, index = ''] = name.split(':');
  switch (kind) {
    case 'last_prompt_token':
      return { position: 'prompt_end', shift: 0, flag: false };
    case 'end_of_reasoning':
      return { position: 'reasoning_end', shift: 0, flag: false };
    case 'before_end_of_reasoning':
      return { position: 'reasoning_end', shift: -1, flag: false };
    case 'pre_action':
      return { position: suffix('pre_action', index), shift: 0, flag: false };
    case 'call_open':
      return { position: suffix('pre_action', index), shift: 1, flag: false };
    case 'call_open_straddles':
      return { position: suffix('pre_action', index), shift: 0, flag: true };
    default:
      return null;
  }
}

const CALLS = 8;
const POSITIONS = [
  'prompt_end',
  'reasoning_end',
  'report_end',
  'observation_end',
  'span:reasoning',
  'span:report',
  ...Array.from({ length: CALLS }, (_, index) => [
    suffix('pre_action', String(index)),
    suffix('action_name', String(index)),
    suffix('action_end', String(index)),
  ]).flat(),
];

function checkAnchors(turn: GoldenTurn, ids: Int32Array, captures: readonly Capture[], index: number): string[] {
  const wrong: string[] = [];
  const own = new Map(captures.filter((item) => item.turn === index).map((item) => [item.position, item]));
  for (const [name, expected] of Object.entries(turn.anchors)) {
    if (name === 'end_of_turn') {
      if (ids.length - 1 !== expected) wrong.push(`${name}: ${ids.length - 1}, expected ${String(expected)}`);
      continue;
    }
    const here = anchorHere(name);
    if (here === null) {
      wrong.push(`${name}: an anchor this test does not know`);
      continue;
    }
    const found = own.get(here.position);
    const got = found === undefined ? undefined : here.flag ? found.straddles : found.start + here.shift;
    if (got !== expected) wrong.push(`${name}: ${String(got)}, expected ${String(expected)}`);
  }
  // The flag is listed only where it is true.
  for (const [position, capture] of own) {
    const match = /^pre_action(?::(\d+))?$/.exec(position);
    if (match && capture.straddles !== (turn.anchors[`call_open_straddles:${match[1] ?? '0'}`] === true))
      wrong.push(`${position} straddles: ${capture.straddles}`);
  }
  const captured: readonly (readonly [string, string])[] = [
    ['reasoning', 'span:reasoning'],
    ...Object.keys(turn.spans)
      .filter((name) => name.startsWith('tool_name:'))
      .map((name) => [name, suffix('action_name', name.split(':')[1])] as const),
  ];
  for (const [span, position] of captured) {
    const golden = turn.spans[span];
    const capture = own.get(position);
    if (golden !== undefined && (capture?.end !== golden.last + 1 || capture.straddles !== golden.straddles_end))
      wrong.push(`${position}: ends ${String(capture?.end)}, expected ${golden.last + 1}`);
  }
  const result = Object.keys(turn.spans)
    .filter((name) => name.startsWith('result:'))
    .at(-1);
  if (result !== undefined) {
    const capture = own.get('observation_end');
    if (capture?.start !== turn.spans[result].last || capture.straddles !== turn.spans[result].straddles_end)
      wrong.push(`observation_end: ${String(capture?.start)}, expected ${turn.spans[result].last}`);
  }
  return wrong;
}

const shown = (span: Span | TokenSpan | null | undefined, base: number): string => {
  if (span === null || span === undefined) return 'none';
  return 'last' in span
    ? `${span.first}-${span.last} ${span.straddles_start} ${span.straddles_end}`
    : `${span.first + base}-${span.end - 1 + base} ${span.straddlesStart} ${span.straddlesEnd}`;
};

describe('every golden id, position and straddles flag is met', () => {
  for (const template of new Set(goldens.map((item) => item.template))) {
    it(template, async () => {
      const wrong: string[] = [];
      const count = { episodes: 0, turns: 0, ids: 0, anchors: 0, spans: 0, straddling: 0, fromFields: 0 };
      for (const golden of goldens.filter((item) => item.template === template)) {
        const tokenizer = await goldenTokenizer(golden.tokenizer);
        const setup = chatSetup(tokenizer, goldenTemplate(template, golden.now, kwargsOf(golden.context)), POSITIONS);
        const logged = goldenEpisode(golden.context, golden.id);
        // Once from the fields alone, once from the raw completion that a log may hold.
        const raw: Episode = {
          ...logged,
          turns: logged.turns.map((turn) => ({ ...turn, completionText: golden.turns[turn.index].generated })),
        };
        count.episodes += 1;
        for (const episode of [logged, raw]) {
          const built = buildSequences(episode, setup);
          const captures = built.sequences.flatMap((sequence) => sequence.captures);
          for (const exclusion of built.exclusions) wrong.push(`${golden.id}: ${exclusion.detail}`);
          for (const [index, turn] of golden.turns.entries()) {
            const sequence = built.sequences[index];
            const at = `${golden.id} turn ${index}${episode === raw ? ' (completion text)' : ''}`;
            const prompt = sequence.ids.slice(0, sequence.promptLength);
            if (String(prompt) !== String(turn.prompt_ids)) wrong.push(`${at}: prompt ids differ`);
            const messages = promptMessages(episode, index, {
              toolText: 'native',
              historyReasoning: 'template',
              reasoningField: setup.family.reasoningField,
            });
            const tools = episode.tools.length > 0 ? episode.tools : null;
            const text = setup.template.render(messages, tools, true);
            const written = setup.family.write(episode.turns[index], { prompt: text, endOfTurn: setup.endOfTurn });
            // Arguments that the model spelled otherwise than json.dumps (spacing, 1E5) can only be had from the raw text.
            if (episode === logged && written.text !== turn.generated) {
              if (said(setup.family, written.text, text) !== said(setup.family, turn.generated, text))
                wrong.push(`${at}: writes ${JSON.stringify(written.text)}, expected ${JSON.stringify(turn.generated)}`);
              continue;
            }
            if (episode === logged) count.fromFields += 1;
            else {
              count.turns += 1;
              count.ids += sequence.ids.length;
              count.anchors += Object.keys(turn.anchors).length;
              count.spans += Object.keys(turn.spans).length;
              count.straddling += Object.values(turn.spans).filter((span) => span.straddles_end).length;
            }
            if (String(sequence.ids.slice(sequence.promptLength)) !== String(turn.generated_ids))
              wrong.push(`${at}: generated ids differ`);
            wrong.push(...checkAnchors(turn, sequence.ids, captures, index).map((line) => `${at}: ${line}`));
            const { tokens } = generatedTurn(episode.turns[index], written, text, setup);
            const next = index + 1 < golden.turns.length ? nextResults(episode, index, tokens.calls.length, setup) : [];
            for (const [name, span] of Object.entries(turn.spans)) {
              const [kind, number = '0'] = name.split(':');
              const call = tokens.calls[Number(number)];
              const found =
                kind === 'reasoning'
                  ? tokens.reasoning
                  : kind === 'content'
                    ? tokens.content
                    : kind === 'tool_name'
                      ? call?.name
                      : kind === 'arguments'
                        ? call?.args
                        : kind === 'result'
                          ? next[Number(number)]
                          : undefined;
              const got = shown(found, span.src === 'generated' ? sequence.promptLength : 0);
              if (got !== shown(span, 0)) wrong.push(`${at}: ${name}: ${got}, expected ${shown(span, 0)}`);
            }
          }
        }
      }
      console.log(
        `${template}: ${Object.entries(count)
          .map(([name, value]) => `${value} ${name}`)
          .join(', ')}`,
      );
      expect({ count: wrong.length, first: wrong.slice(0, 20) }).toEqual({ count: 0, first: [] });
      expect(count.turns).toBeGreaterThan(0);
    });
  }
});

/** Fields of a generated text, however its JSON is spelled. */
function said(family: Family, text: string, prompt: string): string {
  const { emission, calls } = family.read(text, { prompt });
  const part = (stretch: Stretch | null): string => (stretch === null ? '' : text.slice(stretch.start, stretch.end));
  const spelled = calls.map(({ name, arguments: args }) => `${name} ${dumpsPython(args)}`);
  return JSON.stringify([part(emission.reasoning), part(emission.content), spelled]);
}

function nextResults(
  episode: Episode,
  turn: number,
  calls: number,
  setup: ReturnType<typeof chatSetup>,
): (TokenSpan | null)[] {
  const messages = promptMessages(episode, turn + 1, {
    toolText: 'native',
    historyReasoning: 'template',
    reasoningField: setup.family.reasoningField,
  });
  const tools = episode.tools.length > 0 ? episode.tools : null;
  const render = (items: typeof messages): string => setup.template.render(items, tools, true);
  const text = render(messages);
  const marks = observationMarks(messages, episode, turn, calls, 'native');
  return observationTokens(
    setup.tokenizer,
    { messages, text, ids: setup.tokenizer.encode(text), render: (items) => render([...items]) },
    marks,
  );
}
