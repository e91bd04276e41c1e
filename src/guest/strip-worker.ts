import { parentPort } from 'node:worker_threads';

import { transformSync } from '@swc/wasm-typescript';

import type { Stripped } from './strip-types.js';

/** What the thread says: once that it is ready, then an answer to each source. Broken: it is not to be used again. */
export type StripThreadMessage = 'ready' | { answer: Stripped; isBroken: boolean };

const say = (message: StripThreadMessage): void => parentPort?.postMessage(message);

parentPort?.on('message', (source: string) => say(strip(source)));
say('ready');

function strip(source: string): Exclude<StripThreadMessage, 'ready'> {
  try {
    return { answer: { code: transformSync(source, { mode: 'strip-only', module: true }).code }, isBroken: false };
  } catch (error) {
    // Enums, namespaces and parameter properties are more than types.
    if ((error as { code?: unknown } | null)?.code !== 'UnsupportedSyntax') return describe(error);
  }
  try {
    return { answer: { code: transformSync(source, { mode: 'transform', module: true }).code }, isBroken: false };
  } catch (error) {
    return describe(error);
  }
}

function describe(error: unknown): Exclude<StripThreadMessage, 'ready'> {
  // A trap leaves the compiler's memory as it was in the middle of its work.
  if (error instanceof Error && !('code' in error)) return { answer: { problem: 'the source cannot be read: it may nest too deep' }, isBroken: true };
  return { answer: { problem: String((error as { message?: unknown } | null)?.message ?? error) }, isBroken: false };
}
