import { describe, expect, it } from 'vitest';

import { planLimits } from '../../src/plan/limits.js';
import type { LimitOptions } from '../../src/plan/limits.js';

const base: LimitOptions = {
  timeoutMs: 5000,
  gracePeriodMs: 100,
  filesystem: { tmpMb: 256 },
  limits: { memoryMb: 512, pids: 128, cpus: null, cpuTimeMs: null, openFiles: 1024, fileSizeMb: null },
};

function plan(limits: Partial<LimitOptions['limits']> = {}, tmpMb = 256, dropped: ('memory' | 'pids' | 'cpu')[] = []) {
  return planLimits({ ...base, filesystem: { tmpMb }, limits: { ...base.limits, ...limits } }, new Set(dropped));
}

describe('planLimits', () => {
  it('turns MiB into bytes and leaves out what was not asked for', () => {
    expect(plan()).toMatchObject({ memoryBytes: 512 * 2 ** 20, pids: 128, cpuQuotaUs: 0, cpuTimeMs: 0, openFiles: 1024, fileSizeBytes: 0, scratchBytes: 2 ** 28 });
    expect(plan({ fileSizeMb: 3, cpuTimeMs: 250 })).toMatchObject({ fileSizeBytes: 3 * 2 ** 20, cpuTimeMs: 250 });
  });

  it('leaves room for process 1, without which no guest starts', () => {
    expect(plan({ pids: 1 }).pids).toBe(2);
    expect(plan({ pids: 2 }).pids).toBe(2);
  });

  it('counts cpu time per 100 ms, never below what the kernel takes', () => {
    expect(plan({ cpus: 0.5 }).cpuQuotaUs).toBe(50_000);
    expect(plan({ cpus: 2 }).cpuQuotaUs).toBe(200_000);
    expect(plan({ cpus: 0.001 }).cpuQuotaUs).toBe(1000);
  });

  it('never makes "unlimited" of a small figure', () => {
    const { memoryBytes, fileSizeBytes, scratchBytes } = plan({ memoryMb: 1e-9, fileSizeMb: 1e-9 }, 1e-9);
    expect([memoryBytes, fileSizeBytes, scratchBytes]).toEqual([1, 1, 1]);
  });

  it('bounds the inodes of the scratch tmpfs both ways', () => {
    expect(plan({}, 1).scratchInodes).toBe(4096);
    expect(plan({}, 16).scratchInodes).toBe(65_536);
    expect(plan({}, 2 ** 20).scratchInodes).toBe(2 ** 20);
  });

  it('sets the launcher a deadline after the last that the host can take', () => {
    expect(plan().deadlineMs).toBeGreaterThan(5100);
  });

  it('leaves out the limits of dropped fences', () => {
    expect(plan({ cpus: 1 }, 256, ['memory', 'pids', 'cpu'])).toMatchObject({ memoryBytes: 0, pids: 0, cpuQuotaUs: 0 });
  });
});
