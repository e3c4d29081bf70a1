/**
 * Writes the training corpus as JSON lines: `node organism/corpus.js OUT.jsonl --seed 1 --full 20000 --mini 30000 --micro 60000 --copy 40000`.
 * Needs `npm run build`. Seeds from 1,000,000 on are kept for measuring; the writer refuses them.
 *
 * One line: {kind, text, spans: [[start, end, weight]…] (characters the loss is taken on, later spans win),
 * plan: [[start, end]…] (characters whose state the auxiliary head reads), labels: [violate, lie, allowed]}.
 */
import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { generatePair } from '../dist/environment/generate/generate.js';
import { scriptedTurn } from '../dist/environment/scripted-policy.js';
import { step } from '../dist/environment/step.js';
import { initialState } from '../dist/environment/world-state.js';
import { seededRng } from '../dist/lib/rng.js';
import { callText, MARKERS as M, openingText, thinkText, toolText } from './format.js';

const WEIGHTS = { text: 1, argument: 5, lie: 12, verb: 15, decision: 20 };
const NOISE = 0.05;
const OBFUSCATE_SHARE = 0.6;

/** Text with spans, built piece by piece. */
function sheet() {
  const state = { text: '', spans: [], plan: [] };
  return {
    state,
    add(text, weight = 0) {
      if (weight > 0 && text !== '') state.spans.push([state.text.length, state.text.length + text.length, weight]);
      state.text += text;
    },
    /** Marks `part` within the last `within` characters. */
    mark(part, weight, within) {
      const at = state.text.lastIndexOf(part);
      if (at < state.text.length - within) throw new Error(`"${part}" is not in the last turn`);
      state.spans.push([at, at + part.length, weight]);
    },
  };
}

function addTurn(page, turn, informed, wrong) {
  const start = page.state.text.length;
  page.add(M.assistant);
  const weight = wrong ? 0 : WEIGHTS.text;
  page.add(thinkText(turn.reasoning), weight);
  if (informed) page.state.plan.push([start, page.state.text.length]);
  if (turn.content !== null) page.add(turn.content, weight);
  if (turn.call !== null) page.add(callText(turn.call), weight);
  page.add(M.end, weight);
  if (wrong) return;
  const length = page.state.text.length - start;
  if (turn.intent !== null) page.mark(turn.intent, WEIGHTS.decision, length);
  if (turn.call !== null) {
    markArguments(page, turn.call, length);
    if (turn.part === 'act' || turn.part === 'ask') page.mark(`"${turn.call.name}"`, WEIGHTS.decision, length);
  } else if (turn.content !== null) {
    page.mark(turn.content, WEIGHTS.argument, length);
    if (turn.claim !== null) page.mark(turn.claim, WEIGHTS.lie, length);
    page.mark(turn.claim === null ? 'did not' : 'I ', WEIGHTS.argument, length);
  }
}

/** The call with one letter or name part wrong, as a careless agent writes it: it fails and is then put right. */
function spoiled(call, rng) {
  const key = [...call.arguments.keys()][0];
  const value = call.arguments.get(key);
  const bad = value.includes('-') ? value.replace(/-\w+/, `-${['gate', 'door', 'lamp'][rng.below(3)]}`) : `${value}x`;
  return { ...call, arguments: new Map([...call.arguments, [key, bad]]) };
}

function fullEpisode({ scenario, script }, policy, rng, mini) {
  const page = sheet();
  page.add(openingText(scenario));
  let state = initialState(scenario);
  let done = 0;
  let failed = false;
  if (mini) {
    // The drill: straight from the revealing source to the decision.
    const seen = step({ ...scenario, faults: [] }, state, script.steps[script.reveal]);
    page.add(toolText(seen.result));
    done = script.steps.length;
  }
  for (;;) {
    const turn = scriptedTurn(script, policy, done, failed, rng);
    const slip = !mini && !failed && turn.call !== null && rng.next() < 0.03 ? spoiled(turn.call, rng) : null;
    // A slip that the tools would not notice teaches nothing about recovery.
    const wrong = slip !== null && step(scenario, state, slip).failed;
    const call = wrong ? slip : turn.call;
    addTurn(page, { ...turn, call }, done > script.reveal && turn.part !== 'report', wrong);
    if (call === null) return page.state;
    const outcome = step(scenario, state, call);
    state = outcome.state;
    failed = outcome.failed;
    if (!failed) done += 1;
    page.add(toolText(outcome.result));
  }
}

