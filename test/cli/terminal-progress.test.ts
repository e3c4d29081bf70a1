import { describe, expect, it } from 'vitest';
import { createProgress, formatDuration } from '../../src/cli/terminal-progress.ts';

function harness(isTTY: boolean) {
  let now = 0;
  const lines: string[] = [];
  const progress = createProgress(
    { isTTY, columns: 100, write: (text) => lines.push(text) },
    { now: () => now, date: () => new Date(0) },
  );
  return { progress, lines, at: (ms: number) => (now = ms) };
}

describe('progress', () => {
  it('writes plain lines, no control characters, where there is no terminal', () => {
    const { progress, lines, at } = harness(false);
    progress.start('extract', 1000, 'tokens');
    at(1_000);
    progress.advance(10);
    at(20_000);
    progress.advance(500);
    at(40_000);
    progress.advance(1000);
    progress.end();
    expect(lines).toEqual([
      'extract (1,000 tokens)\n',
      'extract 50 % (500/1,000 tokens, 25/s, about 20 s left)\n',
      'extract 100 % (1,000/1,000 tokens, 25/s)\n',
      'extract: 1,000 tokens in 40 s\n',
    ]);
  });

  it('gives no estimate before there is anything to base it on', () => {
    const { progress, lines, at } = harness(true);
    progress.start('extract', 1000, 'tokens');
    at(1_000);
    progress.advance(5);
    expect(lines.join('')).not.toContain('left');
  });

  it('never writes a line wider than the terminal', () => {
    const { progress, lines, at } = harness(true);
    progress.start('x'.repeat(300), 10, 'tokens');
    at(10_000);
    progress.advance(5);
    // oxlint-disable-next-line no-control-regex -- the erase sequence is what is being removed
    for (const line of lines) expect(line.replace(/\r\u001b\[K/g, '').length).toBeLessThan(100);
  });

  it('keeps a note on its own line', () => {
    const { progress, lines } = harness(true);
    progress.start('a', 1, 'rows');
    progress.note('row 3 set aside');
    expect(lines).toContain('row 3 set aside\n');
  });
});

describe('formatDuration', () => {
  it('switches units where the smaller one stops being readable', () => {
    expect([5, 89, 90, 3600, 5_400, 36_000].map(formatDuration)).toEqual([
      '5 s',
      '89 s',
      '2 min',
      '60 min',
      '1.5 h',
      '10.0 h',
    ]);
  });
});
