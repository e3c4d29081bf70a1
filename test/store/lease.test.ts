import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { beforeEach, describe, expect, it } from 'vitest';
import { takeLease } from '../../src/store/lease.ts';
import { built, runScript } from '../fakes/child-script.ts';
import { temporaryFolder } from '../fakes/temporary-folder.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('lease');
});

const lock = (): string => join(folder, '.lock');
const owner = (): Record<string, unknown> => JSON.parse(readFileSync(lock(), 'utf8')) as Record<string, unknown>;
const put = (change: Record<string, unknown>): void =>
  writeFileSync(
    lock(),
    JSON.stringify({ host: hostname(), pid: process.pid, started: '', token: 'other', beat: 0, ...change }),
  );
const FAST = { renewMs: 20, staleMs: 400 };

/** A process that takes the lease, says so, and holds it. */
const holder = (): string => `
  const { takeLease } = await import(${JSON.stringify(built('store/lease.js'))});
  await takeLease(${JSON.stringify(folder)});
  console.log('held');
  setInterval(() => {}, 1000);
`;

describe('the lease of a run', () => {
  it('is held by one, and free again when released', async () => {
    const lease = await takeLease(folder);
    await expect(takeLease(folder)).rejects.toMatchObject({
      exitCode: 75,
      message: expect.stringContaining(`in use by process ${process.pid} on ${hostname()}`) as string,
    });
    await lease.release();
    expect(readdirSync(folder)).toEqual([]);
    await (await takeLease(folder)).release();
  });

  it('is refused while another process holds it, and taken over once that was killed', async () => {
    const child = runScript(holder());
    await child.started;
    await expect(takeLease(folder)).rejects.toMatchObject({
      exitCode: 75,
      message: expect.stringContaining(`process ${child.process.pid}`) as string,
    });
    child.process.kill('SIGKILL');
    await child.ended;
    const lease = await takeLease(folder);
    expect(owner()).toMatchObject({ pid: process.pid });
    await lease.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is taken over from a pid that was given to another process since, as after a reboot', async () => {
    put({ started: 'another boot 1' });
    await (await takeLease(folder)).release();
    expect(existsSync(lock())).toBe(false);
  });

  it('is taken over by exactly one of several that find its owner dead', async () => {
    for (let round = 0; round < 10; round += 1) {
      put({ pid: 2 ** 22 + 1, token: `dead-${round}` });
      const tries = await Promise.allSettled(Array.from({ length: 6 }, () => takeLease(folder)));
      const won = tries.filter((item) => item.status === 'fulfilled');
      expect(won).toHaveLength(1);
      for (const item of tries) if (item.status === 'rejected') expect(item.reason).toMatchObject({ exitCode: 75 });
      for (const item of won) await item.value.release();
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it('is taken over although whoever was taking it over died too', async () => {
    put({ pid: 2 ** 22 + 1, token: 'dead' });
    writeFileSync(
      `${lock()}.dead`,
      JSON.stringify({ host: hostname(), pid: 2 ** 22 + 2, started: '', token: 'dead too', beat: 0 }),
    );
    const lease = await takeLease(folder);
    await lease.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of another machine is taken over only when its counter stands still', async () => {
    put({ host: 'another-host', pid: process.pid, beat: 5 });
    const waiting = takeLease(folder, FAST);
    setTimeout(() => put({ host: 'another-host', pid: process.pid, beat: 6 }), 150);
    await expect(waiting).rejects.toMatchObject({ exitCode: 75 });
    const lease = await takeLease(folder, FAST);
    expect(owner()).toMatchObject({ host: hostname() });
    await lease.release();
  });

  it('is renewed while it is held', async () => {
    const lease = await takeLease(folder, FAST);
    const deadline = performance.now() + 10_000;
    while (Number(owner()['beat']) < 3 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(owner()['beat']).toBeGreaterThanOrEqual(3);
    await lease.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that was taken over is not given up by its old owner', async () => {
    const lease = await takeLease(folder, FAST);
    put({ token: 'new' });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await lease.release();
    expect(owner()).toMatchObject({ token: 'new' });
  });

  it('of a damaged file is taken over', async () => {
    for (const text of ['', '{"host":']) {
      writeFileSync(lock(), text);
      await (await takeLease(folder)).release();
    }
    expect(readdirSync(folder)).toEqual([]);
  });
});
