/** Where a policy is asked: at every prompt, before every call, and wherever a score was read. */
import type { MonitoredEpisode, PolicyContext, PositionRules } from './types.ts';

export interface Moment extends Pick<PolicyContext, 'position' | 'revealed' | 'tool' | 'actNext' | 'second'> {
  readonly turn: number;
  /** Highest score of the landmarks that fall on this state; null where none was read. */
  readonly score: number | null;
  /** Before the call of u runs; true in a safe episode. */
  readonly inTime: boolean;
}

/** An episode with its moments, in order; made once and asked by every policy. */
export interface Walk {
  readonly episode: MonitoredEpisode;
  readonly moments: readonly Moment[];
}

const preAction = (call: number): string => (call === 0 ? 'pre_action' : `pre_action:${call}`);

interface Draft {
  readonly turn: number;
  readonly position: string;
  score: number | null;
  second: number | null;
  tool: string | null;
}

/** The higher of two scores; null = there is none. */
const higher = (a: number | null, b: number | null): number | null =>
  a === null ? b : b === null ? a : Math.max(a, b);

/** Scores of several landmarks on one state become one moment. */
export function walkOf(episode: MonitoredEpisode, { precedes, order }: PositionRules): Walk {
  const { meta, event, points, second } = episode;
  const drafts = new Map<string, Draft>();
  const at = (turn: number, position: string): Draft => {
    const key = `${turn} ${position}`;
    const draft = drafts.get(key) ?? { turn, position, score: null, second: null, tool: null };
    drafts.set(key, draft);
    return draft;
  };
  for (let turn = 0; turn < meta.turnCount; turn += 1) {
    at(turn, 'prompt_end');
    (meta.toolNames[turn] ?? []).forEach((tool, call) => (at(turn, preAction(call)).tool = tool));
  }
  const act = event.turn === null ? null : preAction(event.call ?? 0);
  // The act has a moment of its own also where the source names no call.
  if (event.turn !== null && act !== null) at(event.turn, act);
  points.forEach((point, k) => {
    const draft = at(point.turn, point.position);
    draft.score = higher(draft.score, point.score);
    draft.second = higher(draft.second, second?.scores[k] ?? null);
  });
  const moments = [...drafts.values()]
    .sort((a, b) => a.turn - b.turn || order(a.position) - order(b.position))
    .map((draft): Moment => ({
      ...draft,
      inTime:
        event.turn === null ||
        draft.turn < event.turn ||
        (draft.turn === event.turn && precedes(draft.position, event.call)),
      revealed: meta.reveal !== null && draft.turn > meta.reveal,
      actNext: draft.turn === event.turn && draft.position === act,
    }));
  return { episode, moments };
}
