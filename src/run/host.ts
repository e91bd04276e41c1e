import { MigrationPace } from '../cgroup/migration-pace.js';
import { readHostFacts } from '../host/facts.js';
import type { HostFacts } from '../host/facts.js';
import { native } from '../launcher/addon.js';
import { isNetworkFenceOff } from '../plan/network.js';
import { AbortFan } from './abort.js';
import type { RunOptions } from './options.js';
import type { Fence } from './result.js';

/** Told of once, by whoever runs first. */
export const NETWORK_FENCE_OFF =
  'SANDBOX_DISABLE_NETNS_FIREWALL is 1: sandboxes of this process have no network fence and no allowlist, they share the network of this machine';

/** What one process learns about the machine it runs on, shared by its runs. */
export class Host {
  readonly aborts = new AbortFan();
  /** Fences that best-effort runs had to give up here, each with the code of the error that showed it. */
  readonly dropped = new Map<Fence, string>();
  readonly #pace = new MigrationPace(native);
  readonly #warn: (message: string) => void;
  #warned = false;
  #facts: Promise<HostFacts> | null = null;

  /** `warn`: where to tell what should not go unseen. Default: a warning of Node's, code `RINGFENCE_NETWORK_SHARED`. */
  constructor(warn: (message: string) => void = emitWarning) {
    this.#warn = warn;
  }

  /** Tells, at the first run that it concerns, that the network fence is switched off on this host. */
  noteNetworkFence(network: RunOptions['network']): void {
    if (this.#warned || network === 'host' || !isNetworkFenceOff(process.env)) return;
    this.#warned = true;
    this.#warn(NETWORK_FENCE_OFF);
  }

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

function emitWarning(message: string): void {
  process.emitWarning(message, { code: 'RINGFENCE_NETWORK_SHARED' });
}
