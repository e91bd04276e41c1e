import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves with the work, which never rejects, or when the time is up; leaves no timer. */
export async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, sleep(milliseconds, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}
