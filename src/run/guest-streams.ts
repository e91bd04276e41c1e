import type { Socket } from 'node:net';

import type { GuestStreams as Sockets, RunningLaunch } from '../launcher/launch.js';
import { Capture } from './capture.js';
import type { OnChunk } from './capture.js';
import { drained } from './drain.js';
import type { RunOptions } from './options.js';
import { feedStdin } from './stdin.js';
import type { Feed } from './stdin.js';

export interface GuestStreamsInput {
  launch: RunningLaunch;
  options: RunOptions;
  onOverflow(outcome: 'overflow-stdout' | 'overflow-stderr'): void;
  /** `onStdout` or `onStderr` threw. */
  onThrow(error: unknown): void;
}

interface Opened {
  sockets: Sockets;
  stdout: Capture;
  stderr: Capture;
}

/** The guest's standard streams on the host's side: what is fed in, what is kept. */
export class GuestStreams {
  readonly #input: GuestStreamsInput;
  #opened: Opened | null = null;
  #failure: { error: unknown } | null = null;
  #feed: Feed | null = null;

  constructor(input: GuestStreamsInput) {
    this.#input = input;
    // In a turn of the event loop after that of the launch, unless a record comes first.
    setImmediate(() => this.open());
  }

  /** Opens them once; null when they could not be: the sandbox is being ended then. */
  open(): Opened | null {
    if (this.#opened !== null || this.#failure !== null) return this.#opened;
    const { launch, options } = this.#input;
    try {
      const sockets = launch.openStreams();
      this.#opened = {
        sockets,
        stdout: this.#capture(sockets.stdout, 'overflow-stdout', options.maxStdoutBytes, options.onStdout),
        stderr: this.#capture(sockets.stderr, 'overflow-stderr', options.maxStderrBytes, options.onStderr),
      };
    } catch (error) {
      this.#failure = { error };
    }
    return this.#opened;
  }

  /** Why they could not be opened. */
  get failure(): unknown {
    return this.#failure?.error;
  }

  /** Begins to feed the guest. Not before it is ready: a launch that fails may be tried again, a stream is read only once. */
  feed(): void {
    const { stdin } = this.#input.options;
    const pipe = this.open()?.sockets.stdin ?? null;
    if (stdin !== null && pipe !== null) this.#feed = feedStdin(pipe, stdin);
  }

  /** Ends the wait for promises of onStdout and onStderr that are not settled. True when there was one. */
  release(): boolean {
    const captures = this.#captures();
    const heldUp = captures.some(({ isHeldUp }) => isHeldUp);
    for (const capture of captures) capture.release();
    return heldUp;
  }

  /** Nobody reads any more. */
  endInput(): void {
    this.#feed?.stop();
    this.#opened?.sockets.stdin?.destroy();
  }

  /** What is still in the pipes of a sandbox that is gone; then they are closed. */
  async drain(): Promise<void> {
    const { launch, options } = this.#input;
    await drained(this.#captures(), launch.startedAt + options.timeoutMs);
    this.#opened?.sockets.stdout.destroy();
    this.#opened?.sockets.stderr.destroy();
  }

  #captures(): Capture[] {
    return this.#opened === null ? [] : [this.#opened.stdout, this.#opened.stderr];
  }

  #capture(stream: Socket, overflow: 'overflow-stdout' | 'overflow-stderr', maxBytes: number, onChunk: OnChunk | null): Capture {
    const { options, onOverflow, onThrow } = this.#input;
    return new Capture(stream, { maxBytes, keep: options.keepOutput, onChunk, onOverflow: () => onOverflow(overflow), onThrow });
  }
}
