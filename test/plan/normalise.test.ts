import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { alignedNormaliser, normalised } from '../../src/plan/normalise.ts';

const nfc = alignedNormaliser({ type: 'NFC' });

/** What each unit of the normal form came from. */
const sources = (text: string, step = nfc): string[] => {
  const { text: out, starts, ends } = step(text);
  return Array.from({ length: out.length }, (_, k) => `${out[k]}<${text.slice(starts?.[k] ?? k, ends?.[k] ?? k + 1)}`);
};

describe('a normaliser that keeps offsets', () => {
  it('holds a composed character against all that it was made of', () => {
    expect(sources('ae\u0301b')).toEqual(['a<a', '\u00e9<e\u0301', 'b<b']);
    expect(sources('\u1112\u1161\u11ab')).toEqual(['\ud55c<\u1112\u1161\u11ab']);
  });
  it('leaves the line end before a lone mark alone', () => {
    expect(sources('\n\u0344')).toEqual(['\n<\n', '\u0308<\u0344', '\u0301<\u0344']);
  });
  it('holds reordered marks as one block', () => {
    expect(sources('q\u0307\u0323')).toEqual(['q<q', '\u0323<\u0307\u0323', '\u0307<\u0307\u0323']);
  });
  it('gives the normal form and offsets that cover the text without going back', () => {
    const text = fc.string({
      unit: fc.constantFrom(
        'a',
        '\n',
        'e',
        '\u0301',
        '\u0323',
        '\u1112',
        '\u1161',
        '\u11ab',
        '\u212b',
        '\u{1d15e}',
        '\u0344',
        '😀',
      ),
    });
    fc.assert(
      fc.property(text, fc.constantFrom('NFC', 'NFD', 'NFKC', 'NFKD'), (input, form) => {
        const { text: out, starts, ends } = alignedNormaliser({ type: form })(input);
        expect(out).toBe(input.normalize(form));
        if (starts === null || ends === null) return;
        let covered = 0;
        for (let k = 0; k < out.length; k += 1) {
          expect(starts[k]).toBeLessThanOrEqual(covered);
          expect(ends[k]).toBeGreaterThanOrEqual(covered);
          covered = ends[k];
        }
        expect(covered).toBe(input.length);
      }),
    );
  });
  it('goes through the steps of a sequence', () => {
    const step = alignedNormaliser({
      type: 'Sequence',
      normalizers: [
        { type: 'NFC' },
        { type: 'Lowercase' },
        { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' },
        { type: 'Replace', pattern: { Regex: 'x+' }, content: 'yz' },
      ],
    });
    expect(sources('E\u0301 xxQ', step)).toEqual(['\u00e9<E\u0301', '\u2581< ', 'y<xx', 'z<xx', 'q<Q']);
  });
  it('is not applied across control tokens', () => {
    const { text } = normalised('<|end|>\u0338', /(<\|end\|>)/, nfc, true);
    expect(text).toBe('<|end|>\u0338');
  });
  it('says which normaliser it does not know, and only where offsets are wanted', () => {
    const step = alignedNormaliser({ type: 'Precompiled' });
    expect(() => step('x')).toThrow("the tokenizer's normalizer Precompiled is not known");
  });
});
