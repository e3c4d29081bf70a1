import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseOrNothing, readTextIfThere } from '../../src/lib/read-text.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

const folder = temporaryFolder('read');

describe('readTextIfThere', () => {
  it('gives the text, or null where there is no file', async () => {
    writeFileSync(join(folder, 'x'), 'é');
    expect(await readTextIfThere(join(folder, 'x'))).toBe('é');
    expect(await readTextIfThere(join(folder, 'none'))).toBeNull();
    expect(await readTextIfThere(join(folder, 'none', 'x'))).toBeNull();
  });

  it('does not take what it cannot read for absent', async () => {
    await expect(readTextIfThere(folder)).rejects.toMatchObject({ code: 'EISDIR' });
    await expect(readTextIfThere(join(folder, 'x', 'y'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});

describe('parseOrNothing', () => {
  it('gives the value, and nothing for a damaged or absent text', () => {
    expect(parseOrNothing('{"a":null}')).toEqual({ a: null });
    expect(parseOrNothing('null')).toBeNull();
    for (const text of ['', '{"a":', null]) expect(parseOrNothing(text)).toBeUndefined();
  });
});
