import type { Readable, Writable } from 'node:stream';
import { types } from 'node:util';

import { quietly } from './quietly.js';

const TEXT_STEP = 64 * 1024;

/** A source that is being read into the guest. */
export interface Feed {
  /** Stops: the pipe is closed, and a stream that was the source is destroyed. */
  stop(): void;
}

/**
 * Writes the source into the guest's standard input, no faster than the guest reads, and then closes it. A source that
 * fails ends the input; a guest that does not read, or is gone, is no error.
 */
export function feedStdin(pipe: Writable, source: string | Uint8Array | Readable): Feed {
  void copy(pipe, typeof source === 'string' || types.isUint8Array(source) ? pieces(source) : source);
  return {
    stop() {
      pipe.destroy();
      releaseStdin(source);
    },
  };
}

/** Takes a stream over from the caller. Its errors count for the guest alone, before, during and after the run. */
export function takeStdin(source: string | Uint8Array | Readable | null): void {
  if (isStream(source)) void quietly(() => source.on('error', () => undefined));
}

/** Destroys a stream that the run had taken over, whether or not anything was read from it. */
export function releaseStdin(source: string | Uint8Array | Readable | null): void {
  if (isStream(source)) void quietly(() => source.destroy());
}

function isStream(source: string | Uint8Array | Readable | null): source is Readable {
  return source !== null && typeof source !== 'string' && !types.isUint8Array(source);
}

async function copy(pipe: Writable, source: Iterable<unknown> | AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const chunk of source) {
      if (pipe.destroyed || !isChunk(chunk)) break;
      if (!pipe.write(chunk)) await writable(pipe);
    }
  } catch {
    // The caller's stream failed: for the guest that is the end of its input.
  }
  pipe.end();
}

/** In steps, so that a long text is not turned into bytes in one go. */
function* pieces(source: string | Uint8Array): Iterable<string | Uint8Array> {
  if (typeof source !== 'string') {
    yield source;
    return;
  }
  for (let at = 0; at < source.length; ) {
    let end = Math.min(at + TEXT_STEP, source.length);
    const last = source.charCodeAt(end - 1);
    if (end < source.length && last >= 0xd800 && last < 0xdc00) end += 1; // the other half of a surrogate pair
    yield source.slice(at, end);
    at = end;
  }
}

function isChunk(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || types.isUint8Array(chunk);
}

function writable(pipe: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      pipe.off('drain', done).off('close', done);
      resolve();
    };
    if (pipe.destroyed) resolve();
    else pipe.once('drain', done).once('close', done);
  });
}
