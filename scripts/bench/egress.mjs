// One client and one server, and between them: nothing (loopback), the relay of an allowlist, slirp4netns, pasta.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { runSandboxed } from '../../dist/index.js';
import { inTurn, median, table } from './measure.mjs';

const client = fileURLToPath(new URL('egress/client.mjs', import.meta.url));
const serverScript = fileURLToPath(new URL('egress/server.mjs', import.meta.url));
const MIB = 1 << 20;
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/nonexistent' };

const installed = (name) => ['/usr/bin', '/usr/local/bin'].some((directory) => existsSync(`${directory}/${name}`));

async function startServer() {
  const server = spawn(process.execPath, [serverScript], { stdio: ['pipe', 'pipe', 'inherit'], env: environment });
  const [line] = await once(server.stdout, 'data');
  return { port: Number(line), stop: () => server.stdin.end() };
}

/** Runs a command to its end; what it prints is a number. */
async function figureOf(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment, timeout: 120_000, killSignal: 'SIGKILL' });
  let said = '';
  let complained = '';
  child.stdout.on('data', (chunk) => (said += chunk));
  child.stderr.on('data', (chunk) => (complained += chunk));
  await once(child, 'close');
  const figure = Number(said.trim());
  if (said.trim() === '' || Number.isNaN(figure)) throw new Error(`${command} gave no figure: ${said} ${complained}`);
  return figure;
}

/** A peer that now and then resets a connection is asked again, and its figure is that of the time it worked. */
async function patiently(measure) {
  for (let tries = 1; ; tries++) {
    try {
      return await measure();
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

// Left to itself it becomes nobody, who may not open /dev/net/tun everywhere.
const inPasta = ['--config-net', '--ipv4-only', '--address', '10.0.3.2', '--netmask', '24', '--gateway', '10.0.3.1', '-t', 'none', '-u', 'none'];
const asRoot = process.getuid() === 0 ? ['--runas', '0'] : [];

// slirp4netns is given a namespace that exists: the client waits in it until the tap device is there.
const throughSlirp = `
  unshare -rn sh -c 'while ! ip route show default 2>/dev/null | grep -q .; do sleep 0.02; done; exec "$0" "$@"' "$@" &
  guest=$!
  while [ "$(readlink /proc/$guest/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  slirp4netns --configure --mtu=65520 "$guest" tap0 >/dev/null 2>&1 &
  slirp=$!
  wait $guest
  kill $slirp 2>/dev/null`;

function contenders(port, what, amount) {
  const words = [client, '', String(port), what, String(amount)];
  const at = (host) => [process.execPath, words[0], host, ...words.slice(2)];
  return {
    loopback: () => figureOf(process.execPath, at('127.0.0.1').slice(1)),
    ringfence: async () => {
      const [command, ...args] = at('server.test');
      const network = { allow: [`server.test:${port}`], hosts: { 'server.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] };
      const result = await runSandboxed({ command, args, timeoutMs: 120_000, network, filesystem: { read: [client] } });
      if (result.exitCode !== 0) throw new Error(`ringfence: ${result.outcome} ${result.errorMessage} ${result.stderr}`);
      return Number(result.stdout);
    },
    ...(installed('slirp4netns') && { slirp4netns: () => patiently(() => figureOf('sh', ['-c', throughSlirp, 'sh', ...at('10.0.2.2')])) }),
    ...(installed('pasta') && {
      // The way a packet takes that leaves the namespace: the address of the gateway stands for the host's loopback.
      pasta: () => patiently(() => figureOf('pasta', ['--quiet', ...asRoot, ...inPasta, '--', ...at('10.0.3.1')])),
    }),
  };
}

async function row(name, port, what, amount, rounds, figure) {
  const timed = await inTurn(contenders(port, what, amount), { rounds, warmup: 0 });
  return { name, samples: Object.fromEntries(Object.entries(timed).map(([who, seconds]) => [who, seconds.map(figure)])) };
}

/** Throughput of one stream either way, and what a request takes on a connection that is kept and on a fresh one. */
export async function relay(rounds) {
  const server = await startServer();
  const { port } = server;
  const few = Math.max(3, Math.ceil(rounds / 20));
  try {
    const throughput = [
      await row('download of 512 MiB', port, 'down', 512 * MIB, few, (seconds) => 512 / seconds),
      await row('upload of 512 MiB', port, 'up', 512 * MIB, few, (seconds) => 512 / seconds),
    ];
    const latency = [
      await row('request on a kept connection', port, 'kept', 3000, few, (seconds) => (seconds / 3000) * 1000),
      await row('request on a fresh connection', port, 'fresh', 1000, few, (seconds) => (seconds / 1000) * 1000),
    ];
    const perSecond = latency.map(({ name, samples }) => `${name.replace('request', 'requests')}: ${Object.entries(samples).map(([who, each]) => `${who} ${(1000 / median(each)).toFixed(0)}`).join(', ')} a second`);
    return [table('One stream', 'MiB/s', throughput), table('A request', 'ms', latency), perSecond.join('\n')].join('\n\n');
  } finally {
    server.stop();
  }
}

/** What an allowlist adds to a launch, and what the host holds while a gigabyte passes. */
export async function gigabyte() {
  const server = await startServer();
  const network = { allow: [`server.test:${server.port}`], hosts: { 'server.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] };
  const launch = (more) => runSandboxed({ command: '/bin/true', args: [], timeoutMs: 10_000, ...more });
  try {
    const launches = await inTurn({ "network: 'none'": () => launch({}).then(() => {}), allowlist: () => launch({ network }).then(() => {}) }, { rounds: 50, warmup: 5 });
    const before = process.memoryUsage.rss();
    let most = before;
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
    const result = await runSandboxed({ command: process.execPath, args: [client, 'server.test', String(server.port), 'down', String(1024 * MIB)], timeoutMs: 120_000, network, filesystem: { read: [client] } });
    clearInterval(timer);
    const [{ bytesReceived } = {}] = result.connections.filter(({ bytesReceived }) => bytesReceived > MIB);
    const memory = `1 GiB through the relay: ${bytesReceived} bytes in ${Number(result.stdout).toFixed(2)} s; the host held ${Math.round(before / MIB)} MiB before and ${Math.round(most / MIB)} MiB at most`;
    return [table('Launch to result of /bin/true', 'ms', [{ name: '', samples: launches }]), memory].join('\n\n');
  } finally {
    server.stop();
  }
}
