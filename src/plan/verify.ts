import type { Agreement, Disagreement, Episode, ModelAgreement, Turn, Verification } from '../types.ts';
import { namedPosition, type RecordedOrigin, recordedIndex } from './recorded.ts';
import type { OpenTokenizer } from './tokenizer.ts';

/** What we made of one turn, for comparison with what its log says. */
export interface TurnFacts {
  readonly turn: number;
  /** Ids of the prompt as our stack renders it; null = the stack takes the log's own (raw). */
  readonly rendered: Int32Array | null;
  /** Ids used: prompt, then generated. Before anything is cut out. */
  readonly ids: Int32Array;
  readonly promptLength: number;
  /** Index of every named position in `ids`. */
  readonly positions: ReadonlyMap<string, number>;
  /** Whether the family would have written the logged generated ids; null = the log has none. */
  readonly reconstructed: boolean | null;
}

interface Comparison {
  readonly kind: string;
  readonly agreed: boolean;
  readonly logged: string;
  readonly ours: string;
  /** Tokens between the two; 0 = agreed. */
  readonly distance: number;
  readonly texts: () => Pick<Disagreement, 'loggedText' | 'oursText'>;
}

/** Tokens of text shown on each side of a place. */
const CONTEXT = 8;
/** Disagreements kept per model and kind: enough to see a pattern, little enough to read. */
const KEPT = 3;

/** Servers count the token that ended a turn or not, but each does one of them always. */
const WITH_STOP = 'generated tokens';
const WITHOUT_STOP = 'generated tokens without the one that ended the turn';

interface KindTally {
  checked: number;
  agreed: number;
  readonly kept: Disagreement[];
}

interface ModelTally {
  readonly kinds: Map<string, KindTally>;
  /** By turn: compared, and wholly agreeing when the stop token is counted or not. */
  readonly turns: Map<number, { checked: number; withStop: number; withoutStop: number }>;
}

/** Adds up comparisons over episodes. */
export interface Verifier {
  /**
   * @param origin how the recorded positions of this episode's model count
   * @returns whether everything in it agreed; null where there is nothing to compare
   */
  add(episode: Episode, facts: readonly TurnFacts[], origin: RecordedOrigin): boolean | null;
  result(): Verification;
  /** Tokens between the log and ours, added up: tells which of two settings that both disagree is nearer. */
  distance(): number;
}

/** Compares what a log says about its tokens (ids, counts, recorded positions) with ours, per model and turn index. */
export function createVerifier(tokenizer: OpenTokenizer): Verifier {
  const models = new Map<string, ModelTally>();
  const notCompared = new Map<string, number>();
  const reconstruction = { checked: 0, agreed: 0 };
  let distance = 0;
  return {
    add(episode, facts, origin) {
      const tally = models.get(episode.model) ?? { kinds: new Map<string, KindTally>(), turns: new Map() };
      models.set(episode.model, tally);
      let agrees: boolean | null = null;
      for (const fact of facts) {
        const turn = episode.turns[fact.turn];
        if (fact.reconstructed !== null) reconstruction.checked += 1;
        if (fact.reconstructed === true) reconstruction.agreed += 1;
        for (const name of Object.keys(turn.recordedPositions))
          if (namedPosition(name, fact.positions) === undefined)
            notCompared.set(name, (notCompared.get(name) ?? 0) + 1);
        const comparisons = compareTurn(turn, fact, origin, tokenizer);
        if (comparisons.length === 0) continue;
        count(tally, episode, fact.turn, comparisons);
        for (const item of comparisons) if (item.kind !== WITHOUT_STOP) distance += item.distance;
        agrees = (agrees ?? true) && comparisons.every((item) => item.agreed || item.kind === WITHOUT_STOP);
      }
      return agrees;
    },
    result: () => ({ ...summary(models, notCompared), reconstruction: { ...reconstruction } }),
    distance: () => distance,
  };
}

function count(tally: ModelTally, episode: Episode, turn: number, comparisons: readonly Comparison[]): void {
  for (const { kind, agreed, logged, ours, texts } of comparisons) {
    const entry = tally.kinds.get(kind) ?? { checked: 0, agreed: 0, kept: [] };
    tally.kinds.set(kind, entry);
    entry.checked += 1;
    if (agreed) entry.agreed += 1;
    else if (entry.kept.length < KEPT)
      entry.kept.push({
        episode: episode.key,
        file: episode.source.file,
        row: episode.source.row,
        turn,
        what: kind,
        logged,
        ours,
        ...texts(),
      });
  }
  const byTurn = tally.turns.get(turn) ?? { checked: 0, withStop: 0, withoutStop: 0 };
  tally.turns.set(turn, byTurn);
  const whole = (other: string): boolean => comparisons.every(({ kind, agreed }) => agreed || kind === other);
  byTurn.checked += 1;
  if (whole(WITHOUT_STOP)) byTurn.withStop += 1;
  if (whole(WITH_STOP)) byTurn.withoutStop += 1;
}

