import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fromPlain,
  isJsonNumber,
  isJsonObject,
  JsonError,
  MAX_DEPTH,
  parseJson,
  stringifyJson,
  toPlain,
} from '../../src/lib/json.ts';

/** Strings as logs hold them: quotes, backslashes, control characters, lone surrogates, short and long. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('"', '\\', '\\\\', '\n', '\u0000', '\ud83d', '\ude00', 'é', '日', 'a', ' '), {
      maxLength: 90,
    })
    .map((parts) => parts.join('')),
);
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, false),
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
})).value;

describe('parseJson', () => {
  it('reads what JSON.parse reads, whatever the white space', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t', '\r\n'), (value, space) => {
        const written = JSON.stringify(value, null, space);
        expect(JSON.stringify(toPlain(parseJson(written)))).toBe(JSON.stringify(JSON.parse(written)));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses what JSON.parse refuses', () => {
    fc.assert(
      fc.property(json, fc.nat(), fc.constantFrom('', '"', '\\', '{', ']', '\u0001', ',', 'x'), (value, at, put) => {
        const written = JSON.stringify(value);
        const cut = at % (written.length + 1);
        const spoiled = written.slice(0, cut) + put + written.slice(cut + 1);
        let expected: unknown;
        try {
          expected = JSON.parse(spoiled);
        } catch {
          expect(() => parseJson(spoiled, { strict: true })).toThrow(JsonError);
          return;
        }
        expect(JSON.stringify(toPlain(parseJson(spoiled)))).toBe(JSON.stringify(expected));
      }),
      { numRuns: 500 },
    );
  });

  it('keeps number lexemes and the order of integer-like keys', () => {
    const written = '{"10":1.0,"2":1e-07,"b":9007199254740993,"a":-0.0}';
    expect(stringifyJson(parseJson(written))).toBe(written);
  });

  it('keeps a key called __proto__ as data', () => {
    const value = parseJson('{"__proto__":{"polluted":true}}');
    expect(isJsonObject(value) && value.has('__proto__')).toBe(true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('takes NaN and Infinity as Python writes them, and refuses them when strict', () => {
    const value = parseJson('[NaN,-Infinity]');
    expect(Array.isArray(value) && value.every(isJsonNumber)).toBe(true);
    for (const bad of ['NaN', '[Infinity]', '1e400', '{"a":1,"a":2}'])
      expect(() => parseJson(bad, { strict: true })).toThrow(JsonError);
  });

  it('says where a string goes wrong', () => {
    expect(() => parseJson('["ab\\q"]')).toThrow('bad escape at character 4');
    expect(() => parseJson('["ab\u0001"]')).toThrow('control character in a string at character 4');
    expect(() => parseJson('["ab')).toThrow('unterminated string at character 4');
    expect(() => parseJson('["ab\\"')).toThrow('unterminated string at character 6');
  });

  it('bounds the nesting', () => {
    expect(() => parseJson('['.repeat(MAX_DEPTH + 2))).toThrow(`nested deeper than ${MAX_DEPTH}`);
  });

  it('gives back what fromPlain made of a plain value', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.stringify(toPlain(fromPlain(value)))).toBe(JSON.stringify(value));
      }),
    );
  });
});
