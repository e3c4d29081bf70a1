import { DataError } from '../errors.ts';

/**
 * One sequence could not be replayed; the others of the call may be. The replayer stays usable: the next call starts a
 * fresh process. Whoever calls decides how often to try the sequence again before setting it aside.
 */
export class SequenceError extends DataError {
  /** Index within the sequences given to `replay`. */
  readonly sequence: number;
  /** died: the process ended by a signal or crash; memory: it passed the cap and was ended; runtime: onnxruntime refused. */
  readonly kind: 'died' | 'memory' | 'runtime';
  constructor(sequence: number, kind: 'died' | 'memory' | 'runtime', message: string) {
    super(message);
    this.sequence = sequence;
    this.kind = kind;
  }
}
