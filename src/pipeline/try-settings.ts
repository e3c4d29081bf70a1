import { DataError, UserError } from '../errors.ts';
import { candidates, type Configured, describeChange } from '../plan/candidates.ts';
import { isNamed } from '../plan/recorded.ts';
import { buildSequences, type ChatSetup } from '../plan/sequences.ts';
import { createVerifier } from '../plan/verify.ts';
import type { Episode, SettingTrial, Turn } from '../types.ts';
import { openChat } from './chat-setup.ts';

/** Turns of a sampled episode that are tried: later ones repeat what earlier ones show. */
const TURNS = 12;
/** Changes that may be needed together. */
const ROUNDS = 3;

interface Scored {
  readonly candidate: Configured;
  /** Text of its template: names the variables that can be changed next. */
  readonly template: string;
  readonly turns: number;
  /** Tokens between the log and ours: tells which of two changes that are only right together is right. */
  readonly distance: number;
}

/** A turn whose log says something that can be compared. */
const comparable = (turn: Turn): boolean =>
  turn.promptIds !== null ||
  turn.promptTokens !== null ||
  turn.completionTokens !== null ||
  Object.keys(turn.recordedPositions).some(isNamed);

/**
 * Looks on a sample of one model's episodes for the settings its log was made with: every single change of the configured
 * ones, then every change of the best.
 * @param chat the configured setup
 * @returns the trials, the best first; those that agree less than the configured settings are left out
 */
export async function trySettings(
  folder: string,
  chat: ChatSetup,
  sample: readonly Episode[],
): Promise<{ readonly configured: SettingTrial; readonly better: readonly SettingTrial[] }> {
  const episodes = sample.map((episode) => ({ ...episode, turns: episode.turns.slice(0, TURNS) }));
  const checked = episodes.reduce((sum, episode) => sum + episode.turns.filter(comparable).length, 0);
  const model = episodes[0].model;
  const { tokenizer } = chat;
  const logged = episodes.flatMap((episode) => episode.turns).find((turn) => turn.promptIds !== null)?.promptIds;
  const around = {
    knowsHarmony: ['<|start|>', '<|channel|>', '<|message|>', '<|call|>'].every(
      (token) => tokenizer.idOf(token) !== null,
    ),
    sample: episodes,
    loggedPrompt:
      logged === undefined || logged === null
        ? (episodes[0].turns[0]?.promptText ?? null)
        : Buffer.concat(logged.slice(0, PROMPT_HEAD).map((id) => tokenizer.tokenBytes(id))).toString('utf8'),
  };
  const score = async (candidate: Configured): Promise<Scored | null> => {
    let setup: ChatSetup;
    try {
      setup = await openChat({
        folder,
        tokenizer,
        settings: { ...candidate.settings, context: { limit: null, policy: 'skip' } },
        contextLimit: null,
        positions: [],
        pooling: 'none',
        recordedBy: () => candidate.recorded,
      });
    } catch (error) {
      // A stack or variable that this model cannot have: not what the log was made with.
      if (error instanceof UserError || error instanceof DataError) return null;
      throw error;
    }
    const verifier = createVerifier(tokenizer);
    let built = 0;
    for (const episode of episodes) {
      try {
        const { facts } = buildSequences(episode, setup);
        built += facts.filter((fact) => comparable(episode.turns[fact.turn])).length;
        verifier.add(episode, facts, candidate.recorded);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
      }
    }
    const { checkedTurns, agreedTurns } = verifier.result();
    return {
      candidate,
      template: setup.template.text,
      // What a stack takes from the log as it is has nothing left to disagree.
      turns: built - (checkedTurns - agreedTurns),
      distance: verifier.distance() + (checked - built) * MISSING,
    };
  };
  const configured = { settings: chat.settings, recorded: chat.recordedBy(model) };
  const start = await score(configured);
  if (start === null) throw new Error('the configured settings cannot be opened a second time');
  const found: Scored[] = [];
  let best = start;
  for (let round = 0; round < ROUNDS && best.turns < checked; round += 1) {
    let next = best;
    for (const candidate of candidates(best.candidate, { ...around, template: best.template })) {
      const scored = await score(candidate);
      if (scored === null) continue;
      if (scored.turns > start.turns) found.push(scored);
      // Taking the log's own prompts always agrees and explains nothing: other changes are looked for all the same.
      if (!isRaw(scored) && isBetter(scored, next)) next = scored;
    }
    if (next === best) break;
    best = next;
  }
  const trial = ({ candidate, turns }: Scored): SettingTrial => ({
    setting: describeChange(configured, candidate),
    checked,
    agreed: turns,
    rate: turns / checked,
  });
  found.sort((a, b) => b.turns - a.turns || Number(isRaw(a)) - Number(isRaw(b)) || a.distance - b.distance);
  return { configured: trial(start), better: found.slice(0, SHOWN).map(trial) };
}

/** Tokens of a logged prompt in which its date stands. */
const PROMPT_HEAD = 400;
/** Distance of a turn that a setting cannot render at all. */
const MISSING = 10_000;
/** Better settings that are kept. */
const SHOWN = 5;

const isBetter = (a: Scored, b: Scored): boolean =>
  a.turns > b.turns || (a.turns === b.turns && a.distance < b.distance);
const isRaw = ({ candidate }: Scored): boolean => candidate.settings.stack === 'raw';
