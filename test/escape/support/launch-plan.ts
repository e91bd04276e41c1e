import { native } from '../../../src/launcher/addon.js';
import { locateLauncher } from '../../../src/launcher/locate.js';
import { readHostFacts } from '../../../src/host/facts.js';
import { encodePlan } from '../../../src/plan/encode.js';
import type { Plan } from '../../../src/plan/plan.js';
import { planRun } from '../../../src/plan/plan-run.js';
import { AbortFan } from '../../../src/run/abort.js';
import { compileNetwork } from '../../../src/run/network.js';
import { validateOptions } from '../../../src/run/options.js';
import type { SandboxOptions } from '../../../src/run/options.js';
import { supervise } from '../../../src/run/supervise.js';
import { patience } from '../../support/lane.js';
import type { Attempt } from './attack.js';
import { verdictOf } from './lab.js';

export interface PlanAttempt extends Attempt {
  /** The stage that refused the plan, or null. */
  failedStage: string | null;
}

/**
 * Plans a run as the library does, changes the plan, and gives it to the real launcher.
 * @param beforeLaunch called when everything was checked and nothing was started: what a race is about
 */
export async function launchPlan(
  { landlock, ...options }: Omit<SandboxOptions, 'timeoutMs'> & { timeoutMs?: number | undefined; landlock?: false },
  change: (plan: Plan) => void = () => undefined,
  beforeLaunch: () => void | Promise<void> = () => undefined,
): Promise<PlanAttempt> {
  const valid = validateOptions({ ...options, timeoutMs: options.timeoutMs ?? patience(20_000) });
  const checked = { ...valid, network: await compileNetwork(valid.network) };
  const { plan } = await planRun(checked, await readHostFacts(), new Set());
  if (landlock === false) plan.landlock = null;
  change(plan);
  await beforeLaunch();
  const ending = await supervise({
    native: native(),
    launcher: locateLauncher(),
    plan: encodePlan(plan),
    options: checked,
    aborts: new AbortFan(),
    missing: () => [],
  });
  const status = ending.ended?.waitStatus ?? null;
  return {
    ...verdictOf(ending.stdout.text()),
    words: ending.failure === null ? verdictOf(ending.stdout.text()).words : `${ending.failure.stage} ${ending.failure.detail} ${ending.failure.errno}`,
    exitCode: status === null ? null : status >> 8,
    failedStage: ending.failure?.stage ?? null,
  };
}
