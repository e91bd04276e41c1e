import type { Executor, GuestAnswer } from '../index.js';

const RETRY_MS = 5000;

/** Whether this machine can run functions, found by running one. */
export class Readiness {
  readonly #executor: Pick<Executor, 'run'>;
  #proved = false;
  #trial: Promise<GuestAnswer> | null = null;
  #triedAt = Number.NEGATIVE_INFINITY;

  constructor(executor: Pick<Executor, 'run'>) {
    this.#executor = executor;
  }

  /** Null when it can; else the code of what stops it. Tries again at most every five seconds. */
  async problem(): Promise<string | null> {
    if (this.#proved) return null;
    if (this.#trial === null || performance.now() - this.#triedAt > RETRY_MS) {
      this.#triedAt = performance.now();
      this.#trial = this.#executor.run({ source: 'export default () => 1', capabilities: { timeoutMs: 30_000 } });
    }
    const { ok, code } = await this.#trial;
    this.#proved ||= ok;
    return ok ? null : (code ?? 'unknown');
  }
}
