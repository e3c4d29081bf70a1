/** str methods of Python that differ from JavaScript's. Lengths and indices are code points. */

/** What str.strip() without an argument removes, and what str.split() splits at. */
const SPACE = '\\t-\\r\\x1c-\\x1f \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const IS_SPACE = new RegExp(`^[${SPACE}]$`);
const LINE_END = /\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]/;

export const isSpace = (char: string): boolean => IS_SPACE.test(char);

/** @param chars the set of characters to remove; null = white space */
export function pythonStrip(value: string, chars: string | null, sides: 'both' | 'left' | 'right'): string {
  const set = chars === null ? null : new Set(chars);
  const strips = (char: string): boolean => (set === null ? IS_SPACE.test(char) : set.has(char));
  let from = 0;
  let to = value.length;
  if (sides !== 'right') {
    while (from < to) {
      const char = String.fromCodePoint(value.codePointAt(from) ?? 0);
      if (!strips(char)) break;
      from += char.length;
    }
  }
  if (sides !== 'left') {
    while (to > from) {
      const low = value.charCodeAt(to - 1);
      const pair = low >= 0xdc00 && low < 0xe000 && to - 2 >= from && (value.charCodeAt(to - 2) & 0xfc00) === 0xd800;
      const char = value.slice(to - (pair ? 2 : 1), to);
      if (!strips(char)) break;
      to -= char.length;
    }
  }
  return value.slice(from, to);
}

/** str.split(sep, maxsplit) and str.rsplit. `separator` null = runs of white space. */
export function pythonSplit(value: string, separator: string | null, most: number, fromRight: boolean): string[] {
  if (separator === null) return splitAtSpace(value, most, fromRight);
  const parts = value.split(separator);
  if (most < 0 || parts.length <= most + 1) return parts;
  return fromRight
    ? [parts.slice(0, parts.length - most).join(separator), ...parts.slice(parts.length - most)]
    : [...parts.slice(0, most), parts.slice(most).join(separator)];
}

function splitAtSpace(value: string, most: number, fromRight: boolean): string[] {
  const words = [...value.matchAll(new RegExp(`[^${SPACE}]+`, 'g'))];
  if (most < 0 || words.length <= most) return words.map((word) => word[0]);
  // The part that is not split keeps its white space, but for the side the splitting started from.
  if (fromRight) {
    const last = words[words.length - most - 1];
    const rest = value.slice(0, last.index + last[0].length);
    return [rest, ...words.slice(words.length - most).map((word) => word[0])];
  }
  return [...words.slice(0, most).map((word) => word[0]), value.slice(words[most].index)];
}

/** str.splitlines() */
export function pythonLines(value: string): string[] {
  const lines = value.split(LINE_END);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

export const codePoints = (value: string): number => {
  let count = value.length;
  for (let at = 0; at + 1 < value.length; at += 1) {
    if ((value.charCodeAt(at) & 0xfc00) === 0xd800 && (value.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count -= 1;
  }
  return count;
};

export function capitalize(value: string): string {
  const [first = '', ...rest] = Array.from(value);
  return first.toUpperCase() + rest.join('').toLowerCase();
}

/** str.title(): every run of letters. */
export const titleWords = (value: string): string => value.replace(/\p{L}+/gu, (word) => capitalize(word));

/** jinja2's `title` filter: words are what follows white space, -, (, {, [ or <. */
export const titleFilter = (value: string): string =>
  value
    .split(/([-\s({[<]+)/)
    .map(capitalize)
    .join('');

/** str.replace(old, new, count); count < 0 = all */
export function pythonReplace(value: string, old: string, by: string, most: number): string {
  if (most < 0) return value.replaceAll(old, () => by);
  const points = old === '' ? Array.from(value) : value.split(old);
  if (old === '') {
    const out = points.map((char, index) => (index < most ? by + char : char)).join('');
    return most > points.length ? out + by : out;
  }
  return (
    points.slice(0, most + 1).join(by) +
    points
      .slice(most + 1)
      .map((part) => old + part)
      .join('')
  );
}

/** jinja2's `indent` filter. */
export function indentLines(value: string, indention: string, first: boolean, blank: boolean): string {
  const lines = pythonLines(`${value}\n`);
  const rest = lines.slice(1).map((line) => (blank || line !== '' ? indention + line : line));
  return [(first ? indention : '') + (lines[0] ?? ''), ...rest].join('\n');
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** strftime in the C locale. `now` holds a local time in its UTC fields. */
export function strftime(now: Date, format: string): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const month = MONTHS[now.getUTCMonth()];
  const day = DAYS[now.getUTCDay()];
  const hour = now.getUTCHours();
  const startOfYear = Date.UTC(now.getUTCFullYear(), 0, 1);
  const fields: Readonly<Record<string, string>> = {
    Y: String(now.getUTCFullYear()),
    y: two(now.getUTCFullYear() % 100),
    m: two(now.getUTCMonth() + 1),
    d: two(now.getUTCDate()),
    '-d': String(now.getUTCDate()),
    '-m': String(now.getUTCMonth() + 1),
    e: String(now.getUTCDate()).padStart(2, ' '),
    H: two(hour),
    I: two(hour % 12 === 0 ? 12 : hour % 12),
    p: hour < 12 ? 'AM' : 'PM',
    M: two(now.getUTCMinutes()),
    S: two(now.getUTCSeconds()),
    f: '000000',
    B: month,
    b: month.slice(0, 3),
    h: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    w: String(now.getUTCDay()),
    j: String(Math.floor((now.getTime() - startOfYear) / 86_400_000) + 1).padStart(3, '0'),
    F: `${now.getUTCFullYear()}-${two(now.getUTCMonth() + 1)}-${two(now.getUTCDate())}`,
    T: `${two(hour)}:${two(now.getUTCMinutes())}:${two(now.getUTCSeconds())}`,
    n: '\n',
    t: '\t',
    z: '',
    Z: '',
    '%': '%',
  };
  return format.replace(/%(-?[a-zA-Z%])/g, (whole, code: string) => fields[code] ?? whole);
}
