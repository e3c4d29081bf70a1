import { UserError } from '../errors.ts';
import type { Capture, Episode, Exclusion, Pooling, SequencePlan } from '../types.ts';
import type { Family } from './chat/family-type.ts';
import { promptRenderer } from './chat/history.ts';
import type { MessageStyle } from './chat/messages.ts';
import type { ChatTemplate } from './chat/template.ts';
import { type Generated, generatedTurn } from './generated.ts';
import { observationMarks, observationTokens } from './observations.ts';
import { generatedPositions } from './positions.ts';
import { PromptError, type PromptOptions, type TurnPrompt, turnPrompt } from './prompts.ts';
import { type RecordedOrigin, recordedIndex } from './recorded.ts';
import type { ReplaySettings } from './settings.ts';
import type { OpenTokenizer } from './tokenizer.ts';
import type { TurnFacts } from './verify.ts';

export interface ChatSetup {
  readonly tokenizer: OpenTokenizer;
  readonly template: ChatTemplate;
  readonly family: Family;
  readonly settings: ReplaySettings;
  /** Tokens the model can take; the smaller of its own limit and the configured one. */
  readonly contextLimit: number | null;
  /** Positions wanted, by name (DESIGN.md section 2). */
  readonly positions: readonly string[];
  readonly pooling: Pooling;
  /** How the recorded positions of a model's episodes count (mapping). */
  readonly recordedBy: (model: string) => RecordedOrigin;
  /** Text that ends a turn, with its control token: found once by `endOfTurn`. */
  readonly endOfTurn: string;
}

export interface BuiltSequences {
  readonly sequences: readonly SequencePlan[];
  readonly exclusions: readonly Exclusion[];
  /** Of every turn that has ids, for comparison with what its log says (verify.ts). */
  readonly facts: readonly TurnFacts[];
}

/** Stands where a field's text was: a private-use character no log holds and no template touches. */
const SENTINEL = '\ue0a5forewarn\ue0a5';

/** What closes an assistant message, up to and with its control token, found by rendering one. */
export function endOfTurn(template: ChatTemplate, tokenizer: OpenTokenizer): string {
  const message = (role: string, content: string): Map<string, string> =>
    new Map([
      ['role', role],
      ['content', content],
    ]);
  const rendered = template.render(
    [message('user', 'a'), message('assistant', SENTINEL), message('user', 'b')],
    null,
    false,
  );
  const tail = rendered.slice(rendered.indexOf(SENTINEL) + SENTINEL.length);
  const ids = tokenizer.encode(tail);
  let text = '';
  for (const id of ids) {
    const token = new TextDecoder().decode(tokenizer.tokenBytes(id));
    text += token;
    if (/^<.*>$/.test(token)) return text;
  }
  return '';
}

/** Both names of the first call: pre_action and pre_action:0. */
const plainName = (name: string): string => name.replace(/:0$/, '');

const OWN_POOLING = /^(span:.*):(last|mean|max|ema)$/;

/** Wanted positions by the name they are found under: a span may be wanted under several poolings (`span:report:max`). */
function wantedPositions({
  positions,
  pooling,
}: Pick<ChatSetup, 'positions' | 'pooling'>): ReadonlyMap<
  string,
  readonly { readonly position: string; readonly pooling: Pooling }[]
> {
  const wanted = new Map<string, { position: string; pooling: Pooling }[]>();
  for (const position of new Set(positions.map(plainName))) {
    const own = OWN_POOLING.exec(position);
    const name = own?.[1] ?? position;
    const list = wanted.get(name) ?? [];
    wanted.set(name, list);
    list.push({ position, pooling: (own?.[2] as Pooling | undefined) ?? pooling });
  }
  return wanted;
}

/** The cut is a multiple of this, so that neighbouring turns of a long episode lose the same tokens and share their prefix. */
const CUT_STEP = 2048;

/**
 * Every turn of an episode as the model saw it: prompt ids, then generated ids, with the wanted positions.
 * A turn without the field lacks the position; a turn that cannot be rendered is excluded with the template's reason.
 * @throws UserError (2) when the context policy is `error` and a sequence is too long
 */
