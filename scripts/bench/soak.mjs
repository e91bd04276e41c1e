// Requests of mixed fates at concurrency 8: every answer is checked, memory must stay flat, nothing may be left.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { crowd, footprint, serve } from './serving.mjs';

const CONCURRENCY = 8;
const SAMPLES = 40;
/** Growth of the second half's median over that of the second quarter that still counts as flat. */
const FLAT_MB = 12;

const fates = [
  (n) => ({ source: `export default (n) => { console.log(n); return n + ${n} }`, expect: { ok: true, output: 2 * n, logs: [`log: ${n}`] } }),
  (n) => ({ source: `interface A { n: number }\nexport default (n: number) => ({ at: n })`, expect: { ok: true, output: { at: n } } }),
  (n) => ({ source: `export default () => { throw new Error('mine ${n}') }`, expect: { ok: false, code: 'guest-error', error: `mine ${n}` } }),
  (n) => ({ source: `export default async (n) => (await questpie.tools.call('echo', { n })).n`, broker: true, expect: { ok: true, output: n } }),
  (n) => ({ source: `export default async (n) => { await new Promise((r) => setTimeout(r, 5)); return __secrets.k + n }`, secrets: { k: 'v' }, expect: { ok: true, output: `v${n}` } }),
  () => ({ source: 'export default () => { throw 1', expect: { ok: false, code: 'guest-error' } }),
  () => ({ source: 'export default () => 1', capabilities: { net: ['10.0.0.1'] }, expect: { ok: false, code: 'egress-blocked' } }),
  (n) => ({ source: `export default (n) => 'x'.repeat(n % 50000)`, expect: { ok: true, output: 'x'.repeat(n % 50000) } }),
  () => ({ raw: '{"source":', status: 400, expect: { ok: false, error: 'invalid JSON body' } }),
  () => ({ source: 'export default () => process.exit(3)', expect: { ok: false, code: 'guest-exit' } }),
];
/** What takes long is rare. */
const rare = [
  () => ({ source: 'export default () => { for (;;); }', capabilities: { timeoutMs: 300 }, expect: { ok: false, code: 'timeout', timedOut: true } }),
  () => ({ source: 'export default () => new Promise(() => setInterval(() => 0, 1e3))', hangUpMs: 100 }),
  () => ({ source: 'export default () => { const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1)) }', capabilities: { memoryMb: 16 }, expect: { ok: false, code: 'out-of-memory' } }),
];

/** @returns true when everything was as it should be */
export async function soak(total, settings = { RINGFENCE_RUNTIME: 'node' }) {
  const broker = await startBroker();
  const service = await serve({ RINGFENCE_CONCURRENCY: String(CONCURRENCY), ...settings });
  const samples = [];
  const wrong = [];
  const start = performance.now();
  let done = 0;
  await crowd(total, CONCURRENCY, async (n) => {
    const problem = await attempt(service, broker.url, n);
    if (problem !== null) wrong.push(`${n}: ${problem}`);
    if (++done % Math.ceil(total / SAMPLES) === 0) {
      samples.push(footprint(service.pid));
      const { memoryMb, descriptors } = samples.at(-1);
      console.log(`${done} done, ${((done * 1000) / (performance.now() - start)).toFixed(1)}/s, ${memoryMb.toFixed(1)} MiB, ${descriptors} descriptors, ${wrong.length} wrong`);
    }
  });
  const seconds = (performance.now() - start) / 1000;
  const left = await leftAfter(service);
  await service.stop();
  broker.close();
  const growth = median(samples.slice(SAMPLES / 2)) - median(samples.slice(SAMPLES / 4, SAMPLES / 2));
  console.log(`${total} requests in ${seconds.toFixed(0)} s (${(total / seconds).toFixed(1)}/s), ${wrong.length} wrong, memory grew ${growth.toFixed(1)} MiB, left: ${JSON.stringify(left)}`);
  for (const each of wrong.slice(0, 20)) console.log(`wrong ${each}`);
  return wrong.length === 0 && growth <= FLAT_MB && left.children === left.expected;
}

async function attempt(service, url, n) {
  const make = n % 25 === 24 ? rare[Math.floor(n / 25) % rare.length] : fates[n % fates.length];
  const { source, secrets, broker, raw, status = 200, capabilities, hangUpMs, expect } = make(n);
  const bindings = broker ? { url, token: 'soak' } : undefined;
  const body = raw ?? { source, input: n, secrets, bindings, capabilities: { timeoutMs: 30_000, ...capabilities } };
  try {
    const answer = await service.post(body, hangUpMs && AbortSignal.timeout(hangUpMs));
    if (hangUpMs) return 'an answer, where the client had hung up';
    if (answer.status !== status) return `status ${answer.status} ${answer.text.slice(0, 200)}`;
    return contains(answer.body, expect) ? null : `${answer.text.slice(0, 300)} and not ${JSON.stringify(expect).slice(0, 100)}`;
  } catch (error) {
    return hangUpMs && error.name === 'AbortError' ? null : String(error);
  }
}

function contains(value, expected) {
  return Object.entries(expected).every(([key, each]) => JSON.stringify(value[key]) === JSON.stringify(each));
}

/** What the service still has a moment after the last answer; its pool is all that may be there. */
async function leftAfter(service) {
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const live = Number(/^ringfence_live_sandboxes (\d+)/m.exec(await service.metrics())?.[1]);
  const running = Number(/^ringfence_running (\d+)/m.exec(await service.metrics())?.[1]);
  const { children, descriptors } = footprint(service.pid);
  // A sandbox that waits is a launcher, its process 1 and the runtime.
  return { running, live, children, expected: 3 * live, descriptors };
}

async function startBroker() {
  const server = createServer(async (request, response) => {
    const { args } = await json(request);
    response.end(JSON.stringify({ ok: true, value: args.arguments }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

function median(samples) {
  const sorted = samples.map(({ memoryMb }) => memoryMb).sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
