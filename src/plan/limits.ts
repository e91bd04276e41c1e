import type { Fence } from '../run/result.js';
import type { PlanLimits } from './plan.js';

const MIB = 1024 * 1024;
/** The period of cpu.max and cpu.cfs_quota_us is 100 ms; the kernel takes no quota below 1 ms of it. */
const CPU_PERIOD_US = 100_000;
const MIN_CPU_QUOTA_US = 1000;
/** Process 1 of the sandbox is in the cgroup too: with less than this the guest could not be started. */
const MIN_PIDS = 2;
/** An inode of tmpfs costs about 1 KiB of kernel memory, which tmpfs does not count against its size. */
const INODES_PER_MIB = 4096;
const MAX_INODES = 1 << 20;
/** How much later than the host the launcher acts: only when the host cannot. */
const BACKSTOP_MS = 5000;

export interface LimitOptions {
  timeoutMs: number;
  gracePeriodMs: number;
  filesystem: { tmpMb: number };
  limits: {
    memoryMb: number;
    pids: number;
    cpus: number | null;
    cpuTimeMs: number | null;
    openFiles: number;
    fileSizeMb: number | null;
  };
}

export function planLimits(options: LimitOptions, dropped: ReadonlySet<Fence>): PlanLimits {
  const { limits, filesystem } = options;
  const cpuQuotaUs = limits.cpus === null ? 0 : Math.max(MIN_CPU_QUOTA_US, Math.round(limits.cpus * CPU_PERIOD_US));
  return {
    memoryBytes: dropped.has('memory') ? 0 : bytes(limits.memoryMb),
    pids: dropped.has('pids') ? 0 : Math.max(MIN_PIDS, limits.pids),
    cpuQuotaUs: dropped.has('cpu') ? 0 : cpuQuotaUs,
    cpuTimeMs: limits.cpuTimeMs ?? 0,
    openFiles: limits.openFiles,
    fileSizeBytes: limits.fileSizeMb === null ? 0 : bytes(limits.fileSizeMb),
    scratchBytes: bytes(filesystem.tmpMb),
    scratchInodes: Math.min(MAX_INODES, INODES_PER_MIB * Math.max(1, Math.ceil(filesystem.tmpMb))),
    deadlineMs: options.timeoutMs + options.gracePeriodMs + BACKSTOP_MS,
  };
}

/** Never 0, which would be no limit. */
function bytes(mib: number): number {
  return Math.max(1, Math.floor(mib * MIB));
}
