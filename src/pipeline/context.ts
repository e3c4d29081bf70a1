import type { Clock, Progress } from '../types.ts';

/** What every command is handed: the outside world in three functions. */
export interface PipelineContext {
  readonly clock: Clock;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}
