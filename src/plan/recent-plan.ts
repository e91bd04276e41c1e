import type { HostFacts } from '../host/facts.js';
import { planCgroup } from './cgroup.js';
import { encodePlan } from './encode.js';
import { planIdentity } from './identity.js';
import { hasOwnNetwork } from './network.js';
import type { PlannedRun, PlanOptions } from './plan-run.js';

/** So long the files that a plan was made from are taken to lie where they lay. */
const FRESH_MS = 5000;

/** The last plan of sandboxes that are all alike: looking for a runtime's files costs a third of what starts one. */
export class RecentPlan {
  #planned: PlannedRun | null = null;
  #madeAt = -Infinity;

  /** The same for one more run, with ids and a cgroup of its own. Null where there is none that could serve. */
  again(options: PlanOptions, facts: HostFacts): PlannedRun | null {
    const last = this.#planned;
    if (last === null || performance.now() - this.#madeAt > FRESH_MS) return null;
    // The switch of this machine's network fence may have been turned, even while that plan was made.
    if (last.plan.namespaces.network !== hasOwnNetwork(options.network, new Set(), process.env)) return null;
    const identity = planIdentity(facts, true);
    if (identity === null) return null;
    const plan = { ...last.plan, identity, cgroup: planCgroup(facts.cgroup, facts, options.limits, new Set()) };
    return { ...last, plan, encoded: encodePlan(plan) };
  }

  keep(planned: PlannedRun): void {
    const { namespaces } = planned.plan;
    // Otherwise there is more in it that belongs to one run.
    if (!namespaces.user || !namespaces.mount) return;
    this.#planned = planned;
    this.#madeAt = performance.now();
  }

  /** This one did not lead to a guest: something has changed. True when it was made from an older one. */
  failed(planned: PlannedRun): boolean {
    const isRepeated = this.#planned !== planned;
    this.#planned = null;
    return isRepeated;
  }
}
