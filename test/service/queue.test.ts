import { expect, it } from 'vitest';

import { listening, metric, until } from './support/service.js';

it('answers 429 with Retry-After when the queue is full, and serves the queue in order', async () => {
  const running = await listening({ concurrency: 1, queueLength: 2 });
  const { url, app } = running;
  await app.inject('/ready');
  const order: number[] = [];
  const send = async (number: number) => {
    const source = 'export default (n) => new Promise((resolve) => setTimeout(() => resolve(n), 500))';
    const response = await fetch(`${url}/run`, { method: 'POST', body: JSON.stringify({ source, input: number, capabilities: {} }) });
    if (response.status === 200) order.push(((await response.json()) as { output: number }).output);
    return response;
  };
  const requests = [send(0)];
  await until(async () => (await metric(running, 'ringfence_running')) === 1);
  for (const number of [1, 2]) {
    requests.push(send(number));
    await until(async () => (await metric(running, 'ringfence_queue_length')) === number);
  }
  const refused = await send(3);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await refused.json()).toEqual({ ok: false, error: 'too many runs: the queue is full', logs: [] });
  await Promise.all(requests);
  expect(order).toEqual([0, 1, 2]);
  expect((await send(4)).status).toBe(200);
});
