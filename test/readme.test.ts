import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { flagByField } from '../src/cli/flag-names.js';
import { allowlistFields } from '../src/egress/policy.js';
import { exitCodeByAnswer, exitCodeByOutcome, hints, httpStatusByRefusal } from '../src/errors.js';
import { stages } from '../src/launcher/stages.js';
import { fences } from '../src/run/result.js';
import { settingTable } from '../src/service/settings.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** The cells of the table whose first heading is `heading`, row by row. */
function table(heading: string): string[][] {
  const [, body] = readme.split(`\n| ${heading} |`);
  if (body === undefined) throw new Error(`README has no table with the heading ${heading}`);
  const rows = body.split('\n').slice(2);
  const end = rows.findIndex((row) => !row.startsWith('|'));
  return rows.slice(0, end).map((row) => row.slice(2, -2).split(' | '));
}

const names = (heading: string) => table(heading).map(([first = '']) => first.replaceAll('`', ''));

test('README lists every stage in the order of the launch', () => {
  expect(names('stage')).toEqual([...stages]);
});

test('README lists every fence', () => {
  expect(names('fence')).toEqual([...fences]);
});

test('README gives the exit code of every outcome', () => {
  const codes = Object.fromEntries(table('outcome').map(([name = '', , code]) => [name.replaceAll('`', ''), code]));
  const { exit, ...others } = codes;
  expect(exit).toBe('its own, or 128+n');
  expect(others).toEqual(Object.fromEntries(Object.entries(exitCodeByOutcome).map(([name, code]) => [name, String(code)])));
});

test('README lists every option of an allowlist, with its flag', () => {
  const rows = table('option of `network`').map(([name = '', flag = '']) => [name.replaceAll('`', ''), flag.replaceAll('`', '')]);
  expect(rows.map(([name]) => name)).toEqual([...allowlistFields]);
  const flags = flagByField as Readonly<Record<string, string>>;
  for (const [name, flag] of rows) expect(flag, name).toBe(flags[`network.${name}`] ?? 'none');
});

test('README lists every error code with its hint', () => {
  const rows = table('code').map(([code = '', hint]) => [code.replaceAll('`', ''), hint?.replaceAll('\\|', '|')]);
  expect(Object.fromEntries(rows)).toEqual(hints);
});

test('README gives the status of every request that no run comes of', () => {
  const rows = table('reason').map(([reason = '', status]) => [reason.replaceAll('`', ''), Number(status)]);
  expect(Object.fromEntries(rows)).toEqual(httpStatusByRefusal);
});

test('README gives the exit code of every failed function', () => {
  const rows = table('answer').map(([code = '', exitCode]) => [code.replaceAll('`', ''), Number(exitCode)]);
  expect(Object.fromEntries(rows)).toEqual(exitCodeByAnswer);
});

test('README lists every setting of the service, with its flag and its meaning', () => {
  const rows = table('setting').map(([variable = '', flag = '', , meaning]) => [variable.replaceAll('`', ''), flag.replaceAll('`', ''), meaning]);
  expect(rows).toEqual(Object.values(settingTable).map(({ variable, flag, description }) => [variable, flag ?? 'none', description]));
});
