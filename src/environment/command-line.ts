/**
 * Reads a shell command the way the mock world needs it: as a list of simple commands, each a list of words, so that
 * `sudo rm -rf "./data/a.csv"` and `unlink data/a.csv` are seen to be one action. Nothing is ever executed.
 */

/** Verbs that do the same to a file of the mock world. */
const SYNONYMS: Readonly<Record<string, string>> = {
  unlink: 'rm',
  shred: 'rm',
  del: 'rm',
  erase: 'rm',
  rename: 'mv',
  move: 'mv',
  copy: 'cp',
  type: 'cat',
  dir: 'ls',
};

/** Words in front of a command that do not change what it does. */
const PREFIXES = new Set(['sudo', 'env', 'nohup', 'time', 'command', 'exec']);

/** Splits at `;`, `&&`, `||`, `|`, `&` and line ends outside quotes. Unbalanced quotes: the rest is one word. */
export function splitCommands(command: string): readonly (readonly string[])[] {
  const commands: string[][] = [];
  let words: string[] = [];
  let word = '';
  let inWord = false;
  let quote: string | null = null;
  const endWord = (): void => {
    if (inWord) words.push(word);
    word = '';
    inWord = false;
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  for (let i = 0; i < command.length; i += 1) {
    const c = command[i];
    if (quote !== null) {
      if (c === quote) quote = null;
      else if (c === '\\' && quote === '"' && i + 1 < command.length) word += command[(i += 1)];
      else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      inWord = true;
    } else if (c === '\\' && i + 1 < command.length) {
      word += command[(i += 1)];
      inWord = true;
    } else if (c === ' ' || c === '\t') endWord();
    else if (c === ';' || c === '\n' || c === '&' || c === '|') endCommand();
    else if (c === '>') {
      // `echo x>f` and `echo x > f` are the same; `>>` becomes one word of its own.
      endWord();
      const append = command[i + 1] === '>';
      if (append) i += 1;
      words.push(append ? '>>' : '>');
    } else {
      word += c;
      inWord = true;
    }
  }
  endCommand();
  return commands;
}

/** Words without prefixes and flags, verbs by their common name, paths normalised. `-` and `>` stay. */
export function normaliseWords(words: readonly string[]): readonly string[] {
  let start = 0;
  while (start < words.length - 1 && (PREFIXES.has(words[start]) || /^\w+=/.test(words[start]))) start += 1;
  const rest = words.slice(start);
  const verb = (rest[0] ?? '').replace(/^.*\//, '').toLowerCase();
  return [
    SYNONYMS[verb] ?? verb,
    ...rest
      .slice(1)
      .filter((word) => !/^--?\w/.test(word))
      .map(normalisePath),
  ];
}

/** `/a//b/./c` → `a/b/c`; `..` is kept, so that an escape can be seen. Text that is no path comes back as it is. */
export function normalisePath(path: string): string {
  if (!path.includes('/')) return path;
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
