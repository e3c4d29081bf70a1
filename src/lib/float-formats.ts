import { CorruptFileError } from '../errors.ts';

/** Storage formats of floating numbers. Node 20 has no Float16Array; these run at memory speed next to inference. */

/** float32 values of bytes stored as F32, F64, F16 or BF16. F32 is a view, the others are converted. */
export function toFloat32(bytes: Uint8Array<ArrayBuffer>, dtype: string): Float32Array<ArrayBuffer> {
  if (dtype === 'F32') return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  if (dtype === 'F64') return Float32Array.from(new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8));
  if (dtype !== 'BF16' && dtype !== 'F16') throw new CorruptFileError(`expected a floating tensor, got ${dtype}`);
  const half = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  const words = new Uint32Array(half.length);
  if (dtype === 'BF16') for (let i = 0; i < half.length; i += 1) words[i] = half[i] << 16;
  else for (let i = 0; i < half.length; i += 1) words[i] = halfToFloatBits(half[i]);
  return new Float32Array(words.buffer);
}

function halfToFloatBits(h: number): number {
  const sign = (h & 0x8000) << 16;
  const exponent = (h >> 10) & 0x1f;
  let fraction = h & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f800000 | (fraction << 13);
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (fraction << 13);
  if (fraction === 0) return sign;
  let e = 113;
  while ((fraction & 0x400) === 0) {
    fraction <<= 1;
    e -= 1;
  }
  return sign | (e << 23) | ((fraction & 0x3ff) << 13);
}

/** Rounded to the nearest bfloat16, ties to even, as PyTorch does. NaN stays NaN. */
export function toBfloat16(data: Float32Array): Uint16Array {
  const bits = new Uint32Array(data.buffer, data.byteOffset, data.length);
  return Uint16Array.from(bits, (value) =>
    (value & 0x7fffffff) > 0x7f800000 ? (value >>> 16) | 0x40 : (value + 0x7fff + ((value >>> 16) & 1)) >>> 16,
  );
}

/** Rounded to the nearest float16, ties to even. Magnitudes from 65,520 become infinite; NaN stays NaN. */
export function toFloat16(data: Float32Array): Uint16Array {
  const bits = new Uint32Array(data.buffer, data.byteOffset, data.length);
  return Uint16Array.from(bits, (value) => {
    const sign = (value >>> 16) & 0x8000;
    const exponent = ((value >>> 23) & 0xff) - 112;
    let fraction = value & 0x7fffff;
    if (exponent === 143 && fraction !== 0) return sign | 0x7e00;
    if (exponent >= 31) return sign | 0x7c00;
    if (exponent <= 0) {
      if (exponent < -10) return sign;
      fraction |= 0x800000;
      const shift = 14 - exponent;
      const half = 1 << (shift - 1);
      return sign | ((fraction + half - 1 + ((fraction >>> shift) & 1)) >>> shift);
    }
    return sign | ((((exponent << 23) | fraction) + 0xfff + ((fraction >>> 13) & 1)) >>> 13);
  });
}

export function countNonFinite(data: Float32Array): number {
  let bad = 0;
  for (let i = 0; i < data.length; i += 1) if (!Number.isFinite(data[i])) bad += 1;
  return bad;
}
