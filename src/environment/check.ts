import { fromPlain } from '../lib/json.ts';
import type { ToolCall } from '../types.ts';
import { splitCommands } from './command-line.ts';
import type { ActionMatcher, CallPattern, Scenario } from './scenario.ts';
import { step } from './step.ts';
import { TOOLS } from './tools.ts';
import { initialState, type WorldState } from './world-state.ts';

/** What a scenario has to be for its labels to mean what they say. `fact` … `matcher_spares` name the rules below. */
export type FaultKind =
  | 'fact_not_single'
  | 'worlds_missing'
  | 'critical_unreachable'
  | 'not_allowed_in_plus'
  | 'allowed_in_minus'
  | 'reveal_unobservable'
  | 'matcher_misses'
  | 'matcher_overreaches'
  | 'nuisance_changes_fact';

export interface ScenarioFault {
  readonly pairId: string;
  readonly instanceId: string;
  readonly kind: FaultKind;
  readonly detail: string;
}

/**
 * Checks all scenarios, pair by pair:
 *
 * - the worlds x− and x+ differ in exactly one stretch of words of one file, row or prompt;
 * - the critical action can be carried out in both;
 * - it is unsafe in x− (and nuisance) and allowed in x+;
 * - the difference can be observed by a call that is not critical, before the critical action;
 * - the matcher catches the action in its other spellings, and spares reading, asking and acting on another object.
 */
export function checkScenarios(scenarios: Iterable<Scenario>): readonly ScenarioFault[] {
  const pairs = new Map<string, Scenario[]>();
  for (const scenario of scenarios) {
    const worlds = pairs.get(scenario.pairId);
    if (worlds === undefined) pairs.set(scenario.pairId, [scenario]);
    else worlds.push(scenario);
  }
  return [...pairs.values()].flatMap(checkPair);
}

function checkPair(worlds: readonly Scenario[]): readonly ScenarioFault[] {
  const faults: ScenarioFault[] = [];
  const minus = worlds.find((scenario) => scenario.world === 'x-');
  const plus = worlds.find((scenario) => scenario.world === 'x+');
  const first = worlds[0];
  if (minus === undefined || plus === undefined) {
    if (worlds.some((scenario) => scenario.world !== 'none'))
      faults.push(faultOf(first, 'worlds_missing', `the pair has no ${minus === undefined ? 'x−' : 'x+'} world`));
  } else {
    const difference = differenceOf(minus, plus);
    if (typeof difference !== 'string') faults.push(faultOf(minus, 'fact_not_single', difference.problem));
    if (!canObserve(minus, plus))
      faults.push(faultOf(minus, 'reveal_unobservable', 'no reading call gives different results in the two worlds'));
    for (const copy of worlds.filter((scenario) => scenario.world === 'nuisance'))
      if (JSON.stringify(copy.permissions) !== JSON.stringify(minus.permissions))
        faults.push(faultOf(copy, 'nuisance_changes_fact', 'its permissions are not those of the x− world'));
  }
  return [...faults, ...worlds.flatMap(checkOne)];
}

function checkOne(scenario: Scenario): readonly ScenarioFault[] {
  const faults: ScenarioFault[] = [];
  const start = initialState(scenario);
  const routes = routesOf(scenario.critical);
  const outcomes = routes.map((call) => step({ ...scenario, faults: [] }, start, call));
  const done = outcomes.findIndex((outcome) => !outcome.failed && outcome.labels.critical);
  if (done < 0) {
    const why = outcomes[0]?.result ?? 'it names no call';
    return [faultOf(scenario, 'critical_unreachable', `no call of the matcher carries it out (${why})`)];
  }
  const unsafe = outcomes[done]?.labels.unsafe;
  if (scenario.world === 'x+' && unsafe)
    faults.push(faultOf(scenario, 'not_allowed_in_plus', 'the critical action violates a permission in the x+ world'));
  if ((scenario.world === 'x-' || scenario.world === 'nuisance') && !unsafe)
    faults.push(faultOf(scenario, 'allowed_in_minus', 'the critical action violates no permission in the x− world'));
  const action = routes[done];
  const missed = [
    ...spellings(action),
    ...equivalentRoutes(scenario, changesOf(start, outcomes[done]?.state ?? start)),
  ].find((call) => {
    const outcome = step({ ...scenario, faults: [] }, start, call);
    return !outcome.failed && !outcome.labels.critical;
  });
  if (missed !== undefined) faults.push(faultOf(scenario, 'matcher_misses', `it does not catch ${showCall(missed)}`));
  const caught = innocentCalls(scenario, routes).find(
    (call) => step({ ...scenario, faults: [] }, start, call).labels.critical,
  );
  if (caught !== undefined)
    faults.push(faultOf(scenario, 'matcher_overreaches', `it also catches ${showCall(caught)}`));
  return faults;
}

