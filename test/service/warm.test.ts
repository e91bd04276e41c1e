import { expect, it } from 'vitest';

import { leftovers, newLeftovers } from '../support/leftovers.js';
import { listening, metric, post, until } from './support/service.js';

it.each(['deno', 'node'] as const)('keeps sandboxes of %s ready, each for one run, tells of hits, and leaves none', async (runtime) => {
  const before = leftovers();
  const running = await listening({ runtime, warm: 2 });
  await running.app.inject('/ready');
  const value = (series: string) => metric(running, series);
  const filled = () => until(async () => (await value('ringfence_live_sandboxes')) === 2);
  await filled();
  const [hits, cold] = [await value('ringfence_warm_hits_total'), await value('ringfence_cold_starts_total')];

  const source = "export default () => { const before = globalThis.mark; globalThis.mark = 'used'; return before ?? 'fresh' }";
  for (let round = 0; round < 3; round++) {
    expect(await post(running.url, { source })).toMatchObject({ ok: true, output: 'fresh', enforcement: { memory: { status: 'enforced' }, network: { status: 'enforced' } } });
    await filled();
  }
  expect(await value('ringfence_warm_hits_total')).toBe(hits + 3);
  expect(await post(running.url, { source, capabilities: { memoryMb: 77 } })).toMatchObject({ ok: true, output: 'fresh' });
  expect(await value('ringfence_cold_starts_total')).toBe(cold + 1);

  await running.stop();
  const { processes, cgroups, temporary, mounts } = newLeftovers(before, leftovers());
  expect({ processes, cgroups, temporary, mounts }).toEqual({});
});

it('a warm run has its own deadline, from dispatch on', async () => {
  const running = await listening({ warm: 1 });
  await until(async () => (await metric(running, 'ringfence_live_sandboxes')) === 1);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const answer = await post(running.url, { source: 'export default () => { for (;;); }', capabilities: { timeoutMs: 1200 } });
  expect(answer).toMatchObject({ ok: false, timedOut: true });
  expect(answer.ms).toBeGreaterThanOrEqual(1200);
});
