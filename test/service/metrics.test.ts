import { expect, it } from 'vitest';

import { listening, metric, post, service, until } from './support/service.js';

it('counts runs by outcome, their durations, what was refused, and what is going on', async () => {
  const running = await listening({ concurrency: 1 });
  const { url, app } = running;
  await app.inject('/ready');
  await post(url, { source: 'export default () => 1' });
  await post(url, { source: 'export default () => { throw 1 }' });
  await post(url, { source: 'export default () => new Promise((resolve) => setTimeout(resolve, 20_000))', capabilities: { timeoutMs: 300 } });
  await fetch(`${url}/run`, { method: 'POST', body: '{' });
  const value = (series: string) => metric(running, series);
  expect(await value('ringfence_runs_total{outcome="ok"}')).toBe(1);
  expect(await value('ringfence_runs_total{outcome="guest-error"}')).toBe(1);
  expect(await value('ringfence_runs_total{outcome="timeout"}')).toBe(1);
  expect(await value('ringfence_run_duration_seconds_count')).toBe(3);
  expect(await value('ringfence_run_duration_seconds_sum')).toBeGreaterThan(0.3);
  expect(await value('ringfence_queue_duration_seconds_count')).toBe(3);
  expect(await value('ringfence_refused_requests_total{reason="invalid-json"}')).toBe(1);
  expect(await value('ringfence_running')).toBe(0);
  expect(await value('ringfence_live_sandboxes')).toBe(0);
  expect(await value('process_resident_memory_bytes')).toBeGreaterThan(1e7);

  const slow = 'export default () => new Promise((resolve) => setTimeout(resolve, 1500))';
  const two = [post(url, { source: slow }), post(url, { source: slow })];
  await until(async () => (await value('ringfence_queue_length')) === 1);
  expect(await value('ringfence_running')).toBe(1);
  expect(await value('ringfence_live_sandboxes')).toBe(1);
  await Promise.all(two);
  expect(await value('ringfence_queue_duration_seconds_sum')).toBeGreaterThan(0.5);
  expect((await app.inject('/metrics')).headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
});

it('counts connections that were refused', async () => {
  const running = await listening();
  const source = "export default () => import('node:net').then(({ connect }) => new Promise((resolve) => connect(443, 'elsewhere.test').on('error', ({ code }) => resolve(code))))";
  const answer = await post(running.url, { source, capabilities: { net: ['example.com'], timeoutMs: 20_000 } });
  expect(answer.connections).toMatchObject([{ host: 'elsewhere.test', verdict: 'refused' }]);
  expect(await metric(running, 'ringfence_connections_total{verdict="refused"}')).toBe(1);
  expect(await metric(running, 'ringfence_connections_total{verdict="allowed"}')).toBe(0);
});

it('two services in one process count apart', async () => {
  const [first, second] = [await service(), await service()];
  await first.app.inject({ method: 'POST', url: '/run', payload: { source: 'export default () => 1', capabilities: {} } });
  expect(await metric(first, 'ringfence_runs_total{outcome="ok"}')).toBe(1);
  expect(await metric(second, 'ringfence_runs_total{outcome="ok"}')).toBe(0);
});
