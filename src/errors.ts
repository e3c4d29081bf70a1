/**
 * Errors that a caller acts on, one class per exit code (DESIGN.md section 4).
 * Every message is one line: `<file or config path>: expected …, got …. <what to do>`.
 * Anything that is not one of these is a bug of ours: exit 1 with its stack.
 */
export class ForewarnError extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.exitCode = exitCode;
  }
}

/** The command line or the configuration is wrong. Exit 2. */
export class UserError extends ForewarnError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 2, options);
  }
}

/** The data, model, tokenizer or template given cannot be used as it is. Exit 65 (EX_DATAERR). */
export class DataError extends ForewarnError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 65, options);
  }
}

/** A file that was whole once is damaged: truncated, altered, or with bytes that do not match their hash. Exit 65. */
export class CorruptFileError extends DataError {}

/** The disk is full, read-only or failing. Exit 74 (EX_IOERR). */
export class DiskError extends ForewarnError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 74, options);
  }
}

/** Something passing (a lock, a busy resource, a killed child): the same command may succeed later. Exit 75 (EX_TEMPFAIL). */
export class TryAgainError extends ForewarnError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 75, options);
  }
}

/** What is on disk belongs to another run, model, tokenizer or data set than the one asked for. Exit 78 (EX_CONFIG). */
export class MismatchError extends ForewarnError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 78, options);
  }
}

/** The user pressed Ctrl-C (130) or the scheduler sent SIGTERM (143). The run can be resumed. */
export class InterruptedError extends ForewarnError {}
