import { write } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const writeBytes = promisify(write);
/** A few thousand runs. */
const MAX_HELD_CHARACTERS = 4 * 1024 * 1024;
const RETRY_MS = 100;
const LAST_LINES_MS = 1000;

/**
 * Standard output, written to without blocking. A reader that has gone, or that is far behind, misses lines; it stops no
 * run and no exit. (pino's own destination tries for ever to write its last lines to a pipe that nobody reads.) Node has made a pipe non-blocking by the time that `process.stdout` is there; a write that
 * waits for a reader would hold up the exit.
 */
export class LogFile {
  readonly #descriptor = process.stdout.fd;
  #held = '';
  #writing: Promise<void> | null = null;

  write(line: string): void {
    if (this.#held.length + line.length > MAX_HELD_CHARACTERS) return;
    this.#held += line;
    this.#writing ??= this.#writeHeld();
  }

  /** Resolves when all is written, or cannot be. */
  async end(): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#writing, sleep(LAST_LINES_MS, null, { signal: late.signal }).catch(() => null)]);
    late.abort();
  }

  async #writeHeld(): Promise<void> {
    while (this.#held !== '') {
      const bytes = Buffer.from(this.#held);
      this.#held = '';
      await this.#writeAll(bytes);
    }
    this.#writing = null;
  }

  async #writeAll(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      try {
        at += (await writeBytes(this.#descriptor, bytes, at)).bytesWritten;
      } catch (error) {
        // What cannot be written (EPIPE, ENOSPC) is lost; a reader that is behind (EAGAIN) may come.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        await sleep(RETRY_MS);
      }
    }
  }
}
