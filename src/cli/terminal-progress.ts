import type { Clock, Progress } from '../types.ts';

/** Where progress goes: a terminal gets one line that is rewritten, anything else gets a plain line now and then. */
export interface ProgressSink {
  readonly isTTY: boolean;
  readonly columns: number;
  write(text: string): void;
}

const TERMINAL_INTERVAL_MS = 200;
const PLAIN_INTERVAL_MS = 15_000;
/** Rates before this much has passed are noise, so no time left is printed. */
const ESTIMATE_AFTER_MS = 3_000;

export function formatDuration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** The estimate is the mean rate so far applied to what is left; it says "about" and is silent in the first seconds. */
export function createProgress(sink: ProgressSink, clock: Clock): Progress {
  let label = '';
  let unit = '';
  let total = 0;
  let done = 0;
  let startedAt = 0;
  let shownAt = Number.NEGATIVE_INFINITY;
  let open = false;

  const clear = (): void => {
    if (sink.isTTY && open) sink.write('\r\u001b[K');
  };
  const line = (): string => {
    const elapsed = clock.now() - startedAt;
    const share = total > 0 ? ` ${Math.min(100, Math.floor((100 * done) / total))} %` : '';
    const count = total > 0 ? `${done.toLocaleString('en')}/${total.toLocaleString('en')}` : done.toLocaleString('en');
    const rate = elapsed > ESTIMATE_AFTER_MS && done > 0 ? done / (elapsed / 1000) : null;
    const speed = rate === null ? '' : `, ${rate >= 10 ? Math.round(rate).toLocaleString('en') : rate.toFixed(1)}/s`;
    const left = rate === null || total <= done ? '' : `, about ${formatDuration((total - done) / rate)} left`;
    return `${label}${share} (${count} ${unit}${speed}${left})`;
  };
  const show = (force: boolean): void => {
    const now = clock.now();
    if (!force && now - shownAt < (sink.isTTY ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS)) return;
    shownAt = now;
    if (sink.isTTY) sink.write(`\r\u001b[K${line().slice(0, Math.max(20, sink.columns - 1))}`);
    else sink.write(`${line()}\n`);
  };

  return {
    start(newLabel, newTotal, newUnit) {
      label = newLabel;
      total = newTotal;
      unit = newUnit;
      done = 0;
      startedAt = clock.now();
      shownAt = Number.NEGATIVE_INFINITY;
      open = true;
      if (sink.isTTY) show(true);
      else {
        sink.write(`${label}${total > 0 ? ` (${total.toLocaleString('en')} ${unit})` : ''}\n`);
        shownAt = startedAt;
      }
    },
    advance(newDone) {
      done = newDone;
      show(false);
    },
    note(text) {
      clear();
      sink.write(`${text}\n`);
      if (sink.isTTY && open) show(true);
    },
    end() {
      if (!open) return;
      const seconds = (clock.now() - startedAt) / 1000;
      clear();
      open = false;
      sink.write(`${label}: ${done.toLocaleString('en')} ${unit} in ${formatDuration(seconds)}\n`);
    },
  };
}

/** For `--json` and tests: progress that says nothing. */
export const silentProgress: Progress = {
  start() {},
  advance() {},
  note() {},
  end() {},
};
