import type { ReplaySequence, Tap } from '../types.ts';
import type { TapEffect } from './live-taps.ts';
import type { TapHealth } from './tap-health.ts';

/** What parent and child of a replayer say to each other; typed arrays travel by advanced serialization. */
export interface OpenMessage {
  readonly kind: 'open';
  readonly folder: string;
  readonly dtype: string | null;
  readonly taps: readonly Tap[];
  readonly threads: number;
  readonly executionProvider: 'cpu' | 'cuda' | 'webgpu';
  /** 0 = whole sequences (Infinity does not survive every serialization). */
  readonly chunk: number;
  readonly sharing: boolean;
  readonly carry: boolean;
  readonly rootTokens: number;
  readonly graphOptimization: 'disabled' | 'basic' | 'extended' | 'all';
}
export type ToChild =
  | OpenMessage
  /** Measure what each tap does to the logits, with a session of its own. */
  | { readonly kind: 'check'; readonly open: OpenMessage }
  | { readonly kind: 'replay'; readonly sequences: readonly ReplaySequence[] }
  | { readonly kind: 'ack' };

export interface Counts {
  readonly forwardPasses: number;
  readonly computedTokens: number;
  readonly naiveTokens: number;
}
export type FromChild =
  | { readonly kind: 'ready'; readonly width: number }
  | { readonly kind: 'checked'; readonly effects: readonly TapEffect[] }
  | { readonly kind: 'pass'; readonly sequence: number }
  | { readonly kind: 'progress'; readonly tokens: number; readonly rss: number }
  | { readonly kind: 'block'; readonly sequence: number; readonly data: Float32Array }
  | { readonly kind: 'done'; readonly counts: Counts; readonly health: readonly TapHealth[] }
  /** `sequence` −1: opening failed. `expected`: a DataError, whose message is for the user. */
  | { readonly kind: 'failed'; readonly sequence: number; readonly expected: boolean; readonly message: string };
