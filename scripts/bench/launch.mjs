// Launch to result, throughput, and what a launch costs the host's event loop and memory.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runSandboxed } from '../../dist/index.js';
import { bwrap, bwrapArguments, contenders } from './contenders.mjs';
import { inTurn, table } from './measure.mjs';

function denoBinary() {
  const require = createRequire(import.meta.url);
  try {
    const machine = process.arch === 'arm64' ? 'arm64' : 'x64';
    return join(dirname(require.resolve(`@deno/linux-${machine}-glibc/package.json`)), 'deno');
  } catch {
    console.error('bench: deno is not installed; its row is left out (npm install deno)');
    return null;
  }
}

export async function launchToResult(rounds) {
  const deno = denoBinary();
  const commands = [
    ['/bin/true', '/bin/true', [], []],
    ['node -e 1', process.execPath, ['-e', '1'], []],
    ...(deno ? [['deno eval 1', deno, ['eval', '1'], [dirname(deno)]]] : []),
  ];
  const rows = [];
  for (const [name, command, args, files] of commands) {
    const samples = await inTurn(contenders(command, args, files), { rounds: name === '/bin/true' ? rounds * 4 : rounds, warmup: 5 });
    rows.push({ name, samples });
  }
  return table('Launch to result', 'ms', rows);
}

async function throughput(run, concurrency, total) {
  const start = performance.now();
  let left = total;
  const worker = async () => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return (total * 1000) / (performance.now() - start);
}

export async function runsPerSecond(rounds) {
  const rows = [];
  const all = contenders('/bin/true', []);
  for (const concurrency of [1, 4, 16]) {
    const timed = Object.fromEntries(Object.entries(all).map(([name, run]) => [name, () => throughput(run, concurrency, 100)]));
    rows.push({ name: `concurrency ${concurrency}`, samples: await inTurn(timed, { rounds: Math.max(3, rounds / 10), warmup: 1 }) });
  }
  return table('/bin/true per second', 'runs/s', rows);
}

/** The longest time that the event loop was held in one go while `launch` ran. */
async function longestBlock(launch) {
  let longest = 0;
  let last = performance.now();
  let watching = true;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (watching) setImmediate(tick);
  };
  setImmediate(tick);
  await new Promise((resolve) => setImmediate(resolve));
  longest = 0;
  await launch();
  watching = false;
  return longest;
}

export async function eventLoopBlock(rounds) {
  const rows = [];
  const ballast = [];
  const all = contenders('/bin/true', []);
  for (const megabytes of [20, 500]) {
    while (ballast.length < megabytes) ballast.push(Buffer.alloc(1 << 20, 1));
    // After one of its own, which does not count: a fork leaves every page of the host to be copied when it is next written
    // to, and the contender after it would pay for that.
    const after = async (run) => (await run(), longestBlock(run));
    const timed = Object.fromEntries(Object.entries(all).map(([name, run]) => [name, () => after(run)]));
    const idle = () => longestBlock(() => sleep(5));
    rows.push({ name: `${megabytes} MB resident`, samples: await inTurn({ ...timed, 'nothing at all': idle }, { rounds: rounds * 2, warmup: 5 }) });
  }
  if (ballast.length === 0) throw new Error('the ballast is gone');
  return table('Longest block of the event loop in one launch', 'ms', rows);
}

/** Proportional set size in MiB of every process below `root` whose command line passes `keep`. */
function pssBelow(root, keep) {
  const parents = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // ESRCH: it ended meanwhile
    }
  }
  const isBelow = (pid) => pid === root || (parents.has(pid) && parents.get(pid) !== 0 && isBelow(parents.get(pid)));
  let kib = 0;
  for (const pid of parents.keys()) {
    if (pid === root || !isBelow(pid)) continue;
    try {
      if (!keep(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) continue;
      kib += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // ESRCH, or EACCES for a process that is not dumpable and not root's to read
    }
  }
  return kib / 1024;
}

export async function memoryPerSandbox() {
  const count = 20;
  const notGuest = (line) => !line.startsWith('/bin/sleep');
  const controller = new AbortController();
  const runs = Array.from({ length: count }, () =>
    runSandboxed({ command: '/bin/sleep', args: ['60'], timeoutMs: 60_000, gracePeriodMs: 10, signal: controller.signal }),
  );
  await sleep(1000);
  const samples = { ringfence: [pssBelow(process.pid, notGuest) / count] };
  controller.abort();
  await Promise.all(runs);
  const peer = bwrap();
  if (peer) {
    const children = Array.from({ length: count }, () => spawn(peer, [...bwrapArguments(), '/bin/sleep', '60'], { stdio: 'ignore', env: {} }));
    await sleep(1000);
    samples.bwrap = [pssBelow(process.pid, notGuest) / count];
    const ended = Promise.all(children.map((child) => new Promise((resolve) => child.on('close', resolve))));
    for (const child of children) child.kill('SIGKILL');
    await ended;
  }
  return table('Resident memory of one live sandbox, its guest not counted', 'MiB', [{ name: '/bin/sleep', samples }]);
}

