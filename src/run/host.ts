import { MigrationPace } from '../cgroup/migration-pace.js';
import { readHostFacts } from '../host/facts.js';
import type { HostFacts } from '../host/facts.js';
import { AbortFan } from './abort.js';
import type { Fence } from './result.js';

/** What one process learns about the machine it runs on, shared by its runs. */
export class Host {
  readonly aborts = new AbortFan();
  /** Fences that best-effort runs had to give up here, each with the code of the error that showed it. */
  readonly dropped = new Map<Fence, string>();
  readonly #pace = new MigrationPace();
  #facts: Promise<HostFacts> | null = null;

  /** What a run in best-effort had to do without, and ran. */
  learn(lasting: ReadonlyMap<Fence, string> = new Map()): void {
    for (const [fence, code] of lasting) this.dropped.set(fence, code);
  }

  /** Computed once; again at the next call after a failure, or after there was no place for cgroups. */
  async facts(): Promise<HostFacts> {
    const facts = await this.#shared();
    if (facts.cgroup.kind === 'ready') this.#pace.keep(facts.cgroup);
    return facts;
  }

  #shared(): Promise<HostFacts> {
    if (this.#facts !== null) return this.#facts;
    const facts = readHostFacts();
    this.#facts = facts;
    facts.then(
      ({ cgroup }) => {
        if (cgroup.kind === 'unavailable') this.#forget(facts);
      },
      () => this.#forget(facts),
    );
    return facts;
  }

  /** To be called when a run met a cgroup placement that is not good any more. */
  forgetFacts(): void {
    this.#facts = null;
  }

  #forget(facts: Promise<HostFacts>): void {
    if (this.#facts === facts) this.#facts = null;
  }
}
