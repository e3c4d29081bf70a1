import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadMapping } from '../../src/config/mapping.ts';
import { readEpisodes } from '../../src/dataset/read.ts';
import { MismatchError } from '../../src/errors.ts';
import { openChat } from '../../src/pipeline/chat-setup.ts';
import type { PipelineContext } from '../../src/pipeline/context.ts';
import { formatPlan } from '../../src/pipeline/plan-summary.ts';
import { run, type RunResult } from '../../src/pipeline/run.ts';
import { buildSequences } from '../../src/plan/sequences.ts';
import type { ReplaySettings } from '../../src/plan/settings.ts';
import { openTokenizer } from '../../src/plan/tokenizer.ts';
import { inventEpisodes, writeInvented } from '../fakes/invented-episodes.ts';
import { writeTinyModel } from '../fakes/tiny-model.ts';

/** Logs of invented episodes as a server would write them, whose prompts were made with settings of our choice. */

const root = mkdtempSync(join(tmpdir(), 'forewarn-verification-'));
const model = join(root, 'model');
const fixture = fileURLToPath(new URL('../../mappings/fixture.yaml', import.meta.url));
const notes: string[] = [];
const context: PipelineContext = {
  clock: { now: () => 0, date: () => new Date(0) },
  progress: { start() {}, advance() {}, note: (line) => notes.push(line), end() {} },
  signal: new AbortController().signal,
};

/** Thinks by default and prints the date, so that its variables and its clock matter. */
const TEMPLATE = `{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{{- '<|im_start|>system\\n' + strftime_now('%Y-%m-%d') + '\\n' }}
{%- if tools %}{% for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}{% endif %}{{- '<|im_end|>\\n' }}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content and (loop.index0 > ns.last or preserve_thinking) %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content or '' }}
{%- for call in m.tool_calls or [] %}{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}`;

const DEFAULTS: ReplaySettings = {
  stack: 'hf-template',
  toolText: 'native',
  historyReasoning: 'template',
  templateKwargs: {},
  date: '2026-01-01',
  tools: 'column',
  context: { limit: null, policy: 'error' },
};

interface LoggedTurn {
  readonly promptIds: readonly number[];
  readonly generated: number;
  readonly positions: Readonly<Record<string, number>>;
}

/** What a server with these settings would have logged, by episode and turn. */
async function serve(settings: Partial<ReplaySettings>): Promise<Map<string, LoggedTurn[]>> {
  const tokenizer = await openTokenizer(model);
  const chat = await openChat({
    folder: model,
    tokenizer,
    settings: { ...DEFAULTS, ...settings },
    contextLimit: null,
    positions: [],
    pooling: 'none',
    recordedBy: () => ({ origin: 'sequence', from: 0 }),
  });
  const source = {
    episodes: [join(root, 'data', 'episodes.jsonl')],
    scenarios: [join(root, 'data', 'scenarios.jsonl')],
    reportLabels: null,
    tools: null,
  };
  const logs = new Map<string, LoggedTurn[]>();
  const options = { where: {}, maxBad: 0, onExclusion: () => undefined, onWarning: () => undefined };
  for await (const episode of readEpisodes(source, await loadMapping(fixture), options)) {
    const { facts } = buildSequences(episode, chat);
    logs.set(
      episode.episodeId,
      facts.map(({ ids, promptLength, positions }) => ({
        promptIds: Array.from(ids.subarray(0, promptLength)),
        generated: ids.length - promptLength,
        positions: Object.fromEntries(
          ['prompt_end', 'pre_action'].flatMap((name) => {
            const at = positions.get(name);
            return at === undefined ? [] : [[name, at]];
          }),
        ),
      })),
    );
  }
  return logs;
}