function faultOf(scenario: Scenario, kind: FaultKind, detail: string): ScenarioFault {
  return { pairId: scenario.pairId, instanceId: scenario.instanceId, kind, detail };
}

function makeCall(name: string, args: Readonly<Record<string, string>>): ToolCall {
  return { name, arguments: fromPlain(args) };
}

function showCall(call: ToolCall): string {
  return `${call.name} ${JSON.stringify(Object.fromEntries(call.arguments as ReadonlyMap<string, string>))}`;
}

/** A call of the pattern, with filler for the arguments it leaves open. */
function complete(pattern: CallPattern): ToolCall {
  const spec = TOOLS.find((tool) => tool.name === pattern.tool);
  return makeCall(pattern.tool, {
    ...pattern.args,
    ...Object.fromEntries(
      (spec?.args ?? []).filter((name) => pattern.args[name] === undefined).map((name) => [name, 'x']),
    ),
  });
}

/** The calls that the matcher names, with filler for arguments it leaves open; effects on files and rows as calls. */
function routesOf(matcher: ActionMatcher): readonly ToolCall[] {
  return [...matcher.calls.map(complete), ...effectCalls(matcher)];
}

function effectCalls(matcher: ActionMatcher): readonly ToolCall[] {
  return matcher.effects.flatMap((effect) => {
    if (effect.kind === 'file_gone') return [makeCall('delete_file', { path: effect.path })];
    if (effect.kind === 'file_changed') return [makeCall('write_file', { path: effect.path, text: 'x' })];
    if (effect.kind === 'sent') return [makeCall('send_message', { to: effect.to, text: 'x' })];
    if (effect.kind === 'db')
      return [makeCall('update_db', { table: effect.table, id: effect.id, field: effect.field, value: effect.value })];
    return [];
  });
}

/** The same call as others would write it. */
function spellings(call: ToolCall): readonly ToolCall[] {
  const args = Object.fromEntries(call.arguments as ReadonlyMap<string, string>);
  if (call.name === 'run_command') {
    const command = args['command'] ?? '';
    const words = splitCommands(command)[0] ?? [];
    return [
      `sudo ${command}`,
      `echo ok && ${command}`,
      `${words[0] ?? ''} ${words
        .slice(1)
        .map((word) => `"${word}"`)
        .join('  ')}`,
    ].map((text) => makeCall('run_command', { command: text }));
  }
  if (args['path'] !== undefined) return [makeCall(call.name, { ...args, path: `./${args['path']}` })];
  return [];
}

/** What a call did to the world, as comparable words. */
function changesOf(before: WorldState, after: WorldState): ReadonlySet<string> {
  const changes = new Set<string>();
  for (const [path, text] of before.files) {
    const now = after.files.get(path);
    if (now === undefined) changes.add(`gone ${path}`);
    else if (now !== text) changes.add(`changed ${path}`);
  }
  for (const [table, rows] of after.db)
    for (const [id, row] of rows)
      for (const [field, value] of row)
        if (before.db.get(table)?.get(id)?.get(field) !== value) changes.add(`db ${table}/${id}/${field}=${value}`);
  for (const flag of after.flags) if (!before.flags.has(flag)) changes.add(`flag ${flag}`);
  return changes;
}

/** Calls of other forms that do to the world what the action does: shell commands on its files, mocked commands. */
function equivalentRoutes(scenario: Scenario, wanted: ReadonlySet<string>): readonly ToolCall[] {
  if (wanted.size === 0) return [];
  const shell = Object.keys(scenario.files).flatMap((path) => [
    `rm -f ${path}`,
    `mv ${path} elsewhere.txt`,
    `echo replaced > ${path}`,
  ]);
  const start = initialState(scenario);
  return [...shell, ...scenario.commands.map((rule) => rule.words)]
    .map((command) => makeCall('run_command', { command }))
    .filter((call) => {
      const changes = changesOf(start, step({ ...scenario, faults: [] }, start, call).state);
      return [...wanted].every((change) => changes.has(change));
    });
}

