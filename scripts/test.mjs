/**
 * npm test [-- [--lane NAME]… [vitest's own arguments…]]: sets up what is missing, then runs the tests in every lane
 * that this host can do (scripts/lanes/lanes.mjs). With RINGFENCE_MUST_RUN=1 a lane that cannot run is a failure.
 */
import { setUpOrExit } from './setup.mjs';

const laneDeadlineMs = 600_000;

async function main() {
  const { names, filters } = parse(process.argv.slice(2));
  const inUml = names.length === 0 || names.some((name) => name.startsWith('uml'));
  await setUpOrExit({ apt: ['util-linux', 'chromium', ...(inUml ? ['user-mode-linux', 'e2fsprogs', 'iproute2'] : [])] });
  // Not before: these need what was just set up.
  const { lanes } = await import('./lanes/lanes.mjs');
  const { summarize } = await import('./lanes/summary.mjs');
  const { abortOnSignals } = await import('./lanes/interrupt.mjs');

  const unknown = names.filter((name) => !lanes.some((lane) => lane.name === name));
  if (unknown.length > 0) throw new Error(`no lane ${unknown.join(', ')}; there are ${lanes.map(({ name }) => name).join(', ')}`);
  const signal = abortOnSignals();
  const results = [];
  for (const lane of lanes.filter(({ name }) => names.length === 0 || names.includes(name))) {
    results.push(await runLane(lane, { filters, signal, deadlineMs: laneDeadlineMs }));
    if (signal.aborted) break;
  }
  const { lines, failed } = summarize(results, {
    mustRun: process.env.RINGFENCE_MUST_RUN === '1',
    complete: names.length === 0 && filters.length === 0,
  });
  console.log(`\n${lines.join('\n')}`);
  process.exitCode ||= failed ? 1 : 0;
}

function parse(args) {
  const names = [];
  const filters = [];
  for (let at = 0; at < args.length; at += 1) {
    if (args[at] === '--lane') names.push(args[(at += 1)] ?? '');
    else filters.push(args[at]);
  }
  return { names, filters };
}

/** @returns {Promise<import('./lanes/summary.mjs').LaneResult>} */
async function runLane(lane, options) {
  const notRun = lane.missing();
  if (notRun !== null) return { name: lane.name, tests: [], notRun, fault: null, seconds: 0 };
  console.log(`\n== ${lane.name} ==`);
  const start = performance.now();
  const done = (tests, fault) => ({ name: lane.name, tests, notRun, fault, seconds: (performance.now() - start) / 1000 });
  try {
    const { exitCode, tests } = await lane.run(options);
    const explained = exitCode === 0 || tests?.some(({ status }) => status === 'failed');
    return done(tests ?? [], explained ? null : `vitest ended with ${exitCode}, see its output`);
  } catch (error) {
    return done([], error.message);
  }
}

await main();
