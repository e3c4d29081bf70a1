/** Length of the common prefix of two id sequences. */
export function commonPrefix(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a[at] === b[at]) at += 1;
  return at;
}

/** Lexicographic order of id sequences: neighbours share the longest prefixes, so one walk over them is the trie. */
export function compareIds(a: Int32Array, b: Int32Array): number {
  const at = commonPrefix(a, b);
  return at < a.length && at < b.length ? a[at] - b[at] : a.length - b.length;
}
