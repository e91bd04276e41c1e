/**
 * npm test [-- [--lane NAME]… [--attack-table] [vitest's own arguments…]]: sets up what is missing, then runs the tests in
 * every lane that this host can do (scripts/lanes/lanes.mjs). With RINGFENCE_MUST_RUN=1 a lane that cannot run is a failure.
 * With --attack-table README gets the table of attacks, if every lane could run and nothing failed.
 */
import { fileURLToPath } from 'node:url';

import { setUpOrExit } from './setup.mjs';

async function main() {
  const { names, filters, writesTable } = parse(process.argv.slice(2));
  const inUml = names.length === 0 || names.some((name) => name.startsWith('uml'));
  await setUpOrExit({ apt: ['util-linux', 'stress-ng', 'iproute2', 'curl', 'openssl', 'python3', 'redis-server', 'redis-tools', 'chromium', 'libseccomp-dev', 'g++-aarch64-linux-gnu', 'binutils', 'qemu-user-static', ...(inUml ? ['user-mode-linux', 'e2fsprogs', 'kmod'] : [])] });
  // Not before: these need what was just set up.
  const { lanes } = await import('./lanes/lanes.mjs');
  const { summarize } = await import('./lanes/summary.mjs');
  const { takeTurns } = await import('./lanes/turns.mjs');
  const { abortOnSignals } = await import('./lanes/interrupt.mjs');
  const { installNodes } = await import('./lanes/nodes.mjs');

  const unknown = names.filter((name) => !lanes.some((lane) => lane.name === name));
  if (unknown.length > 0) throw new Error(`no lane ${unknown.join(', ')}; there are ${lanes.map(({ name }) => name).join(', ')}`);
  const chosen = lanes.filter(({ name }) => names.length === 0 || names.includes(name));
  if (chosen.some(({ name }) => name.startsWith('host'))) installNodes();
  const signal = abortOnSignals();
  const results = [];
  for (const step of new Set(chosen.map((lane) => lane.step))) {
    const together = chosen.filter((lane) => lane.step === step);
    const turn = takeTurns(together.length, (chunk) => process.stdout.write(chunk));
    results.push(...(await Promise.all(together.map((lane, at) => runLane(lane, { filters, signal, output: turn(at) })))));
    if (signal.aborted) break;
  }
  const { lines, failed } = summarize(results, {
    mustRun: process.env.RINGFENCE_MUST_RUN === '1',
    complete: names.length === 0 && filters.length === 0,
  });
  console.log(`\n${lines.join('\n')}`);
  process.exitCode ||= failed ? 1 : 0;
  if (writesTable) await writeTable(results, { failed, complete: results.length === lanes.length && results.every(({ notRun }) => notRun === null) });
}

async function writeTable(results, { failed, complete }) {
  const { attackTable, putIntoReadme } = await import('./lanes/attack-table.mjs');
  const { lines, notHeld } = attackTable(results);
  if (!failed && complete && notHeld.length === 0) return putIntoReadme(fileURLToPath(new URL('../README.md', import.meta.url)), lines);
  console.error(`README keeps its table of attacks: ${[failed && 'a test failed', !complete && 'not every lane was run', notHeld.length > 0 && `not held: ${notHeld.join(', ')}`].filter(Boolean).join('; ')}`);
  process.exitCode ||= 1;
}

function parse(args) {
  const names = [];
  const filters = [];
  let writesTable = false;
  for (let at = 0; at < args.length; at += 1) {
    if (args[at] === '--lane') names.push(args[(at += 1)] ?? '');
    else if (args[at] === '--attack-table') writesTable = true;
    else filters.push(args[at]);
  }
  return { names, filters, writesTable };
}

/** @returns {Promise<import('./lanes/summary.mjs').LaneResult>} */
async function runLane(lane, { filters, signal, output }) {
  const notRun = lane.missing();
  const start = performance.now();
  const done = (tests, fault) => {
    output.end();
    return { name: lane.name, tests, elsewhere: filters.length > 0 ? [] : lane.elsewhere, notRun, fault, seconds: (performance.now() - start) / 1000 };
  };
  if (notRun !== null) return done([], null);
  output.write(`\n== ${lane.name} ==\n`);
  try {
    // Who names tests gets them wherever.
    const chosen = filters.length > 0 ? filters : lane.elsewhere.map((pattern) => `--exclude=${pattern}`);
    const { exitCode, fault, tests } = await lane.run({ filters: chosen, signal, write: output.write });
    const explained = exitCode === 0 || tests.some(({ status }) => status === 'failed');
    return done(tests, fault ?? (explained ? null : `vitest ended with ${exitCode}, see its output`));
  } catch (error) {
    return done([], error.message);
  }
}

await main();
