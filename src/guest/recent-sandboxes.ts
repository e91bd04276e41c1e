import { RecentPlan } from '../plan/recent-plan.js';
import type { CheckedOptions, RunOptions, SandboxOptions } from '../run/options.js';
import { validateOptions } from '../run/options.js';

/** What all sandboxes of one kind have in common, found out once. */
export interface SandboxKind {
  /** But for what belongs to one run. */
  options: CheckedOptions;
  plan: RecentPlan;
}

/** More than that is no steady load of a few kinds. */
const MAX_KINDS = 8;

/** The kinds of sandboxes that were started last. */
export class RecentSandboxes {
  /** In the order of their first use. */
  readonly #kinds = new Map<string, SandboxKind>();

  /** @throws as `validateOptions` */
  kindOf(options: SandboxOptions, network: RunOptions['network']): SandboxKind {
    const ports = typeof network === 'string' ? network : network.ports;
    const key = JSON.stringify([options, ports]);
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const kind = { options: validateOptions(options), plan: new RecentPlan() };
    this.#kinds.set(key, kind);
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > MAX_KINDS && oldest !== undefined) this.#kinds.delete(oldest);
    return kind;
  }
}
