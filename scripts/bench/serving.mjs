// The service as a child process, and requests to it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const main = join(import.meta.dirname, '../../dist/cli/main.js');

/** Starts `ringfence serve` with these settings and waits until it is ready. */
export async function serve(settings) {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', ...settings };
  if (process.env.RINGFENCE_CGROUP) env.RINGFENCE_CGROUP = process.env.RINGFENCE_CGROUP;
  const child = spawn(process.execPath, [main, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  let port = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    port = Number(/listening on :(\d+)/.exec(line)?.[1] ?? 0);
    if (port > 0) break;
  }
  child.stdout.resume();
  const service = {
    pid: child.pid,
    /** @returns {Promise<{ status: number, body: any }>} rejects with an AbortError where `signal` comes first */
    post: (body, signal) => send({ agent, port, method: 'POST', path: '/run', signal }, typeof body === 'string' ? body : JSON.stringify(body)),
    metrics: async () => (await send({ agent, port, method: 'GET', path: '/metrics' })).text,
    async stop() {
      agent.destroy();
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
  const ready = await send({ agent, port, method: 'GET', path: '/ready' });
  if (ready.status !== 200) throw new Error(`the service is not ready: ${ready.text}`);
  return service;
}

function send(options, body) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', ...options }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode, text, get body() { return JSON.parse(text); } });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Runs `task` for each of 0 .. total-1, so many at a time. */
export async function crowd(total, concurrency, task) {
  let next = 0;
  const worker = async () => {
    while (next < total) await task(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** Private memory in MiB and open descriptors of a process, and how many descendants it has. */
export function footprint(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return {
    memoryMb: Number(/^RssAnon:\s+(\d+)/m.exec(status)[1]) / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    children: descendants(pid),
  };
}

function descendants(root) {
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
  const isBelow = (pid) => pid !== undefined && pid !== 0 && (pid === root || isBelow(parents.get(pid)));
  return [...parents.keys()].filter((pid) => pid !== root && isBelow(pid)).length;
}
