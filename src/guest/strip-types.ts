import { Worker } from 'node:worker_threads';

import { builtFile } from './built.js';
import type { StripAnswer } from './strip-worker.js';

export type Stripped = { code: string } | { problem: string };

interface Task {
  source: string;
  settle(answer: Stripped): void;
}

/** No honest source of 2 MiB takes as long. */
const PATIENCE_MS = 2000;
const WORKER_MB = 256;

/**
 * Takes the types out of TypeScript, for a Node that cannot. In a thread of its own: sources are made by adversaries, and
 * the compiler may take long over one, or be broken by it for all that come later.
 */
export class TypeStripper {
  readonly #queue: Task[] = [];
  #worker: Worker | null = null;
  #current: (Task & { timer: NodeJS.Timeout }) | null = null;

  /** JavaScript comes back as it is. Never rejects. */
  strip(source: string): Promise<Stripped> {
    return new Promise((settle) => {
      this.#queue.push({ source, settle });
      this.#next();
    });
  }

  /** Loads the compiler, so that the first source need not wait for it. */
  prepare(): void {
    void this.strip('');
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  #next(): void {
    if (this.#current !== null) return;
    const task = this.#queue.shift();
    if (task === undefined) {
      this.#worker?.unref();
      return;
    }
    const timer = setTimeout(() => this.#fail('the source takes too long to read'), PATIENCE_MS);
    this.#current = { ...task, timer };
    this.#worker ??= this.#start();
    this.#worker.ref();
    this.#worker.postMessage(task.source);
  }

  #start(): Worker {
    const worker = new Worker(builtFile('strip-worker.js'), { resourceLimits: { maxOldGenerationSizeMb: WORKER_MB }, env: {}, execArgv: [] });
    worker.on('message', (answer: StripAnswer) => {
      if ('code' in answer) return this.#settle(answer);
      if (answer.broken) this.#fail(answer.problem);
      else this.#settle({ problem: answer.problem });
    });
    worker.on('error', () => {
      if (worker === this.#worker) this.#fail('the source cannot be read');
    });
    return worker;
  }

  /** The thread goes with the source that broke it; those that wait get a new one. */
  #fail(problem: string): void {
    void this.close();
    this.#settle({ problem });
  }

  #settle(answer: Stripped): void {
    const current = this.#current;
    if (current === null) return;
    clearTimeout(current.timer);
    this.#current = null;
    current.settle(answer);
    this.#next();
  }
}