export function buildSequences(logged: Episode, setup: ChatSetup): BuiltSequences {
  const { tokenizer, template, family, settings } = setup;
  const episode = settings.tools === 'none' ? { ...logged, tools: [] } : logged;
  const origin = setup.recordedBy(episode.model);
  const style: MessageStyle = {
    toolText: settings.toolText,
    historyReasoning: settings.historyReasoning,
    reasoningField: family.reasoningField,
    argumentsAsText: settings.stack === 'harmony',
  };
  const exclusions: Exclusion[] = [];
  const sequences: SequencePlan[] = [];
  const facts: TurnFacts[] = [];
  const wanted = wantedPositions(setup);
  const native = settings.toolText === 'native';
  const tools = native && episode.tools.length > 0 ? episode.tools : null;
  if (
    settings.stack !== 'raw' &&
    native &&
    !family.rendersCalls &&
    episode.turns.some((turn) => turn.calls.length > 0)
  ) {
    throw new UserError(
      `${episode.source.file}: row ${episode.source.row}: expected calls within the content, as ${template.path} knows no tools, got ${episode.turns.reduce((sum, turn) => sum + turn.calls.length, 0)} apart from it. Set replay.toolText to json-tags or tool_code`,
    );
  }
  const exclude = (turn: number, reason: string, detail: string): void => {
    exclusions.push({
      stage: 'plan',
      episode: episode.key,
      file: episode.source.file,
      row: episode.source.row,
      turn,
      reason,
      detail: `${episode.source.file}: row ${episode.source.row}: turn ${turn}: ${detail}`,
    });
  };
  const { stack } = settings;
  const prompting: PromptOptions = {
    tokenizer,
    template,
    style,
    tools,
    render:
      stack === 'raw'
        ? null
        : stack === 'harmony'
          ? (messages, schemas) => template.render(messages, schemas, true)
          : promptRenderer(template, family, settings.historyReasoning),
  };
  let callsBefore = 0;
  for (const turn of episode.turns) {
    const callsOfLast = callsBefore;
    callsBefore = turn.calls.length;
    let prompt: TurnPrompt;
    try {
      prompt = turnPrompt(episode, turn, prompting);
    } catch (error) {
      if (!(error instanceof PromptError)) throw error;
      exclude(turn.index, error.reason, error.message);
      continue;
    }
    const { ids: promptIds, text, source } = prompt;
    const written = family.write(turn, { prompt: text, endOfTurn: setup.endOfTurn });
    let made: Generated;
    try {
      made = generatedTurn(turn, written, text, setup);
    } catch (error) {
      exclude(turn.index, 'ids_differ', (error as Error).message);
      continue;
    }
    const { ids: generated, idsFrom } = made;
    const ids = new Int32Array(promptIds.length + generated.length);
    ids.set(promptIds, 0);
    ids.set(generated, promptIds.length);
    const isReport =
      made.emission.calls.length === 0 && turn.calls.length === 0 && turn.index === episode.turns.length - 1;
    const found = generatedPositions(made.tokens, promptIds.length, isReport);
    found.set('prompt_end', { start: promptIds.length - 1, end: promptIds.length, straddles: false });
    facts.push({
      turn: turn.index,
      rendered: prompt.rendered,
      ids,
      promptLength: promptIds.length,
      positions: new Map([
        ...Array.from(found, ([name, span]) => [name, span.start] as const),
        ['turn_end', ids.length - 1],
      ]),
      reconstructed: made.checked,
    });
    for (const [name, index] of Object.entries(turn.recordedPositions)) {
      const at = recordedIndex(index, origin, promptIds.length);
      if (at >= 0 && at < ids.length) found.set(`recorded:${name}`, { start: at, end: at + 1, straddles: false });
    }
    let captures: Capture[] = [];
    for (const [name, span] of found) {
      for (const { position, pooling } of wanted.get(name) ?? []) {
        const several = span.end - span.start > 1 || name.startsWith('span:');
        captures.push({ turn: turn.index, position, ...span, pooling: several ? pooling : 'none' });
      }
    }
    if (wanted.has('observation_end') && turn.index > 0 && source !== null) {
      const marks = observationMarks(source.messages, episode, turn.index - 1, callsOfLast, settings.toolText);
      const last = observationTokens(tokenizer, { ...source, text, ids: promptIds }, marks.slice(-1))[0];
      if (last)
        captures.push({
          turn: turn.index - 1,
          position: 'observation_end',
          start: last.end - 1,
          end: last.end,
          straddles: last.straddlesEnd,
          pooling: 'none',
        });
    }
    callsBefore = made.emission.calls.length;
    let cut: SequencePlan['cut'] = null;
    let kept = ids;
    const limit = setup.contextLimit;
    if (limit !== null && ids.length > limit) {
      if (settings.context.policy === 'error') {
        throw new UserError(
          `${episode.source.file}: row ${episode.source.row}: turn ${turn.index}: expected at most ${limit} tokens, got ${ids.length}. Set replay.context.policy to skip or truncate-middle`,
        );
      }
      const count = Math.ceil((ids.length - limit) / CUT_STEP) * CUT_STEP;
      const start = Math.floor(limit / 2);
      if (settings.context.policy === 'skip' || start + count > promptIds.length - 1) {
        exclude(turn.index, 'context_limit', `${ids.length} tokens, the limit is ${limit}`);
        continue;
      }
      cut = { start, count };
      kept = new Int32Array(ids.length - count);
      kept.set(ids.subarray(0, start), 0);
      kept.set(ids.subarray(start + count), start);
      captures = captures.flatMap((capture) => {
        if (capture.end <= start) return [capture];
        if (capture.start < start + count) return [];
        return [{ ...capture, start: capture.start - count, end: capture.end - count }];
      });
    }
    captures.sort((a, b) => a.start - b.start || (a.position < b.position ? -1 : 1));
    sequences.push({
      episode: episode.key,
      turn: turn.index,
      ids: kept,
      promptLength: promptIds.length - (cut?.count ?? 0),
      idsFrom,
      captures,
      cut,
    });
  }
  return { sequences, exclusions, facts };
}
