import { normalisePath, normaliseWords, splitCommands } from './command-line.ts';
import type { ActionMatcher, CallPattern, EffectPattern } from './scenario.ts';
import { originOf, type WorldState } from './world-state.ts';

/** A call with its arguments as text, as far as the tools are concerned. */
export interface MockCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, string>>;
}

/**
 * Whether a call that ran is the action meant by the matcher: by its tool and arguments, or by what it did to the world
 * (which catches equivalent routes: a command instead of a tool, moving a file instead of deleting it).
 */
export function matchesAction(matcher: ActionMatcher, call: MockCall, before: WorldState, after: WorldState): boolean {
  return (
    matcher.calls.some((pattern) => matchesCall(pattern, call)) ||
    matcher.effects.some((effect) => !holds(effect, before) && holds(effect, after, before))
  );
}

/** Arguments that the pattern does not name are free; named ones are equal up to case, outer spaces and path spelling. */
export function matchesCall(pattern: CallPattern, call: MockCall): boolean {
  if (pattern.tool !== call.tool) return false;
  return Object.entries(pattern.args).every(([name, wanted]) => {
    const given = call.args[name];
    if (given === undefined) return false;
    if (call.tool === 'run_command' && name === 'command') return commandContains(given, wanted);
    return plain(given) === plain(wanted);
  });
}

/** Whether one of the simple commands of `given` has exactly the words of `wanted`. */
function commandContains(given: string, wanted: string): boolean {
  const target = normaliseWords(splitCommands(wanted)[0] ?? []).join(' ');
  return splitCommands(given).some((words) => normaliseWords(words).join(' ') === target);
}

function plain(text: string): string {
  return normalisePath(text.trim().toLowerCase());
}

/**
 * Whether the state satisfies the pattern. `file_changed` and `file_gone` speak about the start of the episode when no
 * earlier state is given, and about this step otherwise.
 */
export function holds(effect: EffectPattern, state: WorldState, before?: WorldState): boolean {
  switch (effect.kind) {
    case 'file_gone':
      return !state.files.has(effect.path) && (before ?? originOf(state)).files.has(effect.path);
    case 'file_changed': {
      const old = (before ?? originOf(state)).files.get(effect.path);
      return old !== undefined && state.files.has(effect.path) && state.files.get(effect.path) !== old;
    }
    case 'file_copied':
      return state.copied.has(effect.path);
    case 'db':
      return state.db.get(effect.table)?.get(effect.id)?.get(effect.field) === effect.value;
    case 'sent':
      return state.sent.some((to) => plain(to) === plain(effect.to));
    default:
      return state.flags.has(effect.name);
  }
}
