import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';

import { patience } from '../support/lane.js';
import { attack, attackClass } from './support/attack.js';
import { withOptions } from './support/controls.js';
import type { Lab } from './support/lab.js';

const few = { limits: { pids: 24 } };
const many = withOptions('a limit of 160', () => ({ limits: { pids: 160 } }));
const counted = ({ result }: { result: { usage: { pidsRefused: number | null; peakPids: number | null } } | null }): void => {
  expect(result?.usage.pidsRefused).toBeGreaterThan(0);
  expect(result?.usage.peakPids ?? 0).toBeLessThanOrEqual(24);
};

const bomb = `:(){ :|:& };:; exec sleep ${Math.min(patience(1000), 3000) / 1000}`;

/** Starts a process of the host as long as the run lasts; the longest that one took, in milliseconds. */
async function startedMeanwhile(run: Promise<unknown>): Promise<number> {
  let over = false;
  void run.finally(() => (over = true));
  let longest = 0;
  while (!over) {
    const start = performance.now();
    await once(spawn('true', { stdio: 'ignore' }), 'exit');
    longest = Math.max(longest, performance.now() - start);
  }
  return longest;
}

attackClass({ name: 'process limit', program: 'quotas.c', flags: ['-pthread'], besideFilter: true }, [
  attack({
    title: 'A fork bomb stays in its limit, and the host goes on',
    guest: () => ({ command: 'bash', args: ['-c', bomb] }),
    options: () => ({ ...few, timeoutMs: patience(4000), gracePeriodMs: 100 }),
    outcomes: ['exit', 'timeout'],
    async inside(guest, options, _ground, lab: Lab) {
      const run = lab.sandbox(guest, options);
      const longest = await startedMeanwhile(run);
      expect(longest, 'a process of the host had to wait').toBeLessThan(patience(5000));
      return run;
    },
    control: many,
    escaped: ({ result }) => (result?.usage.peakPids ?? 0) > 24,
    check: counted,
  }),
  attack({
    title: 'Children that wait stay in the limit',
    guest: (lab) => lab.attack('forks', '100'),
    options: () => few,
    control: many,
    check: counted,
  }),
  attack({
    title: 'Children that have ended and are not waited for count too',
    guest: (lab) => lab.attack('zombies', '100'),
    options: () => few,
    control: many,
    check: counted,
  }),
  attack({
    title: 'Threads count as processes do',
    guest: (lab) => lab.attack('threads', '100'),
    options: () => few,
    control: many,
    check: counted,
  }),
  attack({
    title: "Node's worker threads stay in the limit",
    guest: (lab) => ({ command: process.execPath, args: [lab.fixture('workers.mjs'), '10'] }),
    options: () => ({ limits: { pids: 16 }, filesystem: { read: [new URL('../fixtures/escape/workers.mjs', import.meta.url).pathname] } }),
    control: withOptions('a limit of 128', () => ({ limits: { pids: 128 } })),
    escaped: ({ verdict }) => verdict === 'escaped',
    check: ({ result }) => expect(result?.usage.pidsRefused).toBeGreaterThan(0),
  }),
]);
