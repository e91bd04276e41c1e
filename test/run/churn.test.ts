import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { expect, it } from 'vitest';

import { runSandboxed } from '../../src/index.js';
import type { SandboxOptions } from '../../src/index.js';
import { childHost, hostEnvironment } from '../escape/support/child-host.js';
import { patience, whereAmI } from '../support/lane.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';

const sh = (script: string, extra: Partial<SandboxOptions> = {}): SandboxOptions => ({
  command: '/bin/sh',
  args: ['-c', script],
  timeoutMs: patience(20_000),
  ...extra,
});

/** One of each kind of end, with the outcome that it must have. */
const kinds: (() => [string, SandboxOptions])[] = [
  () => ['exit', sh('exit 0')],
  () => ['exit', sh('cat', { stdin: 'hello' })],
  () => ['exit', sh('exit 7', { stdin: new Uint8Array(1 << 20) })],
  () => ['exit', sh('setsid sleep 61 & sleep 61 & exit 3')],
  () => ['overflow-stdout', sh('yes', { maxStdoutBytes: 1000 })],
  () => ['timeout', sh('sleep 61', { timeoutMs: 30, gracePeriodMs: 5 })],
  () => ['canceled', sh('sleep 61', { signal: AbortSignal.timeout(30), gracePeriodMs: 5 })],
  () => ['spawn-error', { command: '/does/not/exist', args: [], timeoutMs: 1000 }],
];

async function churn(runs: number, concurrency: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < runs) {
      const [outcome, options] = kinds[next++ % kinds.length]?.() ?? ['exit', sh('exit 0')];
      expect(await runSandboxed(options)).toMatchObject({ outcome });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

it('2,000 runs at a concurrency of 16 (100 in User-Mode Linux) leave nothing, and the memory of the host as it was', async () => {
  const runs = whereAmI().uml ? 100 : 2000;
  await churn(Math.min(runs, 400), 16);
  const before = leftovers();
  const rss = process.memoryUsage.rss();
  await churn(runs, 16);
  const { descriptors = [], ...others } = newLeftovers(before, leftovers());
  expect(others).toEqual({});
  // On cgroup v1 the host itself goes on to take the kernel's lock for a while, with a file that is open for a moment.
  expect(descriptors.filter((each) => !each.endsWith('cgroup.procs') && !each.endsWith('/cgroup'))).toEqual([]);
  expect(process.memoryUsage.rss() - rss).toBeLessThan(48 << 20);
}, 240_000);

it('100 hosts (5 in User-Mode Linux) that are killed by SIGKILL at any moment leave nothing', async () => {
  const rounds = whereAmI().uml ? 5 : 100;
  const work = childHost({ runs: [sh('setsid sleep 61 & echo up; sleep 0.05'), sh('exit 0')], forever: true, concurrency: 4 });
  for (let done = 0; done < rounds; done += 4) {
    await Promise.all(Array.from({ length: Math.min(4, rounds - done) }, () => killHost(work)));
  }
}, 240_000);

async function killHost({ command, args }: { command: string; args: string[] }): Promise<void> {
  const host = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'inherit'], env: hostEnvironment() });
  const { pid = 0 } = host;
  // Its first result: from here on it is always in the middle of four runs.
  await once(host.stdout, 'data');
  host.stdout.resume();
  await sleep(randomInt(patience(120)));
  host.kill('SIGKILL');
  await once(host, 'exit');
  const left = () => {
    const { processes, cgroups } = leftovers([pid]);
    return [...processes, ...cgroups];
  };
  // A launcher that had only just been started makes its cgroup after its host's death: nothing must be there, and stay away.
  let quiet = 0;
  for (const end = performance.now() + patience(8000); quiet < 10 && performance.now() < end; ) {
    quiet = left().length === 0 ? quiet + 1 : 0;
    await sleep(30);
  }
  expect(left()).toEqual([]);
}
