import { randomBytes } from 'node:crypto';
import { readdir, readFile, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { TryAgainError } from '../errors.ts';
import { isAlive, writeFileAtomic } from '../lib/atomic-write.ts';
import { parseOrNothing, readTextIfThere } from '../lib/read-text.ts';

/**
 * One process works on a run at a time. The lease only saves work: every file of a run is first-writer-wins or replaced
 * whole, so two owners at once cost time, never a number.
 */
interface Owner {
  readonly host: string;
  readonly pid: number;
  /** Of this boot: pids are reused, and after a reboot a living pid is somebody else's. */
  readonly started: string;
  readonly token: string;
  /** Grows while the owner lives; how a process on another machine is judged, since clocks differ and pids say nothing. */
  readonly beat: number;
}

export interface LeaseTiming {
  /** How often the owner renews. */
  readonly renewMs: number;
  /** A lease of another machine whose counter stood still for this long is taken over. Far longer than one renewal. */
  readonly staleMs: number;
}

const TIMING: LeaseTiming = { renewMs: 10_000, staleMs: 60_000 };

export interface Lease {
  /** Gives the lease up; does nothing if it was taken over. */
  release(): Promise<void>;
}

/** Boot and start time of a process of this machine; '' where the system does not tell. */
async function startOf(pid: number): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    const status = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Field 22 of proc_pid_stat(5), counted after the command name, which may hold spaces and brackets.
    const start = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
    return `${boot.trim()} ${start}`;
  } catch {
    return '';
  }
}

async function ownerOf(path: string): Promise<Owner | null> {
  const text = await readTextIfThere(path);
  if (text === null) return null;
  // Leases are written whole: one that is no JSON was damaged, and nobody can be found through it.
  const nobody: Owner = { host: hostname(), pid: -1, started: '', token: 'damaged', beat: 0 };
  return (parseOrNothing(text) as Owner | undefined) ?? nobody;
}

async function isGone(path: string, owner: Owner, staleMs: number): Promise<boolean> {
  if (owner.host === hostname()) {
    if (owner.pid <= 0 || !isAlive(owner.pid)) return true;
    const now = await startOf(owner.pid);
    return Boolean(owner.started) && now !== '' && owner.started !== now;
  }
  const from = performance.now();
  while (performance.now() - from < staleMs) {
    await sleep(Math.min(1000, staleMs / 4));
    const again = await ownerOf(path);
    if (again?.token !== owner.token || again.beat !== owner.beat) return false;
  }
  return true;
}

/**
 * Takes the lease at `path`, from a dead owner too. Who may replace a dead owner's lease is decided by a second lease
 * named after it, so of several that find it dead exactly one goes on.
 * @throws TryAgainError (75) when a live process holds it
 */
async function acquire(path: string, me: Owner, timing: LeaseTiming): Promise<void> {
  for (;;) {
    if (await writeFileAtomic(path, JSON.stringify(me), { exclusive: true })) return;
    const owner = await ownerOf(path);
    // Given up between the two looks.
    if (owner === null) continue;
    if (!(await isGone(path, owner, timing.staleMs))) {
      throw new TryAgainError(
        `${dirname(path)}: expected a run that nobody works on, got one in use by process ${owner.pid} on ${owner.host}. Wait for it to end, or stop it`,
      );
    }
    const takeover = `${path}.${owner.token}`;
    await acquire(takeover, me, timing);
    try {
      const still = await ownerOf(path);
      if (still?.token !== owner.token) continue;
      await writeFileAtomic(path, JSON.stringify(me));
      return;
    } finally {
      await unlink(takeover).catch(() => undefined);
    }
  }
}

/** Takes the lease of a folder and renews it until it is released. @throws TryAgainError (75), DiskError (74) */
export async function takeLease(folder: string, timing: LeaseTiming = TIMING): Promise<Lease> {
  const path = join(folder, '.lock');
  const token = randomBytes(8).toString('hex');
  let me: Owner = { host: hostname(), pid: process.pid, started: await startOf(process.pid), token, beat: 0 };
  await acquire(path, me, timing);
  // What processes that died while taking over left behind decides nothing any more.
  for (const name of await readdir(folder))
    if (name.startsWith(`${basename(path)}.`) && !name.includes(token))
      await unlink(join(folder, name)).catch(() => undefined);
  let renewal: Promise<void> = Promise.resolve();
  const renew = async (): Promise<void> => {
    if ((await ownerOf(path))?.token !== token) return;
    me = { ...me, beat: me.beat + 1 };
    await writeFileAtomic(path, JSON.stringify(me));
  };
  const timer = setInterval(() => {
    // A renewal that fails (a full disk) is not worth ending a run for: the next one may succeed.
    renewal = renewal.then(renew).catch(() => undefined);
  }, timing.renewMs);
  timer.unref();
  return {
    release: async () => {
      clearInterval(timer);
      await renewal;
      if ((await ownerOf(path))?.token === token) await unlink(path).catch(() => undefined);
    },
  };
}
