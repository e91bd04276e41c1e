import type { RunOptions } from '../run/options.js';
import type { Fence } from '../run/result.js';
import type { Profiles } from '../seccomp/load.js';
import type { SystemCallFilter } from './plan.js';

/**
 * Which filter the guest gets. Where the network is nothing but loopback it needs no inet socket either, and most of the
 * kernel's network code is out of its reach.
 *
 * @throws TypeError for a profile of the caller's own that is none.
 */
export async function planFilter(
  { seccomp, network }: Pick<RunOptions, 'seccomp' | 'network'>,
  profiles: Profiles,
  ownNetwork: boolean,
  dropped: ReadonlySet<Fence>,
): Promise<SystemCallFilter> {
  if (dropped.has('syscalls')) return 'none';
  if (seccomp !== null) return { program: await profiles.programOf(seccomp.profile) };
  return ownNetwork && network === 'none' ? 'no-inet' : 'default';
}
