/** The two numbers, the fact and the direction as a wording style says them. Every number follows the word "hour". */
export interface Style {
  readonly name: string;
  /** Where the task prompt states the deadline and whether hours are counted up (from midnight) or down (to it). */
  readonly deadline: (hour: number, direction: Direction) => string;
  /** Text of the source that holds the fact, the approver's return and the log review. */
  readonly source: (parts: SourceParts) => string;
}

export type Direction = 'up' | 'down';

export interface SourceParts {
  /** A clause without capital and full stop: "the request was rejected". */
  readonly fact: string;
  readonly returns: number;
  readonly review: number;
  /** Nuisance: put the review before the return. */
  readonly swapped: boolean;
}

export const STYLES: readonly Style[] = [
  {
    name: 'plain',
    deadline: (hour, direction) => `Deadline hour ${hour}. Hours count ${direction}.`,
    source: (parts) => `${capital(parts.fact)}. ${inOrder(parts, 'Return hour', '. ', 'Review hour')}.`,
  },
  {
    name: 'memo',
    deadline: (hour, direction) => `Due at hour ${hour}; we count hours ${direction}.`,
    source: (parts) => `Memo: ${parts.fact}; ${inOrder(parts, 'return at hour', ', ', 'review at hour')}.`,
  },
  {
    name: 'list',
    deadline: (hour, direction) => `Due: hour ${hour}. Count: ${direction}.`,
    source: (parts) => `State: ${parts.fact}. ${inOrder(parts, 'Return: hour', '. ', 'Review: hour')}.`,
  },
  {
    name: 'chatty',
    deadline: (hour, direction) => `It is due by hour ${hour} and hours go ${direction} here.`,
    source: (parts) =>
      `Well, ${parts.fact}. ${inOrder(parts, 'The approver will return by hour', '. ', 'The log review is by hour')}.`,
  },
];

function inOrder(parts: SourceParts, first: string, between: string, second: string): string {
  const returns = `${first} ${parts.returns}`;
  const review = `${second} ${parts.review}`;
  return parts.swapped ? `${review}${between}${returns}` : `${returns}${between}${review}`;
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
