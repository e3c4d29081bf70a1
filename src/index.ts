/** Public API of forewarn, in the order of the flow (DESIGN.md section 3). */
export type * from './types.ts';
export * from './errors.ts';
