/**
 * What one rendering may cost. Every step of the interpreter and every character it makes is counted, so a template that
 * loops or doubles a string stops at the same place on every machine, without a second process to watch it.
 */
export class TemplateLimitError extends Error {}

export interface Limits {
  /** Nodes evaluated. The most wasteful template of the fixtures (Command R7B, quadratic) takes 1,200,000 for 200 turns. */
  readonly steps: number;
  /** Characters of all intermediate strings together; 200 turns of 2,300 characters take 6,000,000. */
  readonly characters: number;
}
/** For rows of a log. */
export const ROW_LIMITS: Limits = { steps: 100_000_000, characters: 1 << 29 };
/** For the invented transcripts of four messages that a new template is tried on. */
export const TRIAL_LIMITS: Limits = { steps: 2_000_000, characters: 1 << 26 };

/** Calls of macros within one another: Python stops at 1,000 frames, of which one call takes about six. */
export const MOST_DEPTH = 160;

export class Budget {
  private readonly limits: Limits;
  private steps = 0;
  private characters = 0;
  constructor(limits: Limits) {
    this.limits = limits;
  }

  step(count = 1): void {
    this.steps += count;
    if (this.steps > this.limits.steps) throw stopped(this.limits.steps, 'steps (time)');
  }

  /** To be called before the string is made. */
  text(length: number): void {
    this.characters += length;
    if (this.characters > this.limits.characters) throw stopped(this.limits.characters, 'characters (memory)');
  }

  /** A search of `needle` in `text`: its worst case is their product. */
  search(text: string, needle: string): void {
    this.step(Math.ceil((text.length * Math.max(1, needle.length)) / 512));
  }
}

function stopped(limit: number, what: string): TemplateLimitError {
  return new TemplateLimitError(`stopped by the limit of ${limit.toLocaleString('en')} ${what}`);
}
