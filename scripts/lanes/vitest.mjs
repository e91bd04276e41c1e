/** The one test command of all lanes, and what its report says. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * @param {{ project: string, report: string, filters: string[], slow?: boolean }} options `slow`: one CPU on which
 *   Node takes 0.7 s to start, so one worker for all files, and more time for each test.
 */
export function vitestCommand({ project, report, filters, slow = false }) {
  const pace = slow ? ['--no-isolate', '--maxWorkers=1', '--testTimeout=120000', '--hookTimeout=240000', '--slowTestThreshold=10000'] : ['--slowTestThreshold=3000'];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return [process.execPath, path.join(project, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...pace, ...filters];
}

/**
 * @typedef {{ name: string, status: 'passed' | 'failed' | 'skipped', reason: string }} Test `name` is the same in all lanes
 * @param {string} file where the JSON reporter wrote
 * @param {string} project the directory that the tests ran in
 * @returns {Test[] | null} null where the run did not get as far as a report
 */
export function readReport(file, project) {
  if (!existsSync(file)) return null;
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const from = path.relative(project, name);
    const tests = assertionResults.map((test) => ({
      name: [from, ...test.ancestorTitles, test.title].join(' > '),
      status: test.status === 'passed' || test.status === 'failed' ? test.status : 'skipped',
      reason: test.meta?.skipReason ?? (test.status === 'todo' ? 'to do' : ''),
    }));
    // A file that cannot be loaded, or whose hook fails, need not have a failed test.
    if (status === 'failed' && !tests.some((test) => test.status === 'failed')) {
      tests.push({ name: from, status: 'failed', reason: message });
    }
    return tests;
  });
}
