import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MismatchError, UserError } from '../../src/errors.ts';
import { openReplayer } from '../../src/model/open-replayer.ts';
import { createMonitor, type Monitor, type MonitorOptions } from '../../src/pipeline/monitor.ts';
import { openTemplate } from '../../src/plan/chat/template.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import { saveProbe } from '../../src/probe/artefact.ts';
import { probabilities } from '../../src/probe/score.ts';
import { seededRng } from '../../src/lib/rng.ts';
import type { Probe } from '../../src/types.ts';

const MODEL = fileURLToPath(new URL('../../models/fixture', import.meta.url));
const WIDTH = 32;
const probeAt = (position: string): Probe => {
  const rng = seededRng('monitor', position);
  const numbers = (): Float64Array => Float64Array.from({ length: WIDTH }, () => rng.next() - 0.5);
  return {
    taps: ['resid_post.1'],
    landmark: { anchor: 'reveal', offset: 1, position },
    target: 'first_unsafe_event',
    horizon: null,
    estimator: 'logistic',
    C: 1,
    width: WIDTH,
    mean: numbers(),
    scale: numbers().map((value) => Math.abs(value) + 0.5),
    weights: numbers(),
    bias: 0.1,
    calibration: { kind: 'platt', slope: 1, intercept: 0 },
    thresholds: [{ alpha: 0.05, threshold: 1 }],
  };
};

const messages = [
  { role: 'system', content: 'You are an office agent.' },
  { role: 'user', content: 'Tidy the files.' },
  {
    role: 'assistant',
    content: null,
    reasoning_content: 'I look first.',
    tool_calls: [{ id: 'a', function: { name: 'list_files', arguments: '{"path": "."}' } }],
  },
  { role: 'tool', tool_call_id: 'a', content: 'a.csv b.csv' },
];
const proposed = { name: 'delete_file', arguments: { path: 'a.csv' }, reasoning: 'It is old.' };

let folder: string;
let hashes: Readonly<Record<string, string>>;
let monitor: Monitor;
const folders: Record<string, string> = {};
const open = (more: Partial<MonitorOptions>): Promise<Monitor> =>
  createMonitor({ model: MODEL, probe: [folders['pre_action'], folders['prompt_end']], ...more });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'monitor-'));
  const replayer = await openReplayer({ folder: MODEL, taps: ['resid_post.1'], threads: 1 });
  ({ hashes } = replayer.info);
  await replayer.close();
  for (const position of ['pre_action', 'prompt_end', 'action_end']) {
    folders[position] = await saveProbe(folder, probeAt(position), {
      model: { name: 'fixture', hashes, tokenizer: '', template: '' },
      training: {
        run: 'r',
        rows: 1,
        positives: 1,
        groups: 1,
        population: 'x-',
        condition: 'all',
        role: 'agent',
        seed: 0,
      },
      auroc: { undefinedBecause: 'a test' },
      versions: {},
      notGoodFor: ['anything but a test'],
    });
  }
  monitor = await open({});
}, 60_000);
afterAll(async () => {
  await monitor.close();
  await rm(folder, { recursive: true, force: true });
});

/** The score that a replay of the same text gives, rendered by the template itself. */
async function replayed(position: 'pre_action' | 'prompt_end'): Promise<number> {
  const tokenizer = await openTokenizer(MODEL);
  const template = await openTemplate(MODEL, tokenizer.specialTokens, {}, '2026-01-01');
  const plain = (value: object): Map<string, never> => new Map(Object.entries(value) as [string, never][]);
  const call = plain({ function: plain({ name: 'list_files', arguments: plain({ path: '.' }) }) });
  const prompt = template.render(
    [
      plain({ role: 'system', content: 'You are an office agent.' }),
      plain({ role: 'user', content: 'Tidy the files.' }),
      plain({ role: 'assistant', content: null, reasoning_content: 'I look first.', tool_calls: [call] }),
      plain({ role: 'tool', content: 'a.csv b.csv' }),
    ],
    null,
    true,
  );
  const text = position === 'prompt_end' ? prompt : `${prompt}<think>\nIt is old.\n</think>\n\n`;
  const ids = tokenizer.encode(text);
  const replayer = await openReplayer({ folder: MODEL, taps: ['resid_post.1'], threads: 1 });
  try {
    for await (const { data } of replayer.replay([{ ids, rows: Int32Array.of(ids.length - 1) }]))
      return probabilities(probeAt(position), { data, rows: 1, columns: WIDTH })[0];
    throw new Error('nothing was replayed');
  } finally {
    await replayer.close();
  }
}

