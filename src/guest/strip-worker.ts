import { parentPort } from 'node:worker_threads';

import { transformSync } from '@swc/wasm-typescript';

/** What the thread answers to a source. `broken`: it is not to be used again. */
export type StripAnswer = { code: string } | { problem: string; broken: boolean };

parentPort?.on('message', (source: string) => parentPort?.postMessage(strip(source)));

function strip(source: string): StripAnswer {
  try {
    return { code: transformSync(source, { mode: 'strip-only', module: true }).code };
  } catch (error) {
    // Enums, namespaces and parameter properties are more than types.
    if ((error as { code?: unknown } | null)?.code !== 'UnsupportedSyntax') return describe(error);
  }
  try {
    return { code: transformSync(source, { mode: 'transform', module: true }).code };
  } catch (error) {
    return describe(error);
  }
}

function describe(error: unknown): StripAnswer {
  // A trap leaves the compiler's memory as it was in the middle of its work.
  if (error instanceof Error && !('code' in error)) return { problem: 'the source cannot be read: it may nest too deep', broken: true };
  return { problem: String((error as { message?: unknown } | null)?.message ?? error), broken: false };
}
