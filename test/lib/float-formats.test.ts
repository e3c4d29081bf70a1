import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countNonFinite, toBfloat16, toFloat16, toFloat32 } from '../../src/lib/float-formats.ts';

const bytesOf = (values: ArrayBufferView): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));

const throughHalf = (...values: number[]): number[] => [
  ...toFloat32(bytesOf(toFloat16(Float32Array.from(values))), 'F16'),
];
const throughBrain = (...values: number[]): number[] => [
  ...toFloat32(bytesOf(toBfloat16(Float32Array.from(values))), 'BF16'),
];

/** Nearest multiple of the spacing at |x|, ties to even: the definition, in double precision. */
function nearest(x: number, significandBits: number, minExponent: number): number {
  if (x === 0 || !Number.isFinite(x)) return x;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), minExponent);
  const spacing = 2 ** (exponent - significandBits);
  const quotient = Math.abs(x) / spacing;
  const floor = Math.floor(quotient);
  const up = quotient - floor > 0.5 || (quotient - floor === 0.5 && floor % 2 !== 0);
  return Math.sign(x) * (up ? floor + 1 : floor) * spacing;
}

describe('float16', () => {
  it('gives the encodings of IEEE 754 binary16', () => {
    const known: [number, number][] = [
      [0, 0x0000],
      [-0, 0x8000],
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [65519.99, 0x7bff],
      [65520, 0x7c00],
      [Infinity, 0x7c00],
      [-Infinity, 0xfc00],
      [2 ** -14, 0x0400],
      [2 ** -24, 0x0001],
      [2 ** -25, 0x0000],
      [1.5 * 2 ** -25, 0x0001],
      [2 ** -26, 0x0000],
      [1 / 3, 0x3555],
    ];
    for (const [value, bits] of known) expect([value, toFloat16(Float32Array.of(value))[0]]).toEqual([value, bits]);
  });

  it('rounds to the nearest representable number, ties to even', () => {
    fc.assert(
      fc.property(fc.float({ min: -65504, max: 65504, noNaN: true }), (x) => {
        expect(throughHalf(x)[0]).toBe(nearest(x, 10, -14));
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps every one of its own 63,488 finite values', () => {
    const all = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
    const values = toFloat32(bytesOf(all), 'F16');
    const back = toFloat16(values);
    for (let i = 0; i < 1 << 16; i += 1) {
      if ((i & 0x7c00) === 0x7c00 && (i & 0x3ff) !== 0) expect(values[i]).toBeNaN();
      else expect(back[i]).toBe(i);
    }
  });

  it('keeps NaN a NaN', () => {
    expect(throughHalf(Number.NaN)[0]).toBeNaN();
    expect(throughBrain(Number.NaN)[0]).toBeNaN();
    // A NaN whose payload lies only in the bits that are dropped must not become infinite.
    const thin = new Float32Array(Uint32Array.of(0x7f800001).buffer);
    expect(toFloat32(bytesOf(toBfloat16(thin)), 'BF16')[0]).toBeNaN();
    expect(toFloat32(bytesOf(toFloat16(thin)), 'F16')[0]).toBeNaN();
  });
});

describe('bfloat16', () => {
  it('rounds to the nearest representable number, ties to even', () => {
    fc.assert(
      fc.property(fc.float({ min: Math.fround(-3e38), max: Math.fround(3e38), noNaN: true }), (x) => {
        expect(throughBrain(x)[0]).toBe(Math.fround(nearest(x, 7, -126)));
      }),
      { numRuns: 2000 },
    );
  });

  it('holds what float16 cannot', () => {
    expect(throughBrain(90112)[0]).toBe(90112);
    expect(throughHalf(90112)[0]).toBe(Infinity);
  });
});

describe('reading', () => {
  it('rounds float64 to float32 and gives float32 back bit for bit', () => {
    expect([...toFloat32(bytesOf(Float64Array.of(1 / 3, -2)), 'F64')]).toEqual([Math.fround(1 / 3), -2]);
    expect([...toFloat32(bytesOf(Float32Array.of(1.5, -0)), 'F32')]).toEqual([1.5, -0]);
  });

  it('refuses integers', () => {
    expect(() => toFloat32(new Uint8Array(8), 'I64')).toThrow(/floating tensor, got I64/);
  });

  it('counts infinities and NaN', () => {
    expect(countNonFinite(Float32Array.of(1, Infinity, Number.NaN, -Infinity, 3.4e38))).toBe(3);
  });
});
