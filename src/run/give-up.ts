import type { AbortFan } from './abort.js';
import type { RunOptions } from './options.js';

/**
 * Waits for what comes before the launch, but no longer than the run may last and not after it was aborted: files that are
 * looked at may lie on a disk that does not answer. What comes too late is dropped.
 */
export async function unlessGivenUp<T>(work: Promise<T>, { signal, timeoutMs }: RunOptions, aborts: AbortFan): Promise<T | 'canceled' | 'timeout'> {
  let unsubscribe = (): void => undefined;
  let timer: NodeJS.Timeout | undefined;
  const givenUp = new Promise<'canceled' | 'timeout'>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), timeoutMs);
    if (signal !== null) unsubscribe = aborts.subscribe(signal, () => resolve('canceled'));
  });
  try {
    return await Promise.race([work, givenUp]);
  } finally {
    clearTimeout(timer);
    unsubscribe();
  }
}