/** Reads, questions, messages and mocked commands without the effect, and the action on an object of another name. */
function innocentCalls(scenario: Scenario, routes: readonly ToolCall[]): readonly ToolCall[] {
  const { effects } = scenario.critical;
  const harmless = scenario.commands.filter(
    (rule) =>
      !rule.effects.some((done) => effects.some((wanted) => JSON.stringify(done) === JSON.stringify(wanted))) &&
      !routes.some((call) => (call.arguments as ReadonlyMap<string, string>).get('command') === rule.words),
  );
  return [
    ...readingCalls(scenario),
    makeCall('request_permission', { action: 'act' }),
    makeCall('finish', { report: 'done' }),
    makeCall('write_file', { path: 'scratch/unrelated.txt', text: 'x' }),
    makeCall('send_message', { to: 'nobody in particular', text: 'x' }),
    ...harmless.map((rule) => makeCall('run_command', { command: rule.words })),
  ];
}

/** Every call that only looks: all files, rows, tickets and mails of the world. */
export function readingCalls(scenario: Scenario): readonly ToolCall[] {
  return [
    makeCall('list_files', { path: '' }),
    ...Object.keys(scenario.files).map((path) => makeCall('read_file', { path })),
    ...Object.entries(scenario.db).flatMap(([table, rows]) =>
      Object.keys(rows).map((id) => makeCall('query_db', { table, id })),
    ),
  ];
}

function canObserve(minus: Scenario, plus: Scenario): boolean {
  if (minus.taskPrompt !== plus.taskPrompt || minus.systemPrompt !== plus.systemPrompt) return true;
  const calls = [
    ...readingCalls(minus),
    ...minus.commands
      .filter((rule) => rule.effects.length === 0)
      .map((rule) => makeCall('run_command', { command: rule.words })),
  ];
  return calls.some((call) => {
    const a = step({ ...minus, faults: [] }, initialState(minus), call);
    const b = step({ ...plus, faults: [] }, initialState(plus), call);
    return !a.labels.critical && a.result !== b.result;
  });
}

/** The place of the one difference, or what is wrong with it. */
function differenceOf(minus: Scenario, plus: Scenario): string | { readonly problem: string } {
  const a = observables(minus);
  const b = observables(plus);
  const places = [...new Set([...a.keys(), ...b.keys()])].filter((place) => a.get(place) !== b.get(place));
  if (places.length === 0) return { problem: 'the worlds do not differ' };
  if (places.length > 1) return { problem: `the worlds differ in ${places.slice(0, 3).join(' and ')}` };
  const place = places[0];
  const left = (a.get(place) ?? '').split(/\s+/);
  const right = (b.get(place) ?? '').split(/\s+/);
  while (left.length > 0 && left[0] === right[0]) {
    left.shift();
    right.shift();
  }
  while (left.length > 0 && left.at(-1) === right.at(-1)) {
    left.pop();
    right.pop();
  }
  const shared = left.find((word) => right.includes(word));
  return shared === undefined
    ? place
    : { problem: `${place} differs in more than one stretch of words (both keep "${shared}" in between)` };
}

/** Everything an agent can be shown, by place. */
function observables(scenario: Scenario): ReadonlyMap<string, string> {
  const out = new Map<string, string>([
    ['system_prompt', scenario.systemPrompt],
    ['task_prompt', scenario.taskPrompt],
  ]);
  for (const [path, text] of Object.entries(scenario.files)) out.set(`file ${path}`, text);
  for (const [table, rows] of Object.entries(scenario.db))
    for (const [id, row] of Object.entries(rows))
      for (const [field, value] of Object.entries(row)) out.set(`db ${table}/${id}/${field}`, value);
  for (const rule of scenario.commands) out.set(`command ${rule.words}`, JSON.stringify([rule.output, rule.effects]));
  for (const fault of scenario.faults) out.set(`fault ${fault.tool} ${fault.call}`, fault.error);
  return out;
}
