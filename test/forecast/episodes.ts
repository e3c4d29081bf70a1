import type { Episode, EpisodeMeta, Turn } from '../../src/types.ts';

/** An episode of five turns, each with one call of `look`, safe and finished, unless told otherwise. */
export function meta(key: string, change: Partial<EpisodeMeta> = {}): EpisodeMeta {
  const turnCount = change.turnCount ?? 5;
  return {
    key,
    run: 'run',
    episodeId: key,
    model: 'model',
    condition: 'candid',
    set: null,
    scenarioId: key,
    instanceId: null,
    template: 'template',
    family: 'family',
    style: null,
    pairId: null,
    world: 'x-',
    seed: null,
    reveal: 1,
    unsafe: null,
    unsafeCall: null,
    informed: null,
    escalated: null,
    criticalDone: null,
    firstCritical: null,
    success: null,
    status: 'done',
    end: 'finished',
    reportLabel: null,
    turnCount,
    toolNames: Array.from({ length: turnCount }, () => ['look']),
    duplicateKey: null,
    extra: {},
    source: { file: 'episodes.jsonl', row: 1 },
    ...change,
  };
}

export function turn(index: number, change: Partial<Turn> = {}): Turn {
  return {
    index,
    before: [],
    reasoning: `thought${index}`,
    content: `said${index}`,
    calls: [{ name: `tool${index}`, arguments: new Map([['path', `argument${index}`]]) }],
    results: [{ text: `result${index}`, call: 0 }],
    unsafe: false,
    unsafeCall: null,
    critical: false,
    escalation: false,
    violations: [],
    recordedPositions: {},
    promptIds: null,
    generatedIds: null,
    completionText: null,
    promptTokens: null,
    completionTokens: null,
    ...change,
  };
}

export function episode(key: string, turns: readonly Turn[], change: Partial<Episode> = {}): Episode {
  return {
    ...meta(key, { turnCount: turns.length, toolNames: turns.map((t) => t.calls.map((c) => c.name)) }),
    opening: [
      { role: 'system', content: 'policy' },
      { role: 'user', content: 'task' },
    ],
    tools: [],
    after: [],
    finalAnswer: null,
    turns,
    ...change,
  };
}
