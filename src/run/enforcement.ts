import type { FenceBit, ReadyRecord } from '../launcher/records.js';
import type { Plan } from '../plan/plan.js';
import { withoutNamespaces } from './lesser-walls.js';
import type { RunOptions } from './options.js';
import { fences } from './result.js';
import type { Enforcement, Fence, FenceReport } from './result.js';

/** Why a fence was given up in best-effort: an error code. */
export type Dropped = ReadonlyMap<Fence, string>;

/** What the launcher says of one run before the guest starts. */
export type Verified = Pick<ReadyRecord, 'fences' | 'landlockAbi'>;

const FENCES = fences;

/** What the launcher has to verify for each fence; for the processor, for each limit of it. */
const BITS: Record<Exclude<Fence, 'cpu'>, readonly FenceBit[]> = {
  privileges: ['privileges'],
  identity: ['identity'],
  filesystem: ['filesystem'],
  network: ['network'],
  pids: ['process-tree', 'process-limit'],
  memory: ['memory'],
  syscalls: ['system-calls'],
  landlock: ['landlock'],
};

function bitsOf(fence: Fence, { limits }: RunOptions): readonly FenceBit[] {
  if (fence !== 'cpu') return BITS[fence];
  return [...(limits.cpus === null ? [] : (['cpu'] as const)), ...(limits.cpuTimeMs === null ? [] : (['cpu-time'] as const))];
}

/** Fences that this plan has and that were not verified. In best-effort nothing is required. */
export function missingFences(options: RunOptions, plan: Plan, verified: ReadonlySet<FenceBit>): FenceBit[] {
  if (options.isolation !== 'strict') return [];
  return FENCES.filter((fence) => !isSecondWall(fence) && notWanted(fence, options, plan) === null)
    .flatMap((fence) => bitsOf(fence, options))
    .filter((bit) => !verified.has(bit));
}

/** Fence by fence what was in force, from what the launcher verified and never from what was planned. */
export function enforcementOf(options: RunOptions, plan: Plan, dropped: Dropped, verified: Verified): Enforcement {
  return report((fence) => {
    const given = dropped.get(fence);
    const lesser = withoutNamespaces(fence, options, plan, verified);
    if (lesser !== null) return { status: 'enforced', by: lesser };
    // What was given up may not have been asked for: clone3 does not say which namespace it refused.
    const shared = fence === 'network' && options.network === 'host';
    const reason = given === undefined || shared ? notWanted(fence, options, plan) : null;
    if (reason !== null) return { status: 'disabled', by: reason };
    const mechanism = mechanismOf(fence, options, plan, verified);
    const bits = bitsOf(fence, options);
    const held = bits.filter((bit) => verified.fences.has(bit));
    if (held.length === bits.length && given === undefined) return { status: 'enforced', by: mechanism };
    const why = given ?? (isSecondWall(fence) ? NO_LANDLOCK : (reasonOfTree(fence, dropped) ?? 'not verified'));
    return { status: 'unavailable', by: held.length === 0 ? why : `${why}; only ${held.join(', ')}` };
  });
}

/** The code of a kernel without it. */
export const NO_LANDLOCK = 'landlock-missing';

/** The report of a run in which no guest code ran. `failed` is the fence that it failed at, if it was one. */
export function nothingEnforced(reason: string, failed: { fence: Fence; code: string } | null = null): Enforcement {
  return report((fence) =>
    fence === failed?.fence ? { status: 'unavailable', by: failed.code } : { status: 'disabled', by: reason },
  );
}

function report(of: (fence: Fence) => FenceReport): Enforcement {
  return Object.fromEntries(FENCES.map((fence) => [fence, of(fence)])) as Enforcement;
}

/** Why this run is meant to be without the fence; null when it is meant to have it. */
function notWanted(fence: Fence, options: RunOptions, plan: Plan): string | null {
  if (fence === 'network' && !plan.namespaces.network) {
    return options.network === 'host' ? "network: 'host'" : 'SANDBOX_DISABLE_NETNS_FIREWALL=1';
  }
  if (fence === 'cpu' && options.limits.cpus === null && options.limits.cpuTimeMs === null) return 'no limit asked for';
  return null;
}

/** Without it the others hold: it is for kernels that have it. */
function isSecondWall(fence: Fence): boolean {
  return fence === 'landlock';
}

/** The pid namespace went with the others, its limit did not. */
function reasonOfTree(fence: Fence, dropped: Dropped): string | null {
  return fence === 'pids' ? (dropped.get('filesystem') ?? null) : null;
}

function mechanismOf(fence: Fence, options: RunOptions, plan: Plan, { landlockAbi }: Verified): string {
  const cgroup = plan.cgroup === null ? 'none' : `cgroup-v${plan.cgroup.version}`;
  switch (fence) {
    case 'privileges':
      return 'no-new-privs, empty capability sets';
    case 'identity':
      return plan.namespaces.user ? 'userns' : 'setuid';
    case 'filesystem':
      return 'mntns, pivot_root';
    case 'network':
      return plan.hasAllowlist ? 'netns, allowlist' : 'netns';
    case 'pids':
      return `pidns, ${cgroup}`;
    case 'memory':
      return cgroup;
    case 'syscalls':
      return options.seccomp === null ? 'seccomp' : 'seccomp, own profile';
    case 'landlock':
      return `landlock ABI ${landlockAbi}`;
    case 'cpu':
      return [
        ...(options.limits.cpus === null ? [] : [cgroup]),
        ...(options.limits.cpuTimeMs === null ? [] : ['cpu accounting, RLIMIT_CPU']),
      ].join(', ');
  }
}
