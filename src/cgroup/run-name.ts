import { randomBytes } from 'node:crypto';

/** Which process a cgroup belongs to: a pid alone comes back, together with its start time it does not. */
export interface HostProcess {
  pid: number;
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat. */
  startTime: number;
  /** Inode of the pid namespace in which `pid` counts. */
  pidNamespace: number;
}

/** Where a host of v2 moves to when its own cgroup becomes an inner node. */
export const HOST_LEAF = 'ringfence-host';

/**
 * The name of a new run's cgroup. The last part is random, not counted: worker threads share pid and start time but no
 * counter.
 */
export function nameRun(host: HostProcess): string {
  return `ringfence-${host.pidNamespace}-${host.pid}-${host.startTime}-${randomBytes(6).toString('hex')}`;
}

/** The process that made a cgroup of this name, or null when the name is not one of ours. */
export function ownerOfRun(name: string): HostProcess | null {
  const match = /^ringfence-(\d{1,10})-(\d{1,10})-(\d{1,16})-[0-9a-f]+$/.exec(name);
  if (match === null) return null;
  const [, pidNamespace, pid, startTime] = match;
  return { pid: Number(pid), startTime: Number(startTime), pidNamespace: Number(pidNamespace) };
}

/** Field 22 of a /proc/<pid>/stat; null when the text is not one. The name in field 2 may hold spaces and brackets. */
export function startTimeOf(stat: string): number | null {
  const field = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  return field !== undefined && /^\d+$/.test(field) ? Number(field) : null;
}
