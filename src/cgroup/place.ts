import { readFile } from 'node:fs/promises';

import { isDirectory, locateCgroup } from './locate.js';
import type { CgroupPlacement, CgroupProblem } from './placement.js';
import { prepareLegacy } from './prepare-legacy.js';
import { prepareUnified } from './prepare-unified.js';
import type { HostProcess } from './run-name.js';
import { sweepLeftovers } from './sweep.js';

/**
 * Locates the parents of this host's runs, prepares them and sweeps out what dead hosts left there. On v2 this may move
 * the calling process into a leaf below its own cgroup.
 *
 * @param override the value of RINGFENCE_CGROUP
 */
export async function placeCgroups(
  host: HostProcess,
  uid: number,
  override: string | undefined,
): Promise<CgroupPlacement | CgroupProblem> {
  const [memberships, mountinfo] = await Promise.all([
    readFile('/proc/self/cgroup', 'utf8').catch(() => ''),
    readFile('/proc/self/mountinfo', 'utf8').catch(() => ''),
  ]);
  const site = locateCgroup({ memberships, mountinfo, override, isDirectory });
  if (site.kind === 'unavailable') return site;
  const placement = await (site.version === 2 ? prepareUnified : prepareLegacy)(site, host, uid);
  if (placement.kind === 'ready') await sweepLeftovers(placement.parents, host);
  return placement;
}
