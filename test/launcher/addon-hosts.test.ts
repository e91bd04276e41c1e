import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { locateAddon } from '../../src/launcher/locate.js';
import { patience } from '../support/lane.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { isRunning } from '../support/processes.js';
import { temporaryDirectory } from '../support/temporary.js';
import { scriptedLauncher } from './scripted.js';

const hostScript = fileURLToPath(new URL('../fixtures/addon-host.mjs', import.meta.url));
const fixtures = path.dirname(hostScript);

// The scripted launcher ends by itself, whatever the host under test does.
const untilHungUp = 'record up\nanswer\nexit 0';
const deaf = 'record up\nsleep 30000';

interface Host {
  process: ChildProcess;
  lines: string[];
  /** Exit code, or the signal's name. */
  ended: Promise<number | string>;
}

function startHost(behaviour: string, ...scripts: string[]): Host {
  const host = spawn(process.execPath, [hostScript, locateAddon(), scriptedLauncher, behaviour, ...scripts], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  onTestFinished(() => void host.kill('SIGKILL'));
  const lines: string[] = [];
  for (const stream of [host.stdio[1], host.stdio[2], host.stdio[3]]) {
    createInterface({ input: stream as NodeJS.ReadableStream }).on('line', (line) => lines.push(line));
  }
  const ended = once(host, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return { process: host, lines, ended };
}

async function startWorker(...scripts: string[]): Promise<{ worker: Worker; pids: number[] }> {
  const worker = new Worker(hostScript, { workerData: [locateAddon(), scriptedLauncher, 'worker', ...scripts] });
  const lines: string[] = [];
  worker.on('message', (line: string) => lines.push(line));
  await eventually(() => lines.filter((line) => line === 'record up').length === scripts.length);
  return { worker, pids: pidsOf(lines) };
}

function pidsOf(lines: string[]): number[] {
  return lines.flatMap((line) => /^pid (\d+)$/.exec(line)?.[1] ?? []).map(Number);
}

async function eventually(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + patience(15_000);
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('it did not come to pass');
    await sleep(20);
  }
}

describe('a worker', () => {
  it('that is terminated hangs up and waits until its launchers are gone, several workers at once', async () => {
    const before = leftovers();
    const workers = await Promise.all([1, 2, 3].map(() => startWorker(untilHungUp, untilHungUp)));
    const pids = workers.flatMap(({ pids }) => pids);
    expect(pids.filter(isRunning)).toHaveLength(6);
    await Promise.all(workers.map(({ worker }) => worker.terminate()));
    expect(newLeftovers(before, leftovers()).processes).toBeUndefined();
  });

  it('that is terminated kills a launcher which does not listen, after some seconds', async () => {
    const before = leftovers();
    const { worker, pids } = await startWorker(deaf, untilHungUp);
    const started = Date.now();
    await worker.terminate();
    expect(pids.filter(isRunning)).toEqual([]);
    expect(newLeftovers(before, leftovers()).processes).toBeUndefined();
    expect(Date.now() - started).toBeGreaterThan(2_000); // it had time to clean up
  });

  it('may be terminated at any moment, in the middle of a launch too, without harm to the host', async () => {
    const before = leftovers();
    const restless = async (): Promise<void> => {
      for (let count = 0; count < 12; count += 1) {
        const workerData = [locateAddon(), scriptedLauncher, 'again', 'many 3', 'descriptors 2', 'sleep 5'];
        const worker = new Worker(hostScript, { workerData, trackUnmanagedFds: false });
        await once(worker, 'message');
        await sleep(Math.random() * 60);
        await worker.terminate();
      }
    };
    await Promise.all([restless(), restless()]);
    expect(newLeftovers(before, leftovers()).processes).toBeUndefined();
  });

  it('that is terminated closes the streams that nobody took', async () => {
    const before = leftovers();
    const worker = new Worker(hostScript, { workerData: [locateAddon(), scriptedLauncher, 'untaken', untilHungUp, untilHungUp], trackUnmanagedFds: false });
    await once(worker, 'message');
    await worker.terminate();
    expect(newLeftovers(before, leftovers())).toEqual({});
  });

  it('keeps running until its launchers ended, and then ends by itself', async () => {
    const { worker } = await startWorker('record up\nsleep 300\nexit 0');
    const [exitCode] = (await once(worker, 'exit')) as [number];
    expect(exitCode).toBe(0);
  });
});

describe('a host process', () => {
  it('that exits in the middle of a run takes the launcher with it', async () => {
    const host = startHost('exit', untilHungUp);
    expect(await host.ended).toBe(5);
    const [pid = 0] = pidsOf(host.lines);
    expect(pid).toBeGreaterThan(0);
    await eventually(() => !isRunning(pid));
  });

  it('that is killed takes the launcher with it', async () => {
    const host = startHost('plain', untilHungUp, untilHungUp);
    await eventually(() => host.lines.filter((line) => line === 'record up').length === 2);
    host.process.kill('SIGKILL');
    expect(await host.ended).toBe('SIGKILL');
    await eventually(() => !pidsOf(host.lines).some(isRunning));
  });

  it('hears of the exit even when the kernel reaps its children (SIGCHLD ignored)', async () => {
    const library = path.join(temporaryDirectory(), 'ignore-children.so');
    execFileSync('c++', ['-shared', '-fPIC', '-o', library, path.join(fixtures, 'ignore-children.cc')]);
    const host = startHost(`children-ignored ${library}`, 'record up\nexit 3', 'exit 4', 'record up\nsleep 200');
    expect(await host.ended).toBe(0);
    expect(host.lines.filter((line) => line === 'record up')).toHaveLength(2);
    expect(host.lines.filter((line) => line === 'exit null null')).toHaveLength(3);
  });

  it('whose own streams are closed gives the launcher the right ones, and keeps 0, 1 and 2 for nobody', async () => {
    const host = startHost('closed-streams 3', 'birth\nexit 0');
    expect(await host.ended).toBe(0);
    const birth = host.lines.find((line) => line.startsWith('record {')) ?? '';
    expect(JSON.parse(birth.slice('record '.length))).toMatchObject({ descriptors: expect.arrayContaining([0, 1, 2, 3, 4]) });
    const streams = host.lines.find((line) => line.startsWith('streams')) ?? '';
    expect(Math.min(...streams.split(' ').slice(1).map(Number))).toBeGreaterThan(4);
    expect(host.lines).toContain('exit 0 null');
  });

  it('sees what its callbacks throw as uncaught exceptions, and the run goes on', async () => {
    const host = startHost('throw', 'record a\nrecord b\nexit 0');
    expect(await host.ended).toBe(0);
    expect(host.lines.filter((line) => !/^(pid|streams)/.test(line))).toEqual([
      'record a',
      'uncaught thrown at a',
      'record b',
      'uncaught thrown at b',
      'exit 0 null',
      'uncaught thrown at exit',
    ]);
  });
});
