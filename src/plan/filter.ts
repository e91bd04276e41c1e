import type { RunOptions } from '../run/options.js';
import type { Fence } from '../run/result.js';
import type { Profiles } from '../seccomp/load.js';
import type { Namespaces, SystemCallFilter } from './plan.js';

/**
 * Which filter the guest gets. Where there is to be no network it needs no inet socket either, and most of the kernel's
 * network code is out of its reach; without a mount namespace the filter stands in for what that would keep away.
 *
 * @param networkFenceOff guests share the host's network, by the wish of whoever set this machine up
 * @throws TypeError for a profile of the caller's own that is none.
 */
export async function planFilter(
  { seccomp, network }: Pick<RunOptions, 'seccomp' | 'network'>,
  profiles: Profiles,
  namespaces: Pick<Namespaces, 'mount'>,
  dropped: ReadonlySet<Fence>,
  networkFenceOff: boolean,
): Promise<SystemCallFilter> {
  if (dropped.has('syscalls')) return 'none';
  if (seccomp !== null) return { program: await profiles.programOf(seccomp.profile) };
  const closed = network === 'none' && !networkFenceOff;
  if (!namespaces.mount) return closed ? 'no-namespaces' : 'no-namespaces-inet';
  return closed ? 'no-inet' : 'default';
}
