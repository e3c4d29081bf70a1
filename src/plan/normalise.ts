/** A text as the tokenizer's model sees it, and where each of its UTF-16 units came from. */
export interface NormalisedText {
  readonly text: string;
  /** Start and end of each unit in the text it came from; null = nothing moved. */
  readonly starts: Int32Array | null;
  readonly ends: Int32Array | null;
}

/** One step of a normaliser. @throws Error naming the kind that is not known */
export type Normalise = (text: string) => NormalisedText;

/** `normalizer` of a tokenizer.json, as far as it is read here. */
export interface NormalizerJson {
  readonly type?: string;
  readonly normalizers?: readonly NormalizerJson[];
  readonly pattern?: { readonly String?: string; readonly Regex?: string };
  readonly content?: string;
}

const same = (text: string): NormalisedText => ({ text, starts: null, ends: null });

/**
 * A normaliser that keeps offsets, after `normalizer` of a tokenizer.json.
 * `Prepend` is not applied: a token's leading space that the text lacks is known to the walk over the bytes.
 */
export function alignedNormaliser(json: NormalizerJson | null | undefined): Normalise {
  switch (json?.type) {
    case undefined:
    case 'Prepend':
      return same;
    case 'Sequence':
      return inOrder((json.normalizers ?? []).map(alignedNormaliser));
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD': {
      const form = json.type;
      return (text) => unicodeForm(text, form);
    }
    case 'Lowercase':
      return (text) => pieces(text, Array.from(text), (char) => char.toLowerCase());
    case 'Replace':
      return replacing(json);
    default:
      return () => {
        throw new Error(`the tokenizer's normalizer ${json?.type} is not known: token positions cannot be computed`);
      };
  }
}

function inOrder(steps: readonly Normalise[]): Normalise {
  return (text) => {
    let all = same(text);
    for (const step of steps) all = after(all, step(all.text));
    return all;
  };
}

/** Offsets of the second step, told in the text of the first. */
function after(first: NormalisedText, second: NormalisedText): NormalisedText {
  if (second.starts === null || second.ends === null)
    return { text: second.text, starts: first.starts, ends: first.ends };
  if (first.starts === null || first.ends === null) return second;
  const { starts, ends } = first;
  return {
    text: second.text,
    starts: second.starts.map((at) => starts[at]),
    ends: second.ends.map((at) => (at === 0 ? 0 : ends[at - 1])),
  };
}

function replacing({ pattern, content = '' }: NormalizerJson): Normalise {
  const expression =
    pattern?.Regex === undefined
      ? new RegExp((pattern?.String ?? '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gu')
      : new RegExp(pattern.Regex, 'gu');
  return (text) => {
    // The usual one, a space by a lower one eighth block, moves nothing.
    const parts: string[] = [];
    const by = new Map<number, string>();
    let at = 0;
    for (const match of text.matchAll(expression)) {
      if (match[0] === '') continue;
      if (match.index > at) parts.push(text.slice(at, match.index));
      by.set(parts.length, content);
      parts.push(match[0]);
      at = match.index + match[0].length;
    }
    if (by.size === 0) return same(text);
    if (at < text.length) parts.push(text.slice(at));
    return pieces(text, parts, (part, index) => by.get(index) ?? part);
  };
}

/** Hangul vowels and trailing consonants, and the Kirat Rai vowels, join what stands before them without being marks. */
const JOINS = /[\p{M}\u1160-\u11ff\ud7b0-\ud7fb\u{16d63}\u{16d67}-\u{16d6a}]/u;

/** Cuts where appending the next character leaves the normal form of what stands before it as it is. */
function unicodeForm(text: string, form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): NormalisedText {
  if (text.normalize(form) === text) return same(text);
  const clusters: string[] = [];
  let cluster = '';
  for (const char of text) {
    const apart =
      cluster !== '' &&
      (char < '\u0080' ||
        (!JOINS.test(char) && (cluster + char).normalize(form) === cluster.normalize(form) + char.normalize(form)));
    if (apart) {
      clusters.push(cluster);
      cluster = '';
    }
    cluster += char;
  }
  if (cluster !== '') clusters.push(cluster);
  return pieces(text, clusters, (part) => part.normalize(form));
}

/** `parts` joined are `text`; each becomes `change` of it. A part's unchanged edges keep their own offsets, its middle is one block. */
function pieces(
  text: string,
  parts: readonly string[],
  change: (part: string, index: number) => string,
): NormalisedText {
  const changed = parts.map(change);
  const out = changed.join('');
  if (out === text) return same(text);
  const starts = new Int32Array(out.length);
  const ends = new Int32Array(out.length);
  let to = 0;
  let from = 0;
  for (const [index, part] of parts.entries()) {
    const now = changed[index];
    const least = Math.min(part.length, now.length);
    let head = 0;
    while (head < least && part[head] === now[head]) head += 1;
    let tail = 0;
    while (tail < least - head && part[part.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
    for (let k = 0; k < now.length; k += 1) {
      if (k < head) starts[to] = from + k;
      else if (k >= now.length - tail) starts[to] = from + part.length - (now.length - k);
      else starts[to] = from + head;
      ends[to] = k < head || k >= now.length - tail ? starts[to] + 1 : from + part.length - tail;
      to += 1;
    }
    from += part.length;
  }
  return { text: out, starts, ends };
}

/**
 * A whole text: control tokens are cut out before the normaliser runs, as in the tokenizer (a mark after one would else melt
 * into its last character).
 * @param splitter with one group, matches the control tokens; null = there are none
 * @param byteLevel false for vocabularies that write a space as U+2581: there both become a space, as in the token's bytes
 */
export function normalised(text: string, splitter: RegExp | null, step: Normalise, byteLevel: boolean): NormalisedText {
  const parts = splitter === null ? [text] : text.split(splitter);
  const done = parts.map((part, index) => (index % 2 === 1 ? same(part) : step(part)));
  const joined = done.map((part) => part.text).join('');
  const out = byteLevel ? joined : joined.replaceAll('\u2581', ' ');
  if (done.every((part) => part.starts === null)) return same(out);
  const starts = new Int32Array(out.length);
  const ends = new Int32Array(out.length);
  let to = 0;
  let from = 0;
  for (const [index, part] of done.entries()) {
    for (let k = 0; k < part.text.length; k += 1) {
      starts[to + k] = from + (part.starts?.[k] ?? k);
      ends[to + k] = from + (part.ends?.[k] ?? k + 1);
    }
    to += part.text.length;
    from += parts[index].length;
  }
  return { text: out, starts, ends };
}
