import { expect, it } from 'vitest';

import { leftovers, newLeftovers } from '../support/leftovers.js';
import { listening, metric, post, until } from './support/service.js';

const slow = (milliseconds: number) => `export default () => new Promise((resolve) => setTimeout(() => resolve('finished'), ${milliseconds}))`;

it('finishes what runs, refuses what waits and what comes with 503, and leaves nothing', async () => {
  const before = leftovers();
  const running = await listening({ concurrency: 1 });
  const { url, app } = running;
  await app.inject('/ready');
  const first = post(url, { source: slow(2000) });
  await until(async () => (await metric(running, 'ringfence_running')) === 1);
  const second = fetch(`${url}/run`, { method: 'POST', body: JSON.stringify({ source: slow(0), capabilities: {} }) });
  await until(async () => (await metric(running, 'ringfence_queue_length')) === 1);

  const stopped = running.stop();
  const third = fetch(`${url}/run`, { method: 'POST', body: JSON.stringify({ source: slow(0), capabilities: {} }) });
  const ready = fetch(`${url}/ready`);
  for (const refused of [await second, await third]) {
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refused.json()).toEqual({ ok: false, error: 'the service is shutting down', logs: [] });
  }
  expect((await ready).status).toBe(503);
  expect(await first).toMatchObject({ ok: true, output: 'finished' });
  await stopped;
  await expect(fetch(`${url}/health`)).rejects.toThrow();
  await running.stop();
  const { processes, cgroups, temporary } = newLeftovers(before, leftovers());
  expect({ processes, cgroups, temporary }).toEqual({});
});

it('does not wait for clients that are idle, or in the middle of a request', async () => {
  const { connect } = await import('node:net');
  const { port, stop } = await listening();
  const idle = connect(port, '127.0.0.1');
  const halfWay = connect(port, '127.0.0.1', () => halfWay.write('POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{'));
  for (const socket of [idle, halfWay]) socket.on('error', () => undefined);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const closed = [idle, halfWay].map((socket) => new Promise((resolve) => socket.on('close', resolve)));
  await stop();
  await Promise.all(closed);
}, 20_000);
