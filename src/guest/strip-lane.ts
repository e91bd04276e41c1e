import { Worker } from 'node:worker_threads';

import { builtFile } from './built.js';
import type { Stripped } from './strip-types.js';
import type { StripThreadMessage } from './strip-worker.js';

export interface StripTask {
  readonly source: string;
  /** It comes after all that were not. */
  wasSlow: boolean;
  settle(answer: Stripped): void;
}

export interface StripLaneOptions {
  /** Milliseconds that the thread may work on a task. */
  patienceMs(task: StripTask): number;
  /** A task took longer. */
  onSlow(task: StripTask): void;
}

const WORKER_MB = 256;
/** About what a new thread costs: to end one at once for a run that has ended would make runs that end early the dearest. */
const ABANDONED_MS = 50;

/** One thread with the compiler, and the sources that wait for it, the shortest first. */
export class StripLane {
  readonly #options: StripLaneOptions;
  readonly #waiting: StripTask[] = [];
  #thread: Worker | null = null;
  /** The thread has loaded the compiler: what it does before counts for no source. */
  #isReady = false;
  #current: { task: StripTask; timer: NodeJS.Timeout; isAbandoned: boolean } | null = null;

  constructor(options: StripLaneOptions) {
    this.#options = options;
  }

  add(task: StripTask): void {
    const at = this.#waiting.findIndex((other) => rankOf(other) > rankOf(task));
    this.#waiting.splice(at === -1 ? this.#waiting.length : at, 0, task);
    this.#next();
  }

  /** Nothing more is done for it, if it is of this lane. */
  cancel(task: StripTask): void {
    const at = this.#waiting.indexOf(task);
    if (at !== -1) {
      this.#waiting.splice(at, 1);
      this.#rest();
    }
    const current = this.#current;
    if (current?.task !== task || current.isAbandoned) return;
    clearTimeout(current.timer);
    this.#current = { task, timer: this.#timer(task, ABANDONED_MS, true), isAbandoned: true };
  }

  /** Ends the thread; what waits for it never settles. */
  async close(): Promise<void> {
    this.#waiting.length = 0;
    this.#finish();
    await this.#drop();
  }

  #next(): void {
    if (this.#current !== null || this.#waiting.length === 0) return this.#rest();
    this.#thread ??= this.#start();
    this.#thread.ref();
    if (!this.#isReady) return;
    const task = this.#waiting.shift();
    if (task === undefined) return;
    this.#current = { task, timer: this.#timer(task, this.#options.patienceMs(task), false), isAbandoned: false };
    this.#thread.postMessage(task.source);
  }

  /** A thread without work keeps no process alive. */
  #rest(): void {
    if (this.#current === null && this.#waiting.length === 0) this.#thread?.unref();
  }

  #start(): Worker {
    const worker = new Worker(builtFile('strip-worker.js'), { resourceLimits: { maxOldGenerationSizeMb: WORKER_MB }, env: {}, execArgv: [] });
    this.#isReady = false;
    worker.on('message', (message: StripThreadMessage) => {
      // One that was given up may have sent something before.
      if (worker === this.#thread) this.#hear(message);
    });
    worker.on('error', () => {
      if (worker !== this.#thread) return;
      // One that cannot even load the compiler takes a source with it, too: it must not be started over and over.
      const task = this.#finish() ?? this.#waiting.shift();
      this.#renew();
      task?.settle({ problem: 'the source cannot be read' });
    });
    return worker;
  }

  #hear(message: StripThreadMessage): void {
    if (message === 'ready') {
      this.#isReady = true;
      return this.#next();
    }
    const task = this.#finish();
    if (message.isBroken) this.#renew();
    task?.settle(message.answer);
    this.#next();
  }

  #timer(task: StripTask, milliseconds: number, isAbandoned: boolean): NodeJS.Timeout {
    // After a block of the event loop timers come first: the answer may be there.
    return setTimeout(() => setImmediate(() => {
      if (this.#current?.task !== task || this.#current.isAbandoned !== isAbandoned) return;
      this.#finish();
      this.#renew();
      if (!isAbandoned) this.#options.onSlow(task);
    }), milliseconds);
  }

  #finish(): StripTask | null {
    const current = this.#current;
    if (current === null) return null;
    clearTimeout(current.timer);
    this.#current = null;
    return current.task;
  }

  /** The thread goes with the source that broke it; those that wait get a new one. */
  #renew(): void {
    void this.#drop();
    this.#next();
  }

  async #drop(): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    this.#isReady = false;
    await thread?.terminate();
  }
}

function rankOf({ source, wasSlow }: StripTask): number {
  return wasSlow ? Infinity : source.length;
}
