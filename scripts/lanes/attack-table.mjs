/** The attacks of test/escape by class, and how many of each class were held where: what README shows. */
import { readFileSync, writeFileSync } from 'node:fs';

const [begin, end] = ['<!-- attacks: written by "npm test -- --attack-table" -->', '<!-- attacks: end -->'];

/** The columns, each with the lanes that count for it. */
const columns = {
  root: ({ account }) => account === 'root',
  user: ({ account }) => account === 'user',
  v1: ({ cgroup }) => cgroup === 1,
  v2: ({ cgroup }) => cgroup === 2,
};

/**
 * @typedef {{ class: string, account: 'root' | 'user', cgroup: 1 | 2 | null, kernel: string, open: string | null }} Attack what
 *   test/escape says of each test that is one; `open`: it is known to succeed
 * @param {import('./summary.mjs').LaneResult[]} results
 * @returns {{ lines: string[], notHeld: string[] }} a table in Markdown, and the attacks that no lane has seen held
 */
export function attackTable(results) {
  const tests = results.flatMap((lane) => lane.tests.filter(({ attack }) => attack !== undefined));
  const held = tests.filter(({ status, attack }) => status === 'passed' && attack.open === null);
  const names = (list) => new Set(list.map(({ name }) => name));
  const row = (title, of) => {
    const counts = Object.values(columns).map((counts) => names(held.filter(({ attack }) => of(attack) && counts(attack))).size);
    return `| ${[title, names(tests.filter(({ attack }) => of(attack))).size, ...counts].join(' | ')} |`;
  };
  const classes = [...new Set(tests.map(({ attack }) => attack.class))].sort((one, other) => one.localeCompare(other, 'en'));
  const somewhere = names(held);
  return {
    lines: [
      `| attack class | number | ${Object.keys(columns).join(' | ')} |`,
      '| --- | --- | --- | --- | --- | --- |',
      ...classes.map((name) => row(name, (attack) => attack.class === name)),
      row('all', () => true),
      '',
      `Last written on ${['v1', 'v2'].map((version) => `${kernelsOf(tests, columns[version])} (${version})`).join(' and ')}.`,
    ],
    notHeld: [...names(tests)].filter((name) => !somewhere.has(name)),
  };
}

function kernelsOf(tests, counts) {
  const kernels = new Set(tests.filter(({ attack }) => counts(attack)).map(({ attack }) => attack.kernel));
  return kernels.size === 0 ? 'no kernel' : `Linux ${[...kernels].sort().join(', ')}`;
}

/** Puts the lines where the old ones are. Throws where the file has no place for them. */
export function putIntoReadme(file, lines) {
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${file} has no ${begin} with ${end} below it`);
  writeFileSync(file, `${text.slice(0, from)}${begin}\n${lines.join('\n')}\n${text.slice(to)}`);
}
