import type { RunOptions } from '../run/options.js';
import type { Fence } from '../run/result.js';
import type { PlanLandlock } from './plan.js';

/**
 * What Landlock is to refuse beside files. A caller's own filter says itself whether there is TCP within the sandbox's own
 * network; in the host's only the network option does.
 */
export function planLandlock(
  { seccomp, network }: Pick<RunOptions, 'seccomp' | 'network'>,
  ownNetwork: boolean,
  dropped: ReadonlySet<Fence>,
  hostNetworkChosen = false,
): PlanLandlock | null {
  if (dropped.has('landlock')) return null;
  const tcp = network !== 'none' || hostNetworkChosen || (ownNetwork && seccomp !== null);
  return { tcp, abstractSockets: network === 'host' || hostNetworkChosen };
}
