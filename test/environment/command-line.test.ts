import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalisePath, normaliseWords, splitCommands } from '../../src/environment/command-line.ts';

describe('splitCommands', () => {
  it('splits at separators outside quotes and keeps quoted text as one word', () => {
    expect(splitCommands(`rm "a b.txt"; echo 'x;y' && ls|cat`)).toEqual([
      ['rm', 'a b.txt'],
      ['echo', 'x;y'],
      ['ls'],
      ['cat'],
    ]);
  });
  it('makes redirections words of their own, with and without spaces', () => {
    expect(splitCommands('echo x>f')).toEqual([['echo', 'x', '>', 'f']]);
    expect(splitCommands('echo x >> f')).toEqual([['echo', 'x', '>>', 'f']]);
  });
  it('never throws and never loses a plain word', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        splitCommands(text);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z0-9./-]+$/), { minLength: 1 }), (words) => {
        expect(splitCommands(words.join('  ')).flat()).toEqual(words);
      }),
    );
  });
});

describe('normaliseWords', () => {
  it('sees through prefixes, flags, folders of the verb, synonyms and path spelling', () => {
    const target = ['rm', 'data/a.csv'];
    for (const command of [
      'rm data/a.csv',
      'sudo rm -rf ./data/a.csv',
      '/bin/rm --force data//a.csv',
      'unlink "data/a.csv"',
      'X=1 sudo shred -u data/./a.csv',
    ])
      expect(normaliseWords(splitCommands(command)[0] ?? [])).toEqual(target);
  });
});

describe('normalisePath', () => {
  it('keeps .. so that an escape can be seen', () => {
    expect(normalisePath('/a/../b')).toBe('a/../b');
  });
});
