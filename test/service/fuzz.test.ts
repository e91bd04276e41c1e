import fc from 'fast-check';
import { expect, it } from 'vitest';

import { service } from './support/service.js';

it('answers whatever JSON and whatever bytes come with a status and a shape of its own', async () => {
  const { app, logged } = await service();
  const send = async (payload: string | Buffer) => {
    const { statusCode, json } = await app.inject({ method: 'POST', url: '/run', payload });
    expect(statusCode).toBe(400);
    expect(json()).toEqual({ ok: false, error: expect.any(String), logs: [] });
  };
  const value = fc.jsonValue({ maxDepth: 4 });
  // The secrets are always wrong, so that no sandbox is started.
  const body = fc.record({ source: value, input: value, capabilities: value, bindings: value, secrets: fc.integer() }, { requiredKeys: ['secrets'] });
  await fc.assert(fc.asyncProperty(body, (each) => send(JSON.stringify(each))), { numRuns: 300 });
  await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), (bytes) => send(Buffer.from(bytes))), { numRuns: 200 });
  for (const deep of ['source', 'capabilities', 'secrets', 'bindings']) {
    const nested = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    const rest = { source: 'x', capabilities: {}, secrets: 7, [deep]: 0 };
    await send(JSON.stringify(rest).replace(`"${deep}":0`, `"${deep}":${nested}`));
  }
  expect(logged.filter((line) => line.includes('"level":50'))).toEqual([]);
});
