import type { Fence, SandboxOptions, SandboxResult } from '../../../src/index.js';
import { Host } from '../../../src/run/host.js';
import { runnerOf } from '../../../src/run/run.js';

/**
 * A run as on a kernel without Landlock: a host that has learned that there is none. Such a host is one of best-effort runs;
 * that nothing else was given up is seen to here.
 */
export async function runWithoutLandlock(options: SandboxOptions): Promise<SandboxResult> {
  const host = new Host();
  host.learn(new Map([['landlock', 'left out by a test']]));
  const result = await runnerOf(host)({ ...options, isolation: 'best-effort' });
  const { landlock, ...others } = result.enforcement;
  const gone = (Object.keys(others) as (keyof typeof others & Fence)[]).filter((fence) => others[fence].status === 'unavailable');
  if (landlock.status === 'enforced' || (gone.length > 0 && result.outcome !== 'spawn-error')) {
    throw new Error(`not just without Landlock: ${JSON.stringify(result.enforcement)}`);
  }
  return result;
}
