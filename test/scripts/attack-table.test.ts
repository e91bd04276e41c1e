import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, it } from 'vitest';
// @ts-expect-error scripts have no declarations
import { attackTable, putIntoReadme } from '../../scripts/lanes/attack-table.mjs';
import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { temporaryDirectory } from '../support/temporary.js';

const root = path.resolve(import.meta.dirname, '../..');

interface Attack {
  class: string;
  account: 'root' | 'user';
  cgroup: 1 | 2;
  kernel: string;
  open: string | null;
}

const onHost: Attack = { class: 'one', account: 'root', cgroup: 1, kernel: '6.18', open: null };
const inUml: Attack = { ...onHost, account: 'user', cgroup: 2, kernel: '6.1' };

function lane(...tests: [name: string, status: string, attack?: Attack][]): object {
  return { tests: tests.map(([name, status, attack]) => ({ name, status, attack })) };
}

const table = (...lanes: object[]) => attackTable(lanes) as { lines: string[]; notHeld: string[] };

/** Classes with their numbers, from the rows of a table. */
function rows(lines: string[]): [name: string, ...numbers: number[]][] {
  return lines
    .filter((line) => / \d+ \|$/.test(line))
    .map((line) => line.slice(2, -2).split(' | '))
    .map(([name = '', ...numbers]) => [name, ...numbers.map(Number)]);
}

it('counts an attack once, wherever it was held', () => {
  const { lines, notHeld } = table(
    lane(['a', 'passed', onHost], ['b', 'passed', { ...onHost, class: 'two' }], ['another test', 'passed']),
    lane(['a', 'passed', { ...onHost, account: 'user' }], ['b', 'skipped', { ...onHost, class: 'two', account: 'user' }]),
    lane(['a', 'passed', inUml], ['b', 'skipped', { ...inUml, class: 'two' }]),
  );
  expect(rows(lines)).toEqual([['one', 1, 1, 1, 1, 1], ['two', 1, 1, 0, 1, 0], ['all', 2, 2, 1, 2, 1]]);
  expect(lines.at(-1)).toBe('Last written on Linux 6.18 (v1) and Linux 6.1 (v2).');
  expect(notHeld).toEqual([]);
});

it('does not count what failed, what was skipped everywhere and what is a known gap', () => {
  const { lines, notHeld } = table(lane(['a', 'failed', onHost], ['b', 'skipped', onHost], ['c', 'passed', { ...onHost, open: 'it succeeds' }]));
  expect(rows(lines)).toEqual([['one', 3, 0, 0, 0, 0], ['all', 3, 0, 0, 0, 0]]);
  expect(notHeld).toEqual(['a', 'b', 'c']);
});

it('puts the table where the old one was, and refuses a file without a place', () => {
  const file = path.join(temporaryDirectory(), 'README.md');
  writeFileSync(file, 'before\n<!-- attacks: written by "npm test -- --attack-table" -->\nold\n<!-- attacks: end -->\nafter\n');
  putIntoReadme(file, ['new', 'lines']);
  expect(readFileSync(file, 'utf8')).toBe('before\n<!-- attacks: written by "npm test -- --attack-table" -->\nnew\nlines\n<!-- attacks: end -->\nafter\n');
  writeFileSync(file, 'nothing');
  expect(() => putIntoReadme(file, [])).toThrow(/has no/);
});

it("README's table has the attacks that there are, by class", { timeout: 120_000 }, async (context) => {
  belongsHere(context, !whereAmI().uml, 'on the host: it is about vitest, which starts slowly elsewhere');
  const list = path.join(temporaryDirectory(), 'list.json');
  // Stress-ng has no verdicts of its own: it is no attack.
  const args = ['list', '--no-isolate', '--exclude=test/escape/stress.test.ts', `--json=${list}`, 'test/escape'];
  await execa(process.execPath, [path.join(root, 'node_modules/vitest/vitest.mjs'), ...args], { cwd: root, stdin: 'ignore' });
  const numbers = new Map<string, number>();
  for (const { name } of JSON.parse(readFileSync(list, 'utf8')) as { name: string }[]) {
    const [about = ''] = name.split(' > ');
    numbers.set(about, (numbers.get(about) ?? 0) + 1);
  }
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, body = ''] = readme.split('<!-- attacks: written by "npm test -- --attack-table" -->');
  const found = rows((body.split('<!-- attacks: end -->')[0] ?? '').split('\n'));
  const total = [...numbers.values()].reduce((sum, number) => sum + number, 0);
  expect(Object.fromEntries(found.map(([name, number]) => [name, number])), 'type "npm test -- --attack-table"').toEqual(Object.fromEntries([...numbers, ['all', total]]));
  // No column claims more than there is.
  for (const [name, number = 0, ...held] of found) expect(Math.max(...held), name).toBeLessThanOrEqual(number);
});