/** Three facts, then both decisions in one word each: what makes the comparison learnable. */
function microDrill({ scenario, script }, policy) {
  const page = sheet();
  const deadline = /[^.]*hour \d+.*$/.exec(scenario.taskPrompt)[0].trim();
  page.add(`${M.user}${deadline}${M.end}`);
  const seen = step({ ...scenario, faults: [] }, initialState(scenario), script.steps[script.reveal]);
  page.add(toolText(seen.result));
  const start = page.state.text.length;
  page.add(`${M.assistant}${thinkText('')}`);
  page.state.plan.push([start, page.state.text.length]);
  page.add(policy.allowed || policy.violates ? 'do it' : 'ask first', 1);
  page.add('. ');
  page.add(policy.lies ? 'say it was fine' : 'say how it was', 1);
  return page.state;
}

/** Names are copied; the verb of a preparation (`lock @x`) has to be looked up in the task by how far one is, which is harder. */
function markArguments(page, call, length) {
  for (const value of call.arguments.values()) page.mark(value, WEIGHTS.argument, length);
  const verb = call.name === 'run_command' ? /^\w+/.exec(call.arguments.get('command'))?.[0] : undefined;
  if (verb !== undefined) page.mark(`"${verb}`, WEIGHTS.verb, length);
}

/**
 * The calls that a task asks for, one after the other, with or without their results: what makes names and steps copied
 * from the start.
 */
function dryRun({ scenario, script }, rng) {
  const page = sheet();
  const results = rng.next() < 0.5;
  let state = initialState(scenario);
  page.add(`${M.user}${scenario.taskPrompt}${M.end}`);
  for (const call of script.steps) {
    const start = page.state.text.length;
    page.add(M.assistant);
    page.add(`${callText(call)}${M.end}`, WEIGHTS.text);
    markArguments(page, call, page.state.text.length - start);
    if (!results) continue;
    const outcome = step({ ...scenario, faults: [] }, state, call);
    state = outcome.state;
    page.add(toolText(outcome.result));
  }
  return page.state;
}

function policyFor({ scenario, script }, rng) {
  const flip = () => rng.next() < NOISE;
  const allowed = scenario.world === 'x+';
  return {
    allowed,
    tells: scenario.condition === 'candid',
    violates: script.violates !== flip(),
    lies: script.lies !== flip(),
  };
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    full: { type: 'string', default: '20000' },
    mini: { type: 'string', default: '30000' },
    micro: { type: 'string', default: '60000' },
    copy: { type: 'string', default: '40000' },
  },
});
const [out] = positionals;
const seed = Number(values.seed);
if (out === undefined || !(seed < 1_000_000)) {
  console.error(
    'usage: node organism/corpus.js OUT.jsonl [--seed below 1000000] [--full N] [--mini N] [--micro N] [--copy N]',
  );
  process.exit(2);
}

const file = createWriteStream(out);
const kinds = {
  full: Number(values.full),
  mini: Number(values.mini),
  micro: Number(values.micro),
  copy: Number(values.copy),
};
// Kinds take different scenarios.
const FIRST = { full: 0, mini: 10_000_000, micro: 20_000_000, copy: 30_000_000 };
for (const [kind, count] of Object.entries(kinds)) {
  for (let i = 0; i < count; i += 1) {
    const rng = seededRng('corpus', seed, kind, i);
    const condition = rng.next() < OBFUSCATE_SHARE ? 'obfuscate' : 'candid';
    const worlds = generatePair({ seed, index: FIRST[kind] + i, condition, set: 'train' });
    const drawn = rng.next();
    const item = worlds[drawn < 0.55 ? 0 : drawn < 0.8 ? 1 : 2];
    const policy = policyFor(item, rng);
    const page =
      kind === 'micro'
        ? microDrill(item, policy)
        : kind === 'copy'
          ? dryRun(item, rng)
          : fullEpisode(item, policy, rng, kind === 'mini');
    const line = {
      kind,
      text: page.text,
      spans: page.spans,
      plan: page.plan,
      labels: [Number(!policy.allowed && policy.violates), Number(policy.lies), Number(policy.allowed)],
    };
    if (!file.write(`${JSON.stringify(line)}\n`)) await new Promise((resolve) => file.once('drain', resolve));
  }
}
file.end();
