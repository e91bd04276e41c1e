// npm run bench [-- --rounds N] [name ...]: host and peers side by side in one run. Compare the ratios, not the figures:
// machines differ, and so does one machine from minute to minute.
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { setUpOrExit } from './setup.mjs';

// Whatever the shell exports (certificates, preloads, NODE_OPTIONS) would slow every contender's start, and not alike.
const cleanEnvironment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: process.env.HOME ?? '/', RINGFENCE_BENCH_CLEAN: '1' };
if (process.env.RINGFENCE_BENCH_CLEAN !== '1') {
  await setUpOrExit({ apt: ['bubblewrap', 'slirp4netns', 'passt'] });
  const { RINGFENCE_CGROUP } = process.env;
  const environment = RINGFENCE_CGROUP ? { ...cleanEnvironment, RINGFENCE_CGROUP } : cleanEnvironment;
  const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit', env: environment });
  process.exit(child.status ?? 1);
}

const { values, positionals } = parseArgs({ options: { rounds: { type: 'string', default: '100' } }, allowPositionals: true });
const rounds = Number(values.rounds);
const launch = await import('./bench/launch.mjs');
const egress = await import('./bench/egress.mjs');
const service = await import('./bench/service.mjs');
const benches = {
  launch: () => launch.launchToResult(rounds),
  block: () => launch.eventLoopBlock(rounds),
  throughput: () => launch.runsPerSecond(rounds),
  memory: () => launch.memoryPerSandbox(),
  functions: () => service.latency(rounds),
  'functions-throughput': () => service.throughput(rounds),
  egress: async () => [await egress.relay(rounds), await egress.gigabyte()].join('\n\n'),
};
const unknown = positionals.filter((name) => !(name in benches));
if (unknown.length > 0 || !(rounds >= 1)) {
  console.error(`bench: usage: npm run bench -- [--rounds N] [${Object.keys(benches).join('|')} ...]`);
  process.exit(2);
}
console.log(`Node ${process.version}, kernel ${execFileSync('uname', ['-r'], { encoding: 'utf8' }).trim()}, ${rounds} rounds\n`);
for (const [name, bench] of Object.entries(benches)) {
  if (positionals.length === 0 || positionals.includes(name)) console.log(`${await bench()}\n`);
}
