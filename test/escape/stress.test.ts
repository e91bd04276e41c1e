/** stress-ng by classes with every limit up: what it takes stays inside the limits, and the host goes on meanwhile. */
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { beforeEach, describe, expect, it } from 'vitest';

import { runSandboxed } from '../../src/index.js';
import type { SandboxOptions, SandboxResult } from '../../src/index.js';
import { whereAmI } from '../support/lane.js';
import { belongsHere, needs } from '../support/skip.js';
import { noFilter } from './support/attack.js';

type Options = Pick<SandboxOptions, 'limits' | 'seccomp'>;

const STRESS = '/usr/bin/stress-ng';
const SECONDS = 3;
const LIMITS = { memoryMb: 192, pids: 48, cpus: 0.1, fileSizeMb: 16, openFiles: 256 } as const;

const classes: [name: string, args: string[], options?: Options][] = [
  ['cpu', ['--cpu', '8', '--cpu-method', 'all']],
  ['caches', ['--cache', '2', '--memcpy', '2', '--stream', '2']],
  ['memory', ['--vm', '4', '--vm-bytes', '1G', '--vm-keep', '--brk', '2', '--stack', '2']],
  ['memory maps', ['--mmap', '4', '--mmap-bytes', '512M', '--mremap', '2', '--madvise', '2']],
  ['fork', ['--fork', '4', '--vfork', '2']],
  ['clones', ['--clone', '2', '--clone-max', '16']],
  ['threads', ['--pthread', '8', '--pthread-max', '64']],
  ['daemons and zombies', ['--daemon', '4', '--zombie', '4']],
  ['io', ['--iomix', '2', '--iomix-bytes', '4M', '--sync-file', '2', '--sync-file-bytes', '4M', '--readahead', '2', '--readahead-bytes', '4M']],
  ['files', ['--hdd', '2', '--hdd-bytes', '12M', '--dentry', '2', '--dir', '2', '--link', '2', '--rename', '2']],
  ['sockets', ['--sockpair', '2', '--sockfd', '2']],
  // The filter has no inet sockets where there is no network to reach.
  ['network', ['--sock', '4', '--udp', '4'], noFilter],
  ['pipes', ['--pipe', '4', '--fifo', '4', '--splice', '2', '--eventfd', '2']],
  ['scheduler', ['--switch', '4', '--yield', '4', '--futex', '4', '--nice', '2', '--affinity', '2']],
  ['interrupts', ['--timer', '2', '--timerfd', '2', '--itimer', '2', '--sigq', '2', '--kill', '2']],
  ['system calls', ['--get', '2', '--prctl', '2', '--procfs', '2', '--seccomp', '2', '--sysinfo', '2']],
];

/** How late a wait of one millisecond is, in the event loop: the median and the worst, until told to stop. */
function watchLatency(): () => Promise<{ median: number; worst: number }> {
  const late: number[] = [];
  let stopped = false;
  const watching = (async () => {
    while (!stopped) {
      const before = performance.now();
      await sleep(1);
      late.push(performance.now() - before - 1);
    }
  })();
  return async () => {
    stopped = true;
    await watching;
    late.sort((a, b) => a - b);
    return { median: late[Math.floor(late.length / 2)] ?? 0, worst: late.at(-1) ?? 0 };
  };
}

function stress(args: string[], options: Options = {}): Promise<SandboxResult> {
  const always = ['--timeout', `${SECONDS}`, '--temp-path', '.', '--no-rand-seed', '--quiet', '--oomable'];
  return runSandboxed({
    command: STRESS,
    args: [...args, ...always],
    timeoutMs: (SECONDS + 2) * 1000,
    gracePeriodMs: 200,
    limits: LIMITS,
    filesystem: { tmpMb: 32 },
    maxStdoutBytes: 2 ** 20,
    maxStderrBytes: 2 ** 20,
    ...options,
  });
}

/** What the quota lets a run have at most; a process that ends is not held up by it, and what it frees takes its time. */
function quotaMs({ usage }: SandboxResult, cpus: number): number {
  return usage.wallMs * cpus * 1.2 + 500;
}

const usedMs = ({ usage }: SandboxResult) => (usage.cpuUserMs ?? 0) + (usage.cpuSystemMs ?? 0);

describe('stress-ng', () => {
  beforeEach((context) => {
    belongsHere(context, !whereAmI().uml, 'outside User-Mode Linux, whose one processor takes minutes for it');
    needs(context, !existsSync(STRESS) && 'stress-ng: apt-get install stress-ng');
  });

  it.each(classes)('%s stays inside the limits, and the host goes on', { timeout: 60_000 }, async (_, args, options) => {
    const quiet = watchLatency();
    await sleep(500);
    const before = await quiet();
    const watched = watchLatency();
    const result = await stress(args, options);
    const during = await watched();

    expect(result.outcome, result.errorMessage).toMatch(/^(?:exit|timeout|out-of-memory|overflow-stderr|overflow-stdout)$/);
    // It has stressed something.
    expect(usedMs(result), `${result.exitCode} ${result.stderr}`).toBeGreaterThan(20);
    expect(usedMs(result)).toBeLessThan(quotaMs(result, LIMITS.cpus));
    expect(result.usage.peakMemoryBytes ?? 0).toBeLessThanOrEqual(LIMITS.memoryMb * 2 ** 20);
    expect(result.usage.peakPids ?? 0).toBeLessThanOrEqual(LIMITS.pids);
    // A tenth of a processor is taken; the machine may have much else to do.
    expect(during.median).toBeLessThan(before.median * 10 + 25);
    expect(during.worst).toBeLessThan(before.worst * 10 + 1000);
    expect(result.usage.wallMs).toBeLessThan((SECONDS + 2) * 1000 + 5000);
    if (process.env['RINGFENCE_STRESS_FIGURES'] === '1') {
      const figures = { outcome: result.outcome, exitCode: result.exitCode, cpuMs: usedMs(result), ...result.usage, before, during };
      console.log(args.join(' '), JSON.stringify(figures), result.stderr.slice(0, 200));
    }
  });

  // Again where the machine has so much else to do that there is not even that much of it to be had.
  it('takes more than that quota where it may: the control', { timeout: 60_000, retry: 2 }, async () => {
    const result = await stress(['--cpu', '8'], { limits: { ...LIMITS, cpus: 2 } });
    expect(usedMs(result)).toBeGreaterThan(quotaMs(result, LIMITS.cpus));
  });
});
