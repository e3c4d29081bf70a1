import type { Mapping } from '../config/mapping-fields.ts';
import type { EpisodeEnd, JsonValue, Turn, World } from '../types.ts';
import type { ParsedLog } from './adapters/adapter.ts';
import { asInteger, asText, FieldProblem, isMissing, show } from './cell.ts';

/** What the label columns say, in turns from 0, checked against the log: labels are the ground truth of everything. */

export function firstTurn(turns: readonly Turn[], test: (turn: Turn) => boolean): number | null {
  const index = turns.findIndex(test);
  return index < 0 ? null : index;
}

function turnOf(field: string, step: number, mapping: Mapping, log: ParsedLog): number {
  const turn = step < mapping.stepsFrom ? null : log.turnOf(step - mapping.stepsFrom);
  if (turn === null) {
    const last =
      mapping.stepsCount === 'turns' ? log.turns.length - 1 + mapping.stepsFrom : 'the last message of a turn';
    throw new FieldProblem(field, `a step in ${mapping.stepsFrom}..${last}`, String(step));
  }
  return turn;
}

/** A label column that names a step; null = no such event. @throws FieldProblem */
export function readStep(field: string, value: JsonValue | undefined, mapping: Mapping, log: ParsedLog): number | null {
  const step = asInteger(field, value, mapping.numbersAsText);
  if (step === null || (step === -1 && mapping.eventMinusOne === 'none')) return null;
  if (step < 0)
    throw new FieldProblem(
      field,
      'a step >= 0 or null',
      `${step}. If −1 means "none" in this source, say so in the mapping (eventMinusOne: none)`,
    );
  return turnOf(field, step, mapping, log);
}

/** r (EVALUATION.md 1): −1 = the worlds' first prompts differ; null = never revealed. @throws FieldProblem */
export function readReveal(value: JsonValue | undefined, mapping: Mapping, log: ParsedLog): number | null {
  const step = asInteger('reveal_event', value, mapping.numbersAsText);
  if (step === null) return null;
  if (step === -1) {
    if (mapping.revealMinusOne === 'none') return null;
    if (mapping.revealMinusOne === 'first_prompt') return -1;
    throw new FieldProblem(
      'reveal_event',
      'a step >= 0 or null',
      '-1. Say in the mapping what −1 means (revealMinusOne: first_prompt | none)',
    );
  }
  return turnOf('reveal_event', step, mapping, log);
}

/** Column, flag and log have to agree on u. A log without marks has nothing to say. @throws FieldProblem */
export function checkUnsafe(log: ParsedLog, unsafe: number | null, flag: boolean | null): void {
  if (flag !== null && flag !== (unsafe !== null)) {
    throw new FieldProblem(
      'unsafe_episode',
      `${unsafe !== null}, because first_unsafe_event is ${unsafe ?? 'null'}`,
      String(flag),
    );
  }
  if (!log.marksUnsafe) return;
  const first = firstTurn(log.turns, (turn) => turn.unsafe);
  if (first !== unsafe) {
    throw new FieldProblem(
      'first_unsafe_event',
      `${first ?? 'null'} (the first unsafe_action of events_json)`,
      String(unsafe),
    );
  }
}

export function readWorld(value: JsonValue | undefined, nuisance: boolean | null, mapping: Mapping): World {
  if (mapping.world === 'none') return 'none';
  const text = typeof value === 'boolean' ? String(value) : asText('cf_value', value);
  if (text !== null && mapping.world.safe.includes(text)) return 'x+';
  if (text !== null && mapping.world.unsafe.includes(text)) return nuisance === true ? 'nuisance' : 'x-';
  throw new FieldProblem(
    'cf_value',
    [...mapping.world.safe, ...mapping.world.unsafe].join(' or '),
    isMissing(value)
      ? `${show(value)}. A source without worlds says so in the mapping (world: none)`
      : `${show(value)}. Other words go into the mapping (world)`,
  );
}

export function readEnd(status: string | null, mapping: Mapping): EpisodeEnd {
  if (status === null) return 'unknown';
  for (const kind of ['finished', 'escalated', 'limit'] as const)
    if (mapping.status[kind].includes(status)) return kind;
  return 'unknown';
}
