import { expect, it } from 'vitest';

import type { GuestAnswer } from '../../src/guest/answer.js';
import { leftovers, newLeftovers } from '../support/leftovers.js';
import { whereAmI } from '../support/lane.js';
import { belongsHere } from '../support/skip.js';
import { listening, metric } from './support/service.js';

interface Fate {
  source: string;
  capabilities?: object;
  expected: object;
}

/** Each request has a number in it: an answer that went to somebody else is seen. */
const fates: ((number: number) => Fate)[] = [
  (number) => ({ source: `export default (n) => { console.log(n); return n + ${number} }`, expected: { ok: true, output: 2 * number, logs: [`log: ${number}`] } }),
  (number) => ({ source: `export default () => { throw new Error('mine is ${number}') }`, expected: { ok: false, code: 'guest-error', error: `mine is ${number}` } }),
  (number) => ({ source: `export default async () => { await new Promise((resolve) => setTimeout(resolve, 20)); return '${number}' }`, expected: { ok: true, output: `${number}` } }),
  () => ({ source: 'export default () => { for (;;); }', capabilities: { timeoutMs: 800 }, expected: { ok: false, code: 'timeout', timedOut: true } }),
  () => ({ source: 'export default () => new Promise(() => setInterval(() => {}, 1000))', capabilities: { timeoutMs: 700 }, expected: { ok: false, timedOut: true } }),
  (number) => ({ source: `export default () => process.exit(${1 + (number % 100)})`, expected: { ok: false, code: 'guest-exit' } }),
  () => ({ source: 'export default () => { const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1)); }', capabilities: { memoryMb: 16 }, expected: { ok: false, code: 'out-of-memory' } }),
  (number) => ({ source: `export default (n) => 'x'.repeat(1000 * n)`, expected: { ok: true, output: 'x'.repeat(1000 * number) } }),
  () => ({ source: 'export default () => 1', capabilities: { net: ['10.1.2.3'] }, expected: { ok: false, code: 'egress-blocked' } }),
  () => ({ source: 'export default (', expected: { ok: false, code: 'guest-error' } }),
];

it('200 requests at once, of mixed fates, each get their own answer, and nothing is left', async (context) => {
  belongsHere(context, !whereAmI().uml, 'outside User-Mode Linux: two hundred runtimes');
  const before = leftovers();
  const running = await listening({ concurrency: 8, queueLength: 200 });
  const { url } = running;
  const send = async (number: number): Promise<void> => {
    const { expected, capabilities, source } = (fates[number % fates.length] as (number: number) => Fate)(number);
    const body = JSON.stringify({ source, input: number, capabilities: { timeoutMs: 20_000, ...capabilities } });
    // Every twentieth goes away before it has its answer.
    const signal = number % 20 === 13 ? AbortSignal.timeout(100 + 10 * number) : null;
    try {
      const response = await fetch(`${url}/run`, { method: 'POST', body, signal });
      expect((await response.json()) as GuestAnswer, `${number}: ${source}`).toMatchObject(expected);
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    }
  };
  await Promise.all(Array.from({ length: 200 }, (_, number) => send(number)));
  expect(await metric(running, 'ringfence_running')).toBe(0);
  expect(await metric(running, 'ringfence_queue_length')).toBe(0);
  expect(running.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  await running.stop();
  const { processes, cgroups, temporary, mounts } = newLeftovers(before, leftovers());
  expect({ processes, cgroups, temporary, mounts }).toEqual({});
}, 180_000);
