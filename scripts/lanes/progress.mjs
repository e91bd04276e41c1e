import { statSync } from 'node:fs';

/** No lane takes this long. */
export const deadlineMs = 1_800_000;

// Longer than the longest time limit of one test or hook (vitest.mjs).
const stallMs = 300_000;

/**
 * A signal that aborts when nothing was written to the journal for minutes: a loaded machine may take long, but as long
 * as tests begin and end it goes on. `stop()` ends the watch.
 */
export function watchProgress(journal, limitMs = stallMs) {
  const controller = new AbortController();
  const start = Date.now();
  const timer = setInterval(() => {
    const last = statSync(journal, { throwIfNoEntry: false })?.mtimeMs ?? start;
    if (Date.now() - Math.max(last, start) > limitMs) {
      controller.abort(new Error(`no test began or ended for ${limitMs / 1000} s`));
    }
  }, Math.min(1000, limitMs / 4));
  return { signal: controller.signal, stop: () => clearInterval(timer) };
}
