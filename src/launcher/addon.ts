import { createRequire } from 'node:module';
import { locateAddon, NativeFileError } from './locate.js';
import type { Native } from './native.js';

/** The addon, loaded at the first call. Throws {@link NativeFileError} when it is missing or does not load. */
export const native: () => Native = once(() => load(locateAddon()));

function load(path: string): Native {
  try {
    return createRequire(import.meta.url)(path) as Native;
  } catch (error) {
    throw new NativeFileError(
      `the addon ${path} does not load in Node ${process.version} on linux-${process.arch}`,
      'it needs Node 20.18 or newer and glibc 2.28 or newer; in a checkout type "npm run build"',
      error,
    );
  }
}

/** A failure is not kept: the next call tries again. */
function once<T>(compute: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= compute());
}
