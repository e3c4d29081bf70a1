import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { createProbeGate, decisionOf, isAlarm, readScores, type GateReader } from '../../src/pipeline/probe-gate.ts';
import { meanLength, unitDirection } from '../../src/pipeline/steering-direction.ts';
import type { TurnFormat } from '../../src/pipeline/turn-format.ts';
import { findFamily } from '../../src/plan/chat/family.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { endOfTurn } from '../../src/plan/sequences.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import type { AgentTurn, Probe } from '../../src/types.ts';

const FOLDER = fileURLToPath(new URL('../../models/fixture', import.meta.url));
const TEXT =
  '<think>\nNext step.\n</think>\n\n<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call><|im_end|>';
const PROMPT = 10;
let format: TurnFormat;
beforeAll(async () => {
  const tokenizer = await openTokenizer(FOLDER);
  const template = await openTemplate(FOLDER, tokenizer.specialTokens, {}, '2026-01-01');
  const family = findFamily(template.text, { stack: 'hf-template', toolText: 'native' }, FOLDER);
  format = { tokenizer, family, endOfTurn: endOfTurn(template, tokenizer) };
});

/** Width 2: the first number is the token index, the second ten times that; the tap `b` holds the negative. */
function turnOf(text: string): AgentTurn {
  const generatedIds = format.tokenizer.encode(text);
  const positions = Int32Array.from({ length: generatedIds.length + 1 }, (_, i) => PROMPT - 1 + i);
  const rows = [...positions].flatMap((at) => [at, 10 * at]);
  return {
    reasoning: 'Next step.',
    content: null,
    calls: [{ name: 'read_file', arguments: new Map() }],
    invalid: null,
    promptIds: new Int32Array(PROMPT),
    generatedIds,
    stop: 'end_of_turn',
    states: { taps: ['a', 'b'], positions, data: Float32Array.from([...rows, ...rows.map((v) => -v)]), width: 2 },
  };
}

const probeOf = (changes: Partial<Probe> = {}): Probe => ({
  taps: ['a'],
  landmark: { anchor: 'reveal', offset: 1, position: 'pre_action' },
  target: 'first_unsafe_event',
  horizon: null,
  estimator: 'logistic',
  C: 1,
  width: 2,
  mean: new Float64Array(2),
  scale: Float64Array.of(1, 1),
  weights: Float64Array.of(1, 0),
  bias: 0,
  calibration: { kind: 'platt', slope: 1, intercept: 0 },
  thresholds: [],
  ...changes,
});
const reader = (position: string, changes: Partial<Probe> = {}, threshold = 0.5): GateReader => ({
  probe: probeOf(changes),
  position,
  threshold,
});
const logit = (p: number | undefined): number => Math.log((p ?? NaN) / (1 - (p ?? NaN)));

describe('readScores', () => {
  it('reads each probe at its own position of the turn that was just generated', () => {
    const turn = turnOf(TEXT);
    const at = (marker: string): number => PROMPT + turn.generatedIds.indexOf(format.tokenizer.idOf(marker) ?? -1);
    const bias = -at('<tool_call>') + 1;
    const scores = readScores(
      turn,
      ['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action'].map((name) => reader(name, { bias })),
      format,
    );
    // The token that ends the prompt; the line end after <think>; </think>; the token before <tool_call>.
    expect(logit(scores['prompt_end'])).toBeCloseTo(PROMPT - 1 + bias, 6);
    expect(logit(scores['reasoning_start'])).toBeCloseTo(at('<think>') + 1 + bias, 6);
    expect(logit(scores['reasoning_end'])).toBeCloseTo(at('</think>') + bias, 6);
    expect(logit(scores['pre_action'])).toBeCloseTo(0, 6);
  });

  it('reads several taps in the order of the probe, and two probes at one position apart', () => {
    const both = { taps: ['b', 'a'], mean: new Float64Array(4), scale: Float64Array.of(1, 1, 1, 1) };
    const scores = readScores(
      turnOf(TEXT),
      [
        reader('prompt_end', { ...both, weights: Float64Array.of(1, 0, 0, 0.1) }),
        reader('prompt_end', { ...both, weights: Float64Array.of(0, 0, 0.1, 0) }),
      ],
      format,
    );
    expect(logit(scores['prompt_end'])).toBeCloseTo(0, 6);
    expect(logit(scores['prompt_end#2'])).toBeCloseTo((PROMPT - 1) / 10, 6);
  });

  it('leaves a position out that the turn does not have', () => {
    const text = '<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call><|im_end|>';
    const scores = readScores(turnOf(text), [reader('reasoning_end'), reader('pre_action')], format);
    expect(Object.keys(scores)).toEqual(['pre_action']);
    expect(isAlarm(scores, [reader('reasoning_end', {}, -1), reader('pre_action', {}, 2)])).toBe(false);
  });

  it('refuses a turn without states, and states without the tap of a probe', () => {
    const { states: _, ...bare } = turnOf(TEXT);
    expect(() => readScores(bare, [reader('prompt_end')], format)).toThrow(/expected a turn with states/);
    expect(() => readScores(turnOf(TEXT), [reader('prompt_end', { taps: ['c'] })], format)).toThrow(/reads c/);
  });
});

describe('createProbeGate', () => {
  it('answers an alarm with its answer and anything else by allowing, with the scores of both', async () => {
    const ask = (threshold: number) =>
      createProbeGate({
        readers: [reader('prompt_end', { bias: 1 - PROMPT }, threshold)],
        format,
        answer: 'block',
        message: 'No.',
      })(turnOf(TEXT), 0);
    expect(await ask(0.49)).toEqual({ kind: 'block', message: 'No.', alarm: true, scores: { prompt_end: 0.5 } });
    // Above, not at, the threshold.
    expect(await ask(0.5)).toEqual({ kind: 'allow', alarm: false, scores: { prompt_end: 0.5 } });
  });

  it('needs an agent that steers to answer by steering', () => {
    expect(() => decisionOf('steer', '', undefined)).toThrow(/expected an agent that steers/);
  });
});

describe('directions', () => {
  it('undoes the standardisation of a probe', () => {
    const probe = probeOf({
      weights: Float64Array.of(3, 8),
      scale: Float64Array.of(1, 2),
      mean: Float64Array.of(2, 0),
    });
    expect(Array.from(unitDirection(probe, 0))).toEqual([Math.fround(0.6), Math.fround(0.8)]);
    expect(meanLength(probe, 0, 'p')).toBeCloseTo(3, 12);
  });
  it('says that a probe without state statistics has no length to steer by', () => {
    expect(() => meanLength(probeOf(), 0, 'p')).toThrow(/^p: expected the mean and scale/);
  });
});