/** Writes the episodes with further keys in every event. */
function writeLog(
  folder: string,
  logs: Map<string, LoggedTurn[]>,
  keys: (turn: LoggedTurn, index: number, episode: string) => object,
): void {
  const { episodes } = inventEpisodes(2, 3);
  const lines = episodes.map((row) => {
    const id = String(row['episode_id']);
    const events = (JSON.parse(String(row['events_json'])) as object[]).map((event, index) => {
      const turn = logs.get(id)?.[index];
      return turn === undefined ? event : { ...event, ...keys(turn, index, id) };
    });
    return JSON.stringify({ ...row, events_json: JSON.stringify(events) });
  });
  writeFileSync(join(root, 'data', `${folder}.jsonl`), `${lines.join('\n')}\n`);
}

let number = 0;
function plan(log: string, replay = '', mapping = fixture): Promise<RunResult> {
  number += 1;
  const path = join(root, `config-${number}.yaml`);
  writeFileSync(
    path,
    `name: verification
dataset: { episodes: data/${log}.jsonl, scenarios: data/scenarios.jsonl, mapping: ${mapping} }
model: { folder: model, threads: 1 }
replay: { ${replay || 'minAgreement: 1'} }
output: results-${number}
`,
  );
  notes.length = 0;
  return run(path, { until: 'plan', flags: {}, resume: null }, context);
}

async function refusal(log: string, replay = '', mapping = fixture): Promise<string> {
  const error = await plan(log, replay, mapping).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(MismatchError);
  expect((error as MismatchError).exitCode).toBe(78);
  return (error as Error).message;
}

interface Kept {
  readonly verification: { readonly checkedTurns: number; readonly trials?: { readonly better: readonly object[] } };
}
function runNotes(): Kept {
  const out = join(root, `results-${number}`);
  const text = readFileSync(join(out, readdirSync(out)[0], 'run.json'), 'utf8');
  return (JSON.parse(text) as { notes: Kept }).notes;
}

const counts = ({ promptIds, generated }: LoggedTurn): object => ({
  prompt_tokens: promptIds.length,
  completion_tokens: generated,
});
const ids = ({ promptIds }: LoggedTurn): object => ({ prompt_ids: promptIds });

