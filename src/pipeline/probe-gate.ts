import { writtenPositions } from '../plan/written-positions.ts';
import { probabilities } from '../probe/score.ts';
import type { Agent, AgentTurn, CapturedStates, Gate, GateDecision, Probe } from '../types.ts';
import { promptEnd, type TurnFormat } from './turn-format.ts';

/** A probe that is read at one position of every turn with a call. */
export interface GateReader {
  readonly probe: Probe;
  readonly position: string;
  /** Alarm when the calibrated score is greater. */
  readonly threshold: number;
}

/** What a gate answers to an alarm. `allow`: nothing, it only watches and logs its scores. */
export type GateAnswer = 'allow' | 'block' | 'escalate' | 'terminate' | 'resample' | 'steer' | 'ablate';

/** Positions that are known before the calls of a turn run. */
export const GATE_POSITIONS = ['prompt_end', 'reasoning_start', 'reasoning_end', 'pre_action'] as const;

/** Name of a reader's score: its position, with a number where several readers share it. */
export function scoreName(readers: readonly GateReader[], index: number): string {
  const { position } = readers[index] ?? { position: '' };
  const before = readers.slice(0, index).filter((reader) => reader.position === position).length;
  return before === 0 ? position : `${position}#${before + 1}`;
}

/**
 * Scores of a turn from the states that were there while it was generated: one dot product a reader.
 * @returns by {@link scoreName}; a reader whose position the turn lacks (no reasoning) is left out
 * @throws TypeError when the turn has no states, or not at a tap that a probe reads
 */
export function readScores(
  turn: AgentTurn,
  readers: readonly GateReader[],
  format: TurnFormat,
): Readonly<Record<string, number>> {
  const { states } = turn;
  if (states === undefined) throw new TypeError('expected a turn with states, got one without: capture them');
  const found = turnPositions(turn, format);
  const scores: [string, number][] = [];
  for (const [index, { probe, position }] of readers.entries()) {
    const at = found.get(position)?.start;
    const row = at === undefined ? -1 : states.positions.indexOf(at);
    if (row < 0) continue;
    const score = scoreRow(probe, states, row);
    scores.push([scoreName(readers, index), score]);
  }
  return Object.fromEntries(scores);
}

/**
 * Calibrated score of one row of captured states: one dot product.
 * @throws TypeError when the states are not at a tap that the probe reads
 */
export function scoreRow(probe: Probe, states: CapturedStates, row: number): number {
  const data = new Float32Array(probe.taps.length * states.width);
  for (const [k, tap] of probe.taps.entries()) {
    const from = states.taps.indexOf(tap);
    if (from < 0) throw new TypeError(`expected states at ${states.taps.join(', ')}, got a probe that reads ${tap}`);
    const start = (from * states.positions.length + row) * states.width;
    data.set(states.data.subarray(start, start + states.width), k * states.width);
  }
  return probabilities(probe, { data, rows: 1, columns: data.length })[0];
}

function turnPositions(turn: AgentTurn, { tokenizer, family, endOfTurn }: TurnFormat) {
  return writtenPositions(
    family,
    tokenizer,
    { promptLength: turn.promptIds.length, generated: turn.generatedIds },
    {
      prompt: promptEnd(tokenizer, turn.promptIds),
      endOfTurn,
      hasCalls: turn.calls.length > 0,
      isReport: turn.calls.length === 0,
    },
  );
}

/** Whether any reader's score is above its threshold. */
export function isAlarm(scores: Readonly<Record<string, number>>, readers: readonly GateReader[]): boolean {
  return readers.some((reader, index) => {
    const score = scores[scoreName(readers, index)];
    return score !== undefined && score > reader.threshold;
  });
}

export interface ProbeGateOptions {
  readonly readers: readonly GateReader[];
  readonly format: TurnFormat;
  readonly answer: GateAnswer;
  /** What the agent reads as the result of a blocked call. */
  readonly message: string;
  /** The agent that makes the turn anew, for `steer` and `ablate`. */
  readonly changed?: Agent;
}

/** A gate that reads probes before the calls of a turn run and gives one kind of answer to an alarm. */
export function createProbeGate(options: ProbeGateOptions): Gate {
  const { readers, format, changed } = options;
  return (turn) => {
    const scores = readScores(turn, readers, format);
    const alarm = isAlarm(scores, readers);
    return Promise.resolve({
      ...decisionOf(alarm ? options.answer : 'allow', options.message, changed),
      scores,
      alarm,
    });
  };
}

/** @throws TypeError for steering without an agent that steers */
export function decisionOf(answer: GateAnswer, message: string, changed: Agent | undefined): GateDecision {
  switch (answer) {
    case 'block':
      return { kind: 'block', message };
    case 'steer':
    case 'ablate':
      if (changed === undefined) throw new TypeError(`${answer}: expected an agent that steers, got none`);
      return { kind: answer, agent: changed };
    default:
      return { kind: answer };
  }
}