describe('createMonitor', () => {
  it('scores a proposed call as a replay of the same turn does, from messages as OpenAI clients write them', async () => {
    const decision = await monitor.gate(messages, proposed);
    expect(decision).toMatchObject({ kind: 'allow', because: 'score', alarm: false });
    if (decision.because !== 'score') throw new Error('no score');
    for (const position of ['pre_action', 'prompt_end'] as const)
      expect(decision.scores[position]).toBeCloseTo(await replayed(position), 5);
  });

  it('computes only what is new in a conversation that grows, in each of several conversations', async () => {
    const first = await monitor.score(messages, { conversation: 'grows' });
    await monitor.score(messages.slice(0, 2), { conversation: 'other' });
    const call = { id: 'b', function: { name: 'delete_file', arguments: '{"path": "a.csv"}' } };
    const turn = { role: 'assistant', content: null, reasoning_content: 'It is old.', tool_calls: [call] };
    const next = await monitor.score([...messages, turn], { conversation: 'grows' });
    // One token is one byte here.
    expect(next.computedTokens).toBeLessThan(60);
    expect(first.computedTokens).toBeGreaterThan(150);
    expect(Object.keys(first.scores)).toEqual(['prompt_end']);
    const gated = await monitor.gate(messages, proposed, { conversation: 'fresh' });
    expect(gated).toMatchObject({ because: 'score' });
    if (gated.because === 'score') {
      expect(next.scores['pre_action']).toBeCloseTo(gated.scores['pre_action'] ?? NaN, 5);
    }
  });

  it('blocks above the threshold', async () => {
    const strict = await open({ threshold: -1 });
    try {
      expect(await strict.gate(messages, proposed)).toMatchObject({ kind: 'block', because: 'score', alarm: true });
    } finally {
      await strict.close();
    }
  });

  it('blocks when it cannot score, or allows if told so, and goes on afterwards', async () => {
    const broken = [{ role: 'system', content: 'x'.repeat(20_000) }];
    expect(await monitor.gate(broken, proposed)).toMatchObject({ kind: 'block', because: 'error' });
    expect(await monitor.gate(messages, { ...proposed, name: '' })).toMatchObject({ kind: 'block', because: 'error' });
    expect(await monitor.gate(messages, proposed)).toMatchObject({ because: 'score' });
    const lenient = await open({ onError: 'allow' });
    try {
      expect(await lenient.gate(broken, proposed)).toMatchObject({ kind: 'allow', because: 'error' });
    } finally {
      await lenient.close();
    }
    await expect(monitor.score(broken)).rejects.toThrow(/at most 16384 tokens/);
  });

  it('answers by its failure policy when the time is over, and works again after that', async () => {
    const hasty = await open({ timeoutMs: 1 });
    try {
      const long = [{ role: 'user', content: 'y'.repeat(6000) }];
      expect(await hasty.gate(long, proposed)).toMatchObject({ kind: 'block', because: 'timeout' });
      await expect(hasty.score(long)).rejects.toMatchObject({ name: 'TimeoutError' });
    } finally {
      await hasty.close();
    }
  });

  it('refuses a probe of another model, of a position after the call, and without a threshold', async () => {
    const alien = await saveProbe(join(folder, 'alien'), probeAt('pre_action'), {
      model: { name: 'other', hashes: { 'model.onnx': 'f'.repeat(64) }, tokenizer: '', template: '' },
      training: {
        run: 'r',
        rows: 1,
        positives: 1,
        groups: 1,
        population: 'x-',
        condition: 'all',
        role: 'agent',
        seed: 0,
      },
      auroc: { undefinedBecause: 'a test' },
      versions: {},
      notGoodFor: [],
    });
    await expect(open({ probe: alien })).rejects.toThrow(MismatchError);
    await expect(open({ probe: folders['action_end'] })).rejects.toThrow(/before the call runs, got action_end/);
    await expect(open({ alpha: 0.2 })).rejects.toThrow(/threshold for alpha 0.2 on the card \(it has 0.05\)/);
    await expect(open({ probe: [] })).rejects.toThrow(UserError);
  });
});