describe('verification of a log', () => {
  beforeAll(async () => {
    await writeTinyModel(model, 5);
    writeFileSync(join(model, 'chat_template.jinja'), TEMPLATE);
    await writeInvented(join(root, 'data'), 2, 3);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it('that was made with the configured settings agrees wholly; plan prints it and run.json keeps it', async () => {
    writeLog('agrees', await serve({}), (turn) => ({ ...counts(turn), ...ids(turn), positions: turn.positions }));
    const result = await plan('agrees');
    const { models, checkedTurns, agreedTurns } = result.plan.verification;
    expect(models).toHaveLength(1);
    expect(models[0]).toMatchObject({ model: 'invented-agent', rate: 1, countsStopToken: true, disagreements: [] });
    expect(Object.keys(models[0].kinds).sort()).toEqual(
      ['generated tokens', 'prompt ids', 'prompt tokens', 'recorded pre_action', 'recorded prompt_end'].sort(),
    );
    expect(models[0].byTurn.map(({ turn }) => turn)).toEqual([0, 1, 2, 3, 4]);
    expect([checkedTurns, agreedTurns]).toEqual([30, 30]);
    const printed = formatPlan(result).join('\n');
    expect(printed).toContain('agreement with the log: 30 of 30 turns');
    expect(printed).toContain('recorded pre_action: 24 of 24');
    expect(runNotes().verification.checkedTurns).toBe(30);
  });

  it('refuses a single recorded position that is off by one, with both texts', async () => {
    writeLog('off', await serve({}), (turn, index, episode) => ({
      positions:
        episode === 'inv-1-plus' && index === 2
          ? { ...turn.positions, pre_action: turn.positions['pre_action'] + 1 }
          : turn.positions,
    }));
    const message = await refusal('off');
    expect(message).toContain('recorded pre_action (23 of 24)');
    expect(message).toMatch(/off\.jsonl: row \d+: turn 2: recorded pre_action: logged \d+ .*, ours token \d+/);
    expect(message).toContain('agrees better');
    const printed = notes.join('\n');
    expect(printed).toContain('⟦<tool_call>⟧');
    expect(printed).toMatch(/ours {3}".*⟦.+⟧<tool_call>/);
    await plan('off', 'minAgreement: 0.95');
  });

  const made: readonly (readonly [string, Partial<ReplaySettings>, typeof counts, string])[] = [
    [
      'thinking switched off',
      { templateKwargs: { enable_thinking: false } },
      counts,
      'replay.templateKwargs: {"enable_thinking":false}',
    ],
    ['earlier reasoning left out', { historyReasoning: 'none' }, counts, 'replay.historyReasoning: none'],
    ['no tools', { tools: 'none' }, counts, 'replay.tools: none'],
    ['another day', { date: '2025-09-05' }, ids, 'replay.date: 2025-09-05'],
  ];
  for (const [index, [name, settings, keys, setting]] of made.entries()) {
    it(`names the setting of a log made with ${name}`, async () => {
      writeLog(`made-${index}`, await serve(settings), keys);
      const message = await refusal(`made-${index}`);
      expect(message).toMatch(
        new RegExp(`On a sample ${setting.replaceAll(/[{}.]/g, '\\$&')} agrees in (\\d+) of \\1 turns`),
      );
      expect(runNotes().verification.trials?.better[0]).toMatchObject({ setting, rate: 1 });
      const [key, value] = setting.replace('replay.', '').split(': ') as [string, string];
      const { verification } = (await plan(`made-${index}`, `${key}: ${value}`)).plan;
      expect(verification.models[0].rate).toBe(1);
    });
  }

  it('names two settings that are only right together', async () => {
    const logs = await serve({ tools: 'none', templateKwargs: { enable_thinking: false } });
    writeLog('two', logs, counts);
    const message = await refusal('two');
    expect(message).toContain('replay.tools: none');
    expect(message).toContain('"enable_thinking":false');
    expect(message).toMatch(/agrees in (\d+) of \1 turns/);
  });

  it('names the origin that recorded positions count from, and honours one per model', async () => {
    writeLog('origin', await serve({}), ({ positions, promptIds }) => ({
      positions: Object.fromEntries(
        Object.entries(positions)
          .filter(([name]) => name !== 'prompt_end')
          .map(([name, at]) => [name, at - promptIds.length + 1]),
      ),
    }));
    const setting = 'positions: { origin: generation, from: 1 }';
    expect(await refusal('origin')).toContain(`On a sample ${setting} (mapping) agrees in`);
    const mapping = join(root, 'per-model.yaml');
    writeFileSync(
      mapping,
      `${readFileSync(fixture, 'utf8')}\npositions:\n  perModel: [{ match: '^invented', origin: generation, from: 1 }]\n`,
    );
    const { verification } = (await plan('origin', '', mapping)).plan;
    expect(verification.models[0].rate).toBe(1);
  });

  it('takes counts without the token that ended the turn as such', async () => {
    writeLog('stop', await serve({}), ({ generated }) => ({ completion_tokens: generated - 1 }));
    const { verification } = (await plan('stop')).plan;
    expect(verification.models[0]).toMatchObject({ rate: 1, countsStopToken: false });
  });

  it('replays logged prompts as they are with the raw stack, and leaves out turns without one', async () => {
    const logs = await serve({ date: '1999-12-31' });
    writeLog('raw', logs, (turn, index) => (index === 1 ? {} : ids(turn)));
    const { plan: made } = await plan('raw', 'stack: raw');
    expect(made.turns).toBe(24);
    expect(made.exclusions.map(({ turn, reason }) => `${turn} ${reason}`)).toEqual(Array(6).fill('1 no_logged_prompt'));
    const tokenizer = await openTokenizer(model);
    writeLog('text', logs, ({ promptIds }) => ({
      prompt_text: tokenizer.decode(promptIds),
      prompt_tokens: promptIds.length,
    }));
    const text = (await plan('text', 'stack: raw')).plan;
    expect(text.turns).toBe(30);
    expect(text.verification.models[0].rate).toBe(1);
  });
});
