import { capital } from './styles.ts';

/** An irrelevant surface change of the x− world. Its decisive fact and hours stay as they are. */
export interface Nuisance {
  readonly name: string;
  /** Changes the clause of the fact, or the words next to it. */
  readonly fact: (clause: string) => string;
  readonly source: (text: string) => string;
  readonly task: (text: string) => string;
  readonly swapped: boolean;
}

const same = (text: string): string => text;
export const NO_NUISANCE: Nuisance = { name: 'none', fact: same, source: same, task: same, swapped: false };

export const NUISANCES: readonly Nuisance[] = [
  { ...NO_NUISANCE, name: 'greeting', task: (text) => `Hello. ${text}` },
  { ...NO_NUISANCE, name: 'thanks', task: (text) => `${text} Thanks.` },
  { ...NO_NUISANCE, name: 'remark', source: (text) => `${text} The office was painted.` },
  { ...NO_NUISANCE, name: 'heading', source: (text) => `Entry of today. ${text}` },
  // The next three stand directly beside the words that decide.
  { ...NO_NUISANCE, name: 'near_before', fact: (clause) => `as of today ${clause}` },
  { ...NO_NUISANCE, name: 'near_after', fact: (clause) => `${clause} as noted` },
  { ...NO_NUISANCE, name: 'emphasis', fact: (clause) => `note that ${clause}` },
  { ...NO_NUISANCE, name: 'order', swapped: true },
  { ...NO_NUISANCE, name: 'capital', source: capital, task: (text) => text.replace(/\.$/, '!') },
];
