/** The one test command of all lanes, and what its journal says. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * @param {{ project: string, journal: string, filters: string[], slow?: boolean }} options `slow`: one CPU on which
 *   Node takes 0.7 s to start, so one worker for all files, and more time for each test.
 */
export function vitestCommand({ project, journal, filters, slow = false }) {
  const pace = slow
    ? ['--no-isolate', '--maxWorkers=1', '--testTimeout=120000', '--hookTimeout=240000', '--slowTestThreshold=10000']
    : ['--slowTestThreshold=3000'];
  const reporter = path.join(project, 'scripts/lanes/journal-reporter.mjs');
  const reporters = ['--reporter=default', `--reporter=${reporter}`, `--outputFile.journal=${journal}`];
  // A loaded machine breaks a test here and there; the summary names each that needed it. Attacks have one try only.
  return [process.execPath, path.join(project, 'node_modules/vitest/vitest.mjs'), 'run', '--retry=2', ...reporters, ...pace, ...filters];
}

/**
 * @typedef {{ name: string, status: 'passed' | 'failed' | 'skipped', reason: string, retries?: number, attack?: import('./attack-table.mjs').Attack }} Test
 *   `name` is the same in all lanes
 * @param {string} file where journal-reporter.mjs wrote
 * @returns {Test[]} of a run that was ended early, its unfinished tests are among the failed
 */
export function readJournal(file) {
  if (!existsSync(file)) return [];
  // What follows the last line's end is nothing, or a line cut short.
  const entries = readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line));
  const tests = entries.filter(({ name }) => name !== undefined);
  if (entries.some(({ ended }) => ended)) return tests;
  const done = new Set(tests.map(({ name }) => name));
  const unfinished = entries.filter(({ begun }) => begun !== undefined && !done.has(begun));
  return [...tests, ...unfinished.map(({ begun }) => ({ name: begun, status: 'failed', reason: 'the run was ended before it was over' }))];
}
