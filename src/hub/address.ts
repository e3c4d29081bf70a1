import { UserError } from '../errors.ts';

/** `hf://OWNER/NAME@REV` or `hf://datasets/OWNER/NAME@REV`, with an optional path or glob inside the repository. */
export interface HubAddress {
  readonly type: 'model' | 'dataset';
  /** `OWNER/NAME` */
  readonly name: string;
  /** A commit (40 hex digits) or a tag. */
  readonly revision: string;
  /** Path or glob inside the repository, without a leading slash; '' = the whole of it. */
  readonly path: string;
}

export const isHubAddress = (text: string): boolean => /^hf:\/\//i.test(text);

const ADDRESS = /^hf:\/\/(datasets\/|models\/)?([\w][\w.-]*\/[\w][\w.-]*)(?:@([\w][\w.-]*))?(?:\/(.*))?$/;
/** Branches that every repository has: what they name changes. */
const MOVING: ReadonlySet<string> = new Set(['main', 'master', 'HEAD']);

/** @throws UserError (2) for another form, a missing revision, a branch, or a path that leaves the repository */
export function parseHubAddress(text: string): HubAddress {
  const match = ADDRESS.exec(text);
  const form = 'hf://OWNER/NAME@REV or hf://datasets/OWNER/NAME@REV';
  if (match === null) throw new UserError(`${text}: expected ${form}, got another form. Correct the address`);
  const [, kind, name, revision, path = ''] = match;
  if (revision === undefined || MOVING.has(revision))
    throw new UserError(
      `${text}: expected a revision that stays what it is (${form}), got ${revision === undefined ? 'none' : `the branch ${revision}`}. Name a commit of the repository, or a tag`,
    );
  if (path.split('/').includes('..'))
    throw new UserError(`${text}: expected a path inside the repository, got one with .. in it. Correct the address`);
  return { type: kind === 'datasets/' ? 'dataset' : 'model', name, revision, path };
}

/** Whether a file of the repository can match the address: below its path, up to the first wildcard. */
export function isUnder({ path }: HubAddress, file: string): boolean {
  if (path === '') return true;
  const wildcard = path.search(/[*?[{]/);
  if (wildcard >= 0) return file.startsWith(path.slice(0, wildcard));
  return file === path || file.startsWith(`${path.replace(/\/$/, '')}/`);
}