function summary(
  models: ReadonlyMap<string, ModelTally>,
  notCompared: ReadonlyMap<string, number>,
): Omit<Verification, 'reconstruction'> {
  let checkedTurns = 0;
  let agreedTurns = 0;
  const list: ModelAgreement[] = [];
  for (const [model, { kinds, turns }] of models) {
    const [counted, bare] = [kinds.get(WITH_STOP), kinds.get(WITHOUT_STOP)];
    const countsStopToken = counted === undefined ? null : counted.agreed >= (bare?.agreed ?? 0);
    const other = countsStopToken === false ? WITH_STOP : WITHOUT_STOP;
    const kept = [...kinds].filter(([kind]) => kind !== other);
    const byTurn = [...turns]
      .sort(([a], [b]) => a - b)
      .map(([turn, { checked, withStop, withoutStop }]) => ({
        turn,
        checked,
        agreed: countsStopToken === false ? withoutStop : withStop,
      }));
    checkedTurns += byTurn.reduce((sum, { checked }) => sum + checked, 0);
    agreedTurns += byTurn.reduce((sum, { agreed }) => sum + agreed, 0);
    list.push({
      model,
      kinds: Object.fromEntries(kept.map(([kind, { checked, agreed }]) => [kind, { checked, agreed }])),
      byTurn,
      ...lowest(kept),
      countsStopToken,
      disagreements: kept.flatMap(([, entry]) => entry.kept),
    });
  }
  return { checkedTurns, agreedTurns, models: list, notCompared: Object.fromEntries(notCompared) };
}

/** The kind that agrees least decides: positions that are all off by one must not hide behind prompt counts that agree. */
function lowest(kinds: readonly (readonly [string, Agreement])[]): Pick<ModelAgreement, 'rate' | 'worst'> {
  let found: { readonly rate: number; readonly worst: string } | null = null;
  for (const [kind, { checked, agreed }] of kinds)
    if (found === null || agreed / checked < found.rate) found = { rate: agreed / checked, worst: kind };
  return found ?? { rate: { undefinedBecause: 'the log has neither ids, counts nor recorded positions' }, worst: null };
}

function compareTurn(turn: Turn, facts: TurnFacts, origin: RecordedOrigin, tokenizer: OpenTokenizer): Comparison[] {
  const { rendered, ids, promptLength, positions } = facts;
  const out: Comparison[] = [];
  const near = (list: ArrayLike<number>, index: number): string => textNear(tokenizer, list, index);
  const tokens = (n: number): string => `${n} ${n === 1 ? 'token' : 'tokens'}`;
  if (turn.promptIds !== null && rendered !== null) {
    const logged = turn.promptIds;
    const differs = firstDifference(logged, rendered);
    out.push({
      kind: 'prompt ids',
      agreed: differs < 0,
      logged: `${tokens(logged.length)}, first other one ${differs}: ${logged[differs] ?? 'none'}`,
      ours: `${tokens(rendered.length)}, ${rendered[differs] ?? 'none'}`,
      distance: differs < 0 ? 0 : unshared(logged, rendered, differs),
      texts: () => ({ loggedText: near(logged, differs), oursText: near(rendered, differs) }),
    });
  }
  const counts = (kind: string, logged: number, ours: number, list: ArrayLike<number>, text: string | null): void => {
    out.push({
      kind,
      agreed: logged === ours,
      logged: tokens(logged),
      ours: tokens(ours),
      distance: Math.abs(logged - ours),
      texts: () => ({ loggedText: text, oursText: near(list, list.length - 1) }),
    });
  };
  const prompt = ids.subarray(0, promptLength);
  if (turn.promptTokens !== null)
    counts('prompt tokens', turn.promptTokens, promptLength, prompt, turn.promptText?.slice(-60) ?? null);
  if (turn.completionTokens !== null) {
    const generated = ids.subarray(promptLength);
    const text = turn.completionText?.slice(-60) ?? null;
    counts(WITH_STOP, turn.completionTokens, generated.length, generated, text);
    counts(WITHOUT_STOP, turn.completionTokens, generated.length - 1, generated, text);
  }
  for (const [name, recorded] of Object.entries(turn.recordedPositions)) {
    const ours = namedPosition(name, positions);
    if (ours === undefined) continue;
    const at = recordedIndex(recorded, origin, promptLength);
    out.push({
      kind: `recorded ${name}`,
      agreed: at === ours,
      logged: `${recorded} (token ${at} of the sequence)`,
      ours: ours === null ? 'no such position in this turn' : `token ${ours}`,
      distance: Math.abs(at - (ours ?? ids.length)),
      texts: () => ({
        loggedText: at >= 0 && at < ids.length ? near(ids, at) : `outside the ${tokens(ids.length)} of the sequence`,
        oursText: ours === null ? '' : near(ids, ours),
      }),
    });
  }
  return out;
}

function firstDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index += 1) if (a[index] !== b[index]) return index;
  return a.length === b.length ? -1 : shorter;
}

/** Tokens that stand in neither the common beginning nor the common end. */
function unshared(a: ArrayLike<number>, b: ArrayLike<number>, prefix: number): number {
  const most = Math.min(a.length, b.length) - prefix;
  let suffix = 0;
  while (suffix < most && a[a.length - 1 - suffix] === b[b.length - 1 - suffix]) suffix += 1;
  return Math.max(a.length, b.length) - prefix - suffix;
}

/** Text around a token, which stands in ⟦ ⟧. */
function textNear(tokenizer: OpenTokenizer, ids: ArrayLike<number>, index: number): string {
  const text = (from: number, to: number): string => {
    const parts: Uint8Array[] = [];
    for (let k = Math.max(0, from); k < Math.min(ids.length, to); k += 1) parts.push(tokenizer.tokenBytes(ids[k]));
    return Buffer.concat(parts).toString('utf8');
  };
  return `${text(index - CONTEXT, index)}⟦${text(index, index + 1)}⟧${text(index + 1, index + 1 + CONTEXT)}`;
}
