/**
 * Every combination of account and cgroup version that the tests are run under.
 *
 * @typedef {object} LaneOptions
 * @property {string[]} filters what vitest is given beside our own flags
 * @property {AbortSignal} signal
 * @property {(chunk: Buffer) => void} write where the output goes
 *
 * @typedef {object} Lane
 * @property {string} name
 * @property {string[]} elsewhere patterns of test files that are left to the other lanes
 * @property {number} step lanes of the same step run at the same time
 * @property {() => string | null} missing why this host cannot run it, or null
 * @property {(options: LaneOptions) => Promise<LaneOutcome>} run rejects when no test could be run
 *
 * @typedef {object} LaneOutcome
 * @property {number | null} exitCode vitest's own; null where it was ended
 * @property {string | null} fault why it was ended
 * @property {import('./vitest.mjs').Test[]} tests
 */
import { rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ordinaryUserMissing, runAsOrdinaryUser, runAsSelf } from './host.mjs';
import { deadlineMs, watchProgress } from './progress.mjs';
import { makeScratch } from './scratch.mjs';
import { runInUml, umlMissing } from './uml.mjs';
import { readJournal, vitestCommand } from './vitest.mjs';

const isRoot = process.getuid() === 0;

// Node takes a second to start in there, and these start many. What they are about is the same on every kernel and
// either version of cgroups; the sandbox below them is tried there by test/run and test/escape.
const leftToTheHost = [
  'test/cli/**',
  'test/client/**',
  'test/egress/**',
  'test/guest/**',
  'test/launcher/**',
  'test/plan/**',
  'test/run/busy-pool.test.ts',
  'test/run/network-toggle.test.ts',
  'test/run/supervise.test.ts',
  'test/scripts/**',
  'test/seccomp/**',
  'test/service/**',
  'test/support/**',
];

// No account has a part in these.
const leftToRoot = ['test/launcher/package.test.ts', 'test/plan/fuzz.test.ts', 'test/scripts/**', 'test/seccomp/**', 'test/service/page.test.ts'];

/** @type {Lane[]} */
export const lanes = [
  { name: 'host-root', step: 1, elsewhere: [], missing: () => (isRoot ? null : 'needs root'), run: runAsSelf },
  isRoot
    ? { name: 'host-user', step: 2, elsewhere: leftToRoot, missing: ordinaryUserMissing, run: runAsOrdinaryUser }
    : { name: 'host-user', step: 2, elsewhere: [], missing: () => null, run: runAsSelf },
  // One CPU each.
  { name: 'uml-root', step: 3, elsewhere: leftToTheHost, missing: umlMissing, run: (options) => runUml(options, false) },
  { name: 'uml-user', step: 3, elsewhere: leftToTheHost, missing: umlMissing, run: (options) => runUml(options, true) },
];

async function runUml({ filters, signal, write }, asUser) {
  const exchange = makeScratch(os.tmpdir());
  const journal = path.join(exchange, 'journal');
  const progress = watchProgress(journal);
  const outcome = { exitCode: null, fault: null };
  try {
    outcome.exitCode = await runInUml({
      command: vitestCommand({ project: '/tmp/project', journal: '/run/exchange/journal', filters, slow: true }),
      env: { ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}), ...passedOn(['CI', 'RINGFENCE_MUST_RUN', 'NO_COLOR', 'FORCE_COLOR']) },
      asUser, exchange, deadlineMs, onOutput: write, signal: AbortSignal.any([signal, progress.signal]),
    });
  } catch (error) {
    outcome.fault = error.message;
  } finally {
    progress.stop();
  }
  const tests = readJournal(journal);
  rmSync(exchange, { recursive: true });
  return { ...outcome, tests };
}

function passedOn(names) {
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}
