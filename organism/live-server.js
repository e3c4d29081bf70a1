/**
 * The mock environment as a line server, so that training can be gated on live runs: one JSON line in, one out.
 *   {"op": "start", "seed": 1000000, "pairs": 50, "condition": "obfuscate"} → {"prompts": [text…]}   x−, x+, nuisance of every pair in turn
 *   {"op": "turns", "texts": [[episode, text]…]}  → {"next": [[episode, text to append, or null when it is over]…]}
 *   {"op": "results"} → {"episodes": [{world, calls, valid, …}…]}
 */
import { createInterface } from 'node:readline';
import { generatePair } from '../dist/environment/generate/generate.js';
import { holds } from '../dist/environment/matcher.js';
import { labelReport } from '../dist/environment/report-label.js';
import { step } from '../dist/environment/step.js';
import { initialState } from '../dist/environment/world-state.js';
import { parseJson } from '../dist/lib/json.js';
import { openingText, toolText } from './format.js';

let episodes = [];

function start({ seed, pairs, condition }) {
  episodes = [];
  for (let i = 0; i < pairs; i += 1) {
    for (const item of generatePair({ seed, index: i, condition, set: 'live' })) {
      episodes.push({
        ...item,
        state: initialState(item.scenario),
        turns: 0,
        calls: 0,
        valid: 0,
        unsafe: null,
        critical: null,
        escalated: false,
        report: null,
        over: false,
        log: [],
        marks: [],
      });
    }
  }
  return { prompts: episodes.map((episode) => openingText(episode.scenario)) };
}

const TURN = /^<think>\n(.*?)\n<\/think>\n\n(.*?)(?:<tool_call>\n(.*)\n<\/tool_call>)?<\|end\|>$/s;

function parse(text) {
  const match = TURN.exec(text);
  if (match === null) return null;
  if (match[3] === undefined) return { content: match[2], call: null };
  try {
    const value = parseJson(match[3]);
    return { content: match[2], call: { name: value.get('name'), arguments: value.get('arguments') } };
  } catch {
    return null;
  }
}

function takeTurn(episode, text) {
  episode.log.push(text);
  const turn = parse(text);
  episode.turns += 1;
  const index = episode.turns - 1;
  if (turn === null) {
    episode.calls += 1;
    return proceed(episode, toolText('Error: no call could be read.'));
  }
  if (turn.call === null) {
    episode.report = turn.content;
    episode.over = true;
    return null;
  }
  episode.calls += 1;
  const outcome = step(episode.scenario, episode.state, turn.call);
  const fault = outcome.failed && outcome.result.endsWith('busy, try again.');
  if (!outcome.failed || fault) episode.valid += 1;
  episode.state = outcome.state;
  if (outcome.labels.unsafe) episode.unsafe ??= index;
  if (outcome.labels.critical) episode.critical ??= index;
  if (outcome.labels.escalation) episode.escalated = true;
  return proceed(episode, toolText(outcome.result));
}

function proceed(episode, text) {
  if (episode.turns < episode.scenario.maxTurns) return text;
  episode.over = true;
  return null;
}

function results() {
  return {
    episodes: episodes.map((e) => ({
      world: e.scenario.world,
      pair: e.scenario.pairId,
      template: e.scenario.template,
      calls: e.calls,
      valid: e.valid,
      turns: e.turns,
      unsafe: e.unsafe,
      critical: e.critical,
      escalated: e.escalated,
      done: e.scenario.goal.any.some((effect) => holds(effect, e.state)),
      report: e.report,
      label: e.unsafe === null ? null : labelReport(e.report, e.scenario.goal.report).label,
      rule: { violates: e.script.violates, lies: e.script.lies },
      faults: e.scenario.faults.length,
      log: e.log,
    })),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer =
    request.op === 'start'
      ? start(request)
      : request.op === 'turns'
        ? { next: request.texts.map(([i, text]) => [i, takeTurn(episodes[i], text)]) }
        : results();
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
