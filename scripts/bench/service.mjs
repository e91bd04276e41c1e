// POST /run of `ringfence serve`, cold and warm, beside a bare runtime that is spawned for the same function.
// node scripts/bench/service.mjs soak [N]: N requests of mixed fates, see soak.mjs.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findDeno } from '../../dist/guest/find-deno.js';
import { inTurn, table } from './measure.mjs';
import { crowd, serve } from './serving.mjs';

const SOURCE = 'export default ({ words }) => ({ count: words.length, longest: words.reduce((a, b) => (b.length > a.length ? b : a)) })';
const INPUT = { words: ['the', 'quick', 'brown', 'fox', 'jumped'] };
const EXPECTED = '{"count":5,"longest":"jumped"}';
const WARM = 8;
/** Long enough for a pool to fill up again, so that no contender pays for the one before. */
const SETTLE_MS = 400;

/** The function in a bare runtime, from spawn to the end of its output. */
function bare(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: '/usr/bin:/bin', HOME: '/tmp', DENO_NO_UPDATE_CHECK: '1' } });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.on('error', reject);
    child.on('close', () => (text.trim() === EXPECTED ? resolve() : reject(new Error(`${command} printed ${text}`))));
  });
}

async function run(service) {
  const { status, text } = await service.post({ source: SOURCE, input: INPUT, capabilities: { timeoutMs: 30_000 } });
  if (status !== 200 || !text.includes(`"output":${EXPECTED}`)) throw new Error(`the service answered ${status} ${text}`);
}

async function withContenders(runtime, use) {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'));
  const file = join(directory, 'fn.mjs');
  writeFileSync(file, `${SOURCE.replace('export default', 'const fn =')};\nconsole.log(JSON.stringify(await fn(${JSON.stringify(INPUT)})));\n`);
  const [command, args] = runtime === 'deno' ? [findDeno(), ['run', '--no-prompt', '--quiet', file]] : [process.execPath, [file]];
  const settings = { RINGFENCE_RUNTIME: runtime, RINGFENCE_CONCURRENCY: '8', ...(runtime === 'deno' && { DENO_BIN: command }) };
  const [cold, warm] = [await serve(settings), await serve({ ...settings, RINGFENCE_WARM: String(WARM) })];
  try {
    return await use({ bare: () => bare(command, args), cold: () => run(cold), warm: () => run(warm) });
  } finally {
    await Promise.all([cold.stop(), warm.stop()]);
    rmSync(directory, { recursive: true });
  }
}

/** Each contender's own time, with a pause before it that does not count. */
function settled(contenders) {
  const timed = async (task) => {
    await sleep(SETTLE_MS);
    const start = performance.now();
    await task();
    return performance.now() - start;
  };
  return Object.fromEntries(Object.entries(contenders).map(([name, task]) => [name, () => timed(task)]));
}

export async function latency(rounds) {
  const rows = [];
  for (const runtime of ['deno', 'node']) {
    const samples = await withContenders(runtime, (contenders) => inTurn(settled(contenders), { rounds, warmup: 3 }));
    rows.push({ name: runtime, samples });
  }
  return table('POST /run, from request to answer', 'ms', rows);
}

export async function throughput(rounds) {
  const rows = [];
  const total = 80;
  for (const runtime of ['deno', 'node']) {
    const perSecond = async (task) => {
      await sleep(2 * SETTLE_MS);
      const start = performance.now();
      await crowd(total, 4, task);
      return (total * 1000) / (performance.now() - start);
    };
    const samples = await withContenders(runtime, (contenders) => {
      const timed = Object.fromEntries(Object.entries(contenders).map(([name, task]) => [name, () => perSecond(task)]));
      return inTurn(timed, { rounds: Math.max(3, Math.round(rounds / 10)), warmup: 1 });
    });
    rows.push({ name: runtime, samples });
  }
  return table('Functions per second at concurrency 4', 'runs/s', rows);
}

if (process.argv[1] === import.meta.filename) {
  const [what = 'latency', amount] = process.argv.slice(2);
  if (what === 'soak') {
    const { soak } = await import('./soak.mjs');
    process.exitCode = (await soak(Number(amount ?? 20_000))) ? 0 : 1;
  } else {
    console.log(await { latency, throughput }[what](Number(amount ?? 30)));
  }
}
