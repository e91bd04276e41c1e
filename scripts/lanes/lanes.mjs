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
 * @property {number} step lanes of the same step run at the same time
 * @property {() => string | null} missing why this host cannot run it, or null
 * @property {(options: LaneOptions) => Promise<{ exitCode: number, tests: import('./vitest.mjs').Test[] | null }>} run
 *   rejects when the tests did not come to an end by themselves
 */
import path from 'node:path';
import { ordinaryUserMissing, runAsOrdinaryUser, runAsSelf } from './host.mjs';
import { runInUml, umlMissing } from './uml.mjs';
import { readReport, vitestCommand } from './vitest.mjs';

const isRoot = process.getuid() === 0;

/** @type {Lane[]} */
export const lanes = [
  { name: 'host-root', step: 1, missing: () => (isRoot ? null : 'needs root'), run: runAsSelf },
  isRoot
    ? { name: 'host-user', step: 2, missing: ordinaryUserMissing, run: runAsOrdinaryUser }
    : { name: 'host-user', step: 2, missing: () => null, run: runAsSelf },
  // One CPU each.
  { name: 'uml-root', step: 3, missing: umlMissing, run: (options) => runUml(options, false) },
  { name: 'uml-user', step: 3, missing: umlMissing, run: (options) => runUml(options, true) },
];

async function runUml({ filters, signal, write }, asUser) {
  const project = '/tmp/project';
  const report = 'report.json';
  let tests = null;
  const exitCode = await runInUml({
    command: vitestCommand({ project, report: path.join('/run/exchange', report), filters, slow: true }),
    env: { ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}), ...passedOn(['CI', 'RINGFENCE_MUST_RUN', 'NO_COLOR', 'FORCE_COLOR']) },
    asUser, deadlineMs: 780_000, signal, onOutput: write,
    onExchange: (directory) => {
      tests = readReport(path.join(directory, report), project);
    },
  });
  return { exitCode, tests };
}

function passedOn(names) {
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}
