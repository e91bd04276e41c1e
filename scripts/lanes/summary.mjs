import { attackTable } from './attack-table.mjs';

/** From the results of all lanes to what is printed at the end, and to the verdict. */

/**
 * @typedef {object} LaneResult
 * @property {string} name
 * @property {import('./vitest.mjs').Test[]} tests
 * @property {string[]} elsewhere patterns of test files that it leaves to other lanes
 * @property {string | null} notRun why the lane could not be run at all
 * @property {string | null} fault what went wrong beside the tests
 * @property {number} seconds
 *
 * @param {LaneResult[]} results
 * @param {{ mustRun: boolean, complete: boolean }} options `complete`: all tests of all lanes were asked for
 * @returns {{ lines: string[], failed: boolean }} the last line is `N passed, N failed, N skipped`
 */
export function summarize(results, { mustRun, complete }) {
  const problems = results.flatMap((result) => problemsOf(result, mustRun));
  const skips = skipsByTest(results);
  if (mustRun && complete && results.every(({ notRun, fault }) => notRun === null && fault === null)) {
    const ran = new Set(results.flatMap(({ tests }) => tests.filter(({ status }) => status !== 'skipped').map(({ name }) => name)));
    for (const name of skips.keys()) {
      if (!ran.has(name)) problems.push(`${name}: was skipped in every lane`);
    }
  }
  const all = results.flatMap(({ tests }) => tests);
  const failed = count(all, 'failed') + problems.length;
  return {
    failed: failed > 0,
    lines: [
      ...table(results),
      ...section('Left to the other lanes', results.filter(({ elsewhere }) => elsewhere.length > 0).map(({ name, elsewhere }) => `${name}: ${elsewhere.join(' ')}`)),
      ...section('Skipped', [...skips].map(([name, where]) => `${name}: ${[...where].join('; ')}`)),
      ...section('Passed only when tried again', results.flatMap(({ name, tests }) => tests.filter(({ status, retries = 0 }) => status === 'passed' && retries > 0).map((test) => `${name}: ${test.name}: ${test.reason.split('\n')[0]}`))),
      ...section('Attacks by class, and how many were held where', complete ? attackTable(results).lines : []),
      ...section('Failed tests', results.flatMap(({ name, tests }) => tests.filter(({ status }) => status === 'failed').map((test) => `${name}: ${test.name}`))),
      ...section('Other failures', problems),
      '',
      `${count(all, 'passed')} passed, ${failed} failed, ${count(all, 'skipped')} skipped`,
    ],
  };
}

function problemsOf({ name, tests, notRun, fault }, mustRun) {
  const problems = [];
  if (fault !== null) problems.push(`${name}: ${fault}`);
  if (notRun !== null && mustRun) problems.push(`${name}: RINGFENCE_MUST_RUN=1, and this lane cannot run: ${notRun}`);
  if (notRun === null && fault === null && tests.length === 0) problems.push(`${name}: no test was run`);
  if (mustRun) {
    // What a failed file or hook took along is explained by that failure.
    const failures = tests.filter(({ status }) => status === 'failed').map(({ name: failed }) => `${failed} > `);
    const silent = tests.filter(({ status, reason, name: skipped }) => status === 'skipped' && reason === ''
      && !failures.some((failed) => skipped.startsWith(failed)));
    problems.push(...silent.map((test) => `${name}: ${test.name} was skipped without a reason`));
  }
  return problems;
}

/** @returns {Map<string, Set<string>>} from a test's name to its reasons with their lanes */
function skipsByTest(results) {
  const skips = new Map();
  for (const { name: lane, tests } of results) {
    for (const { name, reason } of tests.filter(({ status }) => status === 'skipped')) {
      const where = skips.get(name) ?? new Map();
      where.set(reason, [...(where.get(reason) ?? []), lane]);
      skips.set(name, where);
    }
  }
  const words = (where) => new Set([...where].map(([reason, names]) => `${reason || 'no reason given'} (${names.join(', ')})`));
  return new Map([...skips].map(([name, where]) => [name, words(where)]));
}

function table(results) {
  const row = (...cells) => cells.map((cell, at) => (at === 0 ? String(cell).padEnd(12) : String(cell).padStart(9))).join('');
  return [
    row('lane', 'passed', 'failed', 'skipped', 'seconds'),
    ...results.map(({ name, tests, notRun, seconds }) => (notRun === null
      ? row(name, count(tests, 'passed'), count(tests, 'failed'), count(tests, 'skipped'), seconds.toFixed(1))
      : `${name.padEnd(12)}   not run: ${notRun}`)),
  ];
}

const section = (title, lines) => (lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)]);

const count = (tests, status) => tests.filter((test) => test.status === status).length;
