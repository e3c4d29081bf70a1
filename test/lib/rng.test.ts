import { expect, test } from 'vitest';
import { hash32, normal, seededRng, shuffle } from '../../src/lib/rng.ts';

function draw(...parts: (string | number)[]): readonly number[] {
  const rng = seededRng(...parts);
  return Array.from({ length: 4 }, () => rng.next());
}

test('the same parts give the same stream and any other parts another', () => {
  expect(draw(1, 'folds')).toEqual(draw(1, 'folds'));
  expect(draw(1, 'folds')).not.toEqual(draw(2, 'folds'));
  expect(draw('a', 'bc')).not.toEqual(draw('ab', 'c'));
});

test('draws lie in [0, 1) and are uniform to within sampling error', () => {
  const rng = seededRng(7);
  const bins = Array.from({ length: 20 }, () => 0);
  const n = 100_000;
  for (let i = 0; i < n; i += 1) {
    const u = rng.next();
    expect(u >= 0 && u < 1).toBe(true);
    bins[Math.floor(u * 20)] += 1;
  }
  const chi2 = bins.reduce((sum, k) => sum + (k - n / 20) ** 2 / (n / 20), 0);
  expect(chi2).toBeLessThan(43.8); // 99.9 % point of chi-square with 19 degrees of freedom
});

test('streams of neighbouring seeds are uncorrelated', () => {
  let sum = 0;
  for (let seed = 0; seed < 4000; seed += 1) sum += (seededRng(seed).next() - 0.5) * (seededRng(seed + 1).next() - 0.5);
  expect(Math.abs(sum / 4000 / (1 / 12))).toBeLessThan(0.06);
});

test('below(n) reaches every integer under n and no other', () => {
  const rng = seededRng('below');
  expect([...new Set(Array.from({ length: 400 }, () => rng.below(7)))].sort((a, b) => a - b)).toEqual([
    0, 1, 2, 3, 4, 5, 6,
  ]);
});

test('shuffle keeps the items and gives each order equally often', () => {
  const rng = seededRng('orders');
  const counts = new Map<string, number>();
  for (let i = 0; i < 6000; i += 1) {
    const order = shuffle([1, 2, 3], rng).join('');
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(6);
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(130);
});

test('normal draws have mean 0 and variance 1', () => {
  const rng = seededRng('normal');
  const draws = Array.from({ length: 20_000 }, () => normal(rng));
  const mean = draws.reduce((a, b) => a + b, 0) / draws.length;
  const variance = draws.reduce((a, b) => a + (b - mean) ** 2, 0) / draws.length;
  expect(Math.abs(mean)).toBeLessThan(0.03);
  expect(Math.abs(variance - 1)).toBeLessThan(0.04);
});

test('hash32 is a 32-bit unsigned integer that depends on every part', () => {
  const seen = new Set(Array.from({ length: 5000 }, (_, i) => hash32(3, 'group', i)));
  expect(seen.size).toBeGreaterThan(4990);
  for (const h of seen) expect(Number.isInteger(h) && h >= 0 && h < 2 ** 32).toBe(true);
});
