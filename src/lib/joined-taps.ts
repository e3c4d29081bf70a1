/**
 * Several taps read as one, their columns side by side in the order named, are written `resid_post.4+resid_post.8`, so
 * that selection, tables and cards need no second kind of candidate.
 */
const SEPARATOR = '+';

export const joinTaps = (taps: readonly string[]): string => taps.join(SEPARATOR);

export const splitTap = (tap: string): readonly string[] => tap.split(SEPARATOR);
