// npm start: sets up what is missing, then shows the main job on a real example.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setUpOrExit } from './setup.mjs';

const root = dirname(import.meta.dirname);
const ringfence = join(root, 'dist/cli/main.js');
const hog = 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1));';

await setUpOrExit();
const service = createServer((socket) => socket.end('a service of this machine')).listen(0, '127.0.0.1');
await once(service, 'listening');
const code = await show(service.address().port);
service.close();
process.exitCode = code;

/** @returns the exit code: 0 when every fence was shown. */
async function show(port) {
  console.log('\nA script that nobody trusts, run as: ringfence run --timeout 20s --pids 32 -- node untrusted.mjs\n');
  const script = [process.execPath, 'untrusted.mjs', String(port), homedir()];
  const first = await run(['run', '--timeout', '20s', '--pids', '32', '--', ...script]);
  if (first.exitCode === 125) return explain();

  console.log('\nOne that eats memory without end: ringfence run --memory 64M -- node hog.mjs\n');
  await run(['run', '--memory', '64M', '--', process.execPath, '-e', hog]);

  console.log('\nWhat was in force, as ringfence run --json tells for every run:\n');
  const { stdout } = await run(['run', '--json', '--cpus', '0.5', '--memory', '64M', '--', process.execPath, '-e', hog], 'pipe');
  const { outcome, usage, enforcement } = JSON.parse(stdout);
  for (const [fence, { status, by }] of Object.entries(enforcement)) console.log(`  ${fence.padEnd(12)}${status.padEnd(12)}${by}`);
  console.log(`\n  ${outcome} after ${Math.round(usage.wallMs)} ms, at ${Math.round(usage.peakMemoryBytes / 2 ** 20)} MiB; nothing of it is left.`);
  console.log('\nNext: node dist/cli/main.js run --help, or "import { runSandboxed } from \'ringfence\'".');
  return first.exitCode;
}

async function explain() {
  console.log('\nThis machine is not ready for strict runs. What it can do, and how to get the rest:\n');
  return (await run(['doctor'])).exitCode;
}

async function run(args, stdout = 'inherit') {
  const child = spawn(process.execPath, [ringfence, ...args], {
    cwd: join(root, 'scripts/example'),
    env: { ...process.env, API_TOKEN: 'a secret of this shell' },
    stdio: ['ignore', stdout, 'inherit'],
  });
  const chunks = [];
  child.stdout?.on('data', (chunk) => chunks.push(chunk));
  const [exitCode] = await once(child, 'close');
  return { exitCode, stdout: Buffer.concat(chunks).toString() };
}
