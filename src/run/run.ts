import { setImmediate as turn } from 'node:timers/promises';

import type { Attendant } from './attendant.js';
import { describeEnding, collect, notStarted } from './collect.js';
import { Concessions } from './concessions.js';
import { missingFences } from './enforcement.js';
import { unlessGivenUp } from './give-up.js';
import { Host } from './host.js';
import { makeHostDirectories, removeCgroup, removeHostDirectories } from './host-side.js';
import { compileNetwork } from './network.js';
import { validateOptions } from './options.js';
import type { RunOptions, SandboxOptions } from './options.js';
import type { Fence, SandboxResult } from './result.js';
import { setUpProblem } from './set-up-problem.js';
import type { SetUpProblem } from './set-up-problem.js';
import { ownPlace } from './own-place.js';
import { releaseStdin, takeStdin } from './stdin.js';
import { supervise } from './supervise.js';
import type { Ending } from './ending.js';
import { native } from '../launcher/addon.js';
import { locateLauncher } from '../launcher/locate.js';
import { planRun } from '../plan/plan-run.js';
import type { RecentPlan } from '../plan/recent-plan.js';
import type { PlannedRun, Service } from '../plan/plan-run.js';
import { ProfileError } from '../seccomp/profile-error.js';

/**
 * Runs one command in a sandbox of its own. Resolves when the sandbox is gone, with all that belonged to it, whatever the
 * guest did and however it ended.
 *
 * @throws TypeError or RangeError when an option is wrong, naming it; and what onStdout or onStderr threw, once the
 *   sandbox is gone.
 */
export const runSandboxed: (options: SandboxOptions) => Promise<SandboxResult> = runnerOf(new Host());

/** A `runSandboxed` with a knowledge of the machine of its own. */
export function runnerOf(host: Host): (options: SandboxOptions) => Promise<SandboxResult> {
  return async (input) => {
    const checked = validateOptions(input);
    takeStdin(checked.stdin);
    try {
      const options = { ...checked, network: await compileNetwork(checked.network) };
      host.noteNetworkFence(options.network);
      return await runPlanned(host, options);
    } finally {
      releaseStdin(checked.stdin);
    }
  };
}

/**
 * The stages of one run, from the plan to the result, for options that were checked.
 * @param attendant who serves it from outside, if anyone does
 * @param recent the plan of runs with the same options, where there may be many
 */
export async function runPlanned(
  host: Host,
  options: RunOptions,
  attendant: Attendant | null = null,
  recent: RecentPlan | null = null,
): Promise<SandboxResult> {
  const concessions = options.isolation === 'strict' ? null : new Concessions(host.dropped);
  for (let attempt = 0; ; attempt++) {
    if (isAborted(options)) return notStarted(ownPlace(options), { outcome: 'canceled' });

    const dropped = new Set(concessions?.dropped.keys());
    const planned = await unlessGivenUp(plan(host, options, dropped, attendant, recent), options, host.aborts);
    if (typeof planned === 'string') return notStarted(ownPlace(options), { outcome: planned });
    if ('kind' in planned) {
      const { fence, failure } = planned;
      if (fence !== null && concessions?.concede(fence, failure.error.code) === true) continue;
      return notStarted(ownPlace(options), { outcome: 'spawn-error', ...planned });
    }
    // Checking, planning and launching take a turn of the event loop each: nothing else waits for all of it.
    await turn();
    if (isAborted(options)) return notStarted(planned, { outcome: 'canceled' });

    const ending = await launchPlanned(host, options, planned, attendant);
    if ('kind' in ending) return notStarted(planned, { outcome: 'spawn-error', ...ending });
    const { failure, outcome } = ending;
    if (failure !== null && recent?.failed(planned) === true && outcome === 'spawn-error' && attempt === 0) {
      // What was found a moment ago may have gone since: that is no reason to concede anything.
      host.forgetFacts();
      continue;
    }
    if (mayRetry(host, options, ending, concessions, attempt)) continue;
    if (ending.thrown !== null) throw ending.thrown.error;
    if (ending.ready !== null) host.learn(concessions?.lasting);
    return collect(options, planned, ending, concessions?.dropped);
  }
}

async function plan(
  host: Host,
  options: RunOptions,
  dropped: ReadonlySet<Fence>,
  service: Service | null,
  recent: RecentPlan | null,
): Promise<PlannedRun | SetUpProblem> {
  try {
    const facts = await host.facts();
    await turn();
    const again = dropped.size === 0 ? recent?.again(options, facts) : null;
    if (again !== null && again !== undefined) return again;
    const planned = await planRun(options, facts, dropped, service);
    if (dropped.size === 0) recent?.keep(planned);
    return planned;
  } catch (error) {
    // An option that only the file system can prove wrong.
    if (error instanceof RangeError || error instanceof ProfileError) throw error;
    return setUpProblem(error, `cannot plan the run of ${options.command}`, 'set-up-failed');
  }
}

/** Launches, supervises, and removes what is left of a launcher that could not do it itself. */
async function launchPlanned(
  host: Host,
  options: RunOptions,
  planned: PlannedRun,
  attendant: Attendant | null,
): Promise<Ending | SetUpProblem> {
  try {
    await makeHostDirectories(planned);
    const ending = await supervise({
      native: native(),
      launcher: locateLauncher(),
      plan: planned.encoded,
      hasAllowlist: planned.plan.hasAllowlist,
      options,
      aborts: host.aborts,
      attendant,
      missing: (verified) => missingFences(options, planned.plan, verified),
    });
    if (ending.ended === null || ending.ended.removalErrno !== 0) await removeCgroup(planned);
    return ending;
  } catch (error) {
    return setUpProblem(error, 'cannot start the launcher', 'launcher-not-started');
  } finally {
    await removeHostDirectories(planned);
  }
}

/** True when the launch failed before any guest code ran and another one, with what is known now, may not. */
function mayRetry(host: Host, options: RunOptions, ending: Ending, concessions: Concessions | null, attempt: number): boolean {
  const { failure, outcome } = ending;
  if (failure === null || outcome !== 'spawn-error') return false;
  const { code } = describeEnding(options, ending).error;
  if (code === 'cgroup-unavailable') {
    // The place was good when it was found: it may have been moved or removed since.
    host.forgetFacts();
    if (attempt === 0) return true;
  }
  return concessions?.concedeTo(failure, code) ?? false;
}

function isAborted({ signal }: RunOptions): boolean {
  return signal?.aborted === true;
}
