import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { createExecutor } from '../../src/guest/executor.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { readProcesses } from '../support/processes.js';
import { patience } from '../support/lane.js';
import { outputOf, run, runtimes } from './support/executors.js';
import type { RuntimeName } from './support/executors.js';

function warmExecutor(runtime: RuntimeName, warm: number) {
  const executor = createExecutor({ runtime, warm });
  onTestFinished(() => executor.close());
  return executor;
}

interface WaitingProcess {
  pid: number;
  command: string;
  /** Hundredths of a second. */
  cpu: number;
}

/** Runtimes below this process that were started to wait for a function. */
function waiting(): WaitingProcess[] {
  const processes = readProcesses();
  const parents = new Map(processes.map(({ pid, parent }) => [pid, parent]));
  const isOurs = (pid: number | undefined): boolean => pid !== undefined && pid > 1 && (pid === process.pid || isOurs(parents.get(pid)));
  return processes
    .filter(({ pid, state }) => state !== 'Z' && isOurs(pid))
    .map(({ pid }) => ({ pid, command: read(`/proc/${pid}/cmdline`), cpu: cpuOf(read(`/proc/${pid}/stat`)) }))
    .filter(({ command }) => command.includes('rehearse'));
}

function cpuOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}

async function until(condition: () => boolean, milliseconds = patience(8000)): Promise<void> {
  const end = Date.now() + milliseconds;
  while (Date.now() < end && !condition()) await sleep(20);
  expect(condition()).toBe(true);
}

describe.each(runtimes)('warm sandboxes of %s', (runtime) => {
  it('wait before there is a function, each for one, and are replaced', async () => {
    const executor = warmExecutor(runtime, 2);
    await until(() => waiting().length === 2);
    const first = new Set(waiting().map(({ pid }) => pid));
    const answer = await run(executor, 'export default (n: number) => { globalThis.mark = (globalThis.mark ?? 0) + 1; return [n, globalThis.mark] }', { input: 7 });
    expect(answer).toMatchObject({ ok: true, output: [7, 1] });
    await until(() => waiting().length === 2);
    const second = waiting().map(({ pid }) => pid);
    expect(second.filter((pid) => first.has(pid))).toHaveLength(1);
    // The mark of the one before is in none of them.
    for (let n = 0; n < 3; n++) expect(await outputOf(run(executor, 'export default () => (globalThis.mark = (globalThis.mark ?? 0) + 1)'))).toBe(1);
  });

  it('that share the network are not for functions after the switch was turned back', async () => {
    onTestFinished(() => void delete process.env['SANDBOX_DISABLE_NETNS_FIREWALL']);
    process.env['SANDBOX_DISABLE_NETNS_FIREWALL'] = '1';
    const executor = warmExecutor(runtime, 1);
    await until(() => waiting().length === 1);
    delete process.env['SANDBOX_DISABLE_NETNS_FIREWALL'];
    const answer = await run(executor, 'export default () => 1');
    expect(answer).toMatchObject({ ok: true, enforcement: { network: { status: 'enforced' } } });
  });

  it('have the fences and the limits of any other', async () => {
    const executor = warmExecutor(runtime, 1);
    await until(() => waiting().length === 1);
    const answer = await run(executor, 'export default () => { const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1)) }');
    expect(answer).toMatchObject({ ok: false, code: 'out-of-memory' });
    expect(Object.entries(answer.enforcement).filter(([fence, { status }]) => fence !== 'cpu' && status !== 'enforced')).toEqual([]);
  });

  it('count the deadline from the function on, not from their start', async () => {
    const executor = warmExecutor(runtime, 1);
    await until(() => waiting().length === 1);
    await sleep(1500);
    const answer = await run(executor, 'export default () => new Promise((resolve) => setTimeout(resolve, 300, "in time"))', { capabilities: { timeoutMs: patience(1200) } });
    expect(answer.output).toBe('in time');
  });

  it('that die while they wait are replaced', async () => {
    const executor = warmExecutor(runtime, 1);
    await until(() => waiting().length === 1);
    const [one] = waiting();
    process.kill(one?.pid ?? 0, 'SIGKILL');
    await until(() => waiting().some(({ pid }) => pid !== one?.pid));
    expect(await outputOf(run(executor, 'export default () => 1'))).toBe(1);
  });

  it('take no processor time while they wait', async () => {
    const executor = warmExecutor(runtime, 1);
    await until(() => waiting().length === 1);
    await sleep(500);
    const before = waiting()[0]?.cpu ?? 0;
    await sleep(2000);
    // In hundredths of a second.
    expect((waiting()[0]?.cpu ?? 1000) - before).toBeLessThanOrEqual(2);
    await executor.close();
  });

  it('leave nothing when the executor is closed', async () => {
    const before = leftovers();
    const executor = warmExecutor(runtime, 3);
    await until(() => waiting().length >= 1);
    await executor.close();
    expect(waiting()).toEqual([]);
    // What lies in /tmp may be another test's; descriptors are closed on threads.
    const left = () => ({ ...newLeftovers(before, leftovers()), temporary: undefined });
    for (let tries = 0; tries < 100 && Object.values(left()).some((each) => each !== undefined); tries++) await sleep(20);
    expect(left()).toEqual({});
  });

  it('are kept for another memory, too, once it was asked for', async () => {
    const executor = warmExecutor(runtime, 1);
    await run(executor, 'export default () => 1', { capabilities: { memoryMb: 64 } });
    await until(() => waiting().some(({ command }) => command.includes('old-space-size=64')));
    expect(await outputOf(run(executor, 'export default () => 2', { capabilities: { memoryMb: 64 } }))).toBe(2);
  });
});

describe('a pool that cannot have what it needs', () => {
  it('tries again after a while, not all the time, and answers meanwhile', async () => {
    const executor = createExecutor({ runtime: 'deno', command: '/nowhere/deno', warm: 4 });
    onTestFinished(() => executor.close());
    const before = process.cpuUsage();
    await sleep(1500);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(700);
    expect(await run(executor, 'export default () => 1')).toMatchObject({ ok: false, code: 'command-not-found' });
  });
});
