import { readSafetensorsHeader, readTensorBytes } from '../src/lib/safetensors.ts';

export interface Agreement {
  readonly rows: number;
  readonly taps: number;
  /** Largest difference over the largest magnitude of its tap, and the tap. */
  readonly largestRatio: number;
  readonly tap: string;
}

async function readStates(
  stem: string,
): Promise<{ rows: Map<string, number>; tap: (name: string) => Promise<Float32Array>; taps: string[]; width: number }> {
  const path = `${stem}.safetensors`;
  const header = await readSafetensorsHeader(path);
  const rows = JSON.parse(header.metadata.get('rows') ?? '[]') as readonly string[];
  const taps = [...header.tensors.keys()];
  return {
    rows: new Map(rows.map((name, index) => [name, index])),
    tap: async (name) => new Float32Array((await readTensorBytes(path, header, name)).buffer),
    taps,
    width: header.tensors.get(taps[0])?.shape[1] ?? 0,
  };
}

/** Every row and tap that the other has is compared; a row or tap that only the other has is an error. */
export async function compareStates(ours: string, other: string): Promise<Agreement> {
  const a = await readStates(ours);
  const b = await readStates(other);
  if (a.width !== b.width || b.rows.size === 0)
    throw new Error(`${other}: expected states of width ${a.width}, got ${b.width} (${b.rows.size} rows)`);
  let largestRatio = 0;
  let worst = b.taps[0];
  for (const tap of b.taps) {
    const x = await a.tap(tap);
    const y = await b.tap(tap);
    let difference = 0;
    let scale = 0;
    for (const [name, row] of b.rows) {
      const at = a.rows.get(name);
      if (at === undefined) throw new Error(`${ours}: expected a row ${name}`);
      for (let column = 0; column < a.width; column += 1) {
        const d = Math.abs(x[at * a.width + column] - y[row * a.width + column]);
        if (!(d <= difference)) difference = Number.isNaN(d) ? Infinity : d;
        scale = Math.max(scale, Math.abs(y[row * a.width + column]));
      }
    }
    if (difference / scale >= largestRatio) {
      largestRatio = difference / scale;
      worst = tap;
    }
  }
  return { rows: b.rows.size, taps: b.taps.length, largestRatio, tap: worst };
}
