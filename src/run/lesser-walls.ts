import type { ReadyRecord } from '../launcher/records.js';
import type { Plan } from '../plan/plan.js';
import type { RunOptions } from './options.js';
import type { Fence } from './result.js';

/** What holds a fence where there are no namespaces, with what it does not hold; null where nothing does. */
export function withoutNamespaces(
  fence: Fence,
  options: Pick<RunOptions, 'network'>,
  plan: Plan,
  { fences, landlockAbi }: Pick<ReadyRecord, 'fences' | 'landlockAbi'>,
): string | null {
  if (fence === 'filesystem' && !plan.namespaces.mount && fences.has('landlock')) return filesystem(plan, landlockAbi);
  if (fence === 'network' && !plan.namespaces.network && options.network === 'none' && isClosed(plan)) {
    if (!fences.has('system-calls')) return null;
    const tcp = fences.has('landlock') && landlockAbi >= 4 && plan.landlock?.tcp === false;
    return tcp ? `seccomp (no socket), landlock ABI ${landlockAbi} (no TCP)` : 'seccomp (no socket)';
  }
  return null;
}

/** The filter lets no socket of any network be made. */
function isClosed({ filter }: Plan): boolean {
  return filter === 'no-inet' || filter === 'no-namespaces';
}

/** From the plan and the version, so that nobody has to know what Landlock leaves open. */
function filesystem(plan: Plan, abi: number): string {
  const open = ['other paths can be looked up (stat, chdir), not opened', 'scratch is on the host, without filesystem.tmpMb'];
  if (abi < 2) open.push('no rename between directories');
  if (abi < 3) open.push('files can be truncated');
  if (abi < 6) open.push("this account's other processes can be signalled");
  const { filter } = plan;
  if (filter !== 'no-namespaces' && filter !== 'no-namespaces-inet') {
    open.push("modes, owners and times of this account's files can be changed", 'unix sockets of the host can be connected to');
  }
  return `landlock ABI ${abi} (${open.join('; ')})`;
}
