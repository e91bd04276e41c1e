import { describe, expect, it } from 'vitest';

import { service } from './support/service.js';

const SOURCE = 'export default (n) => n * 2';
const refused = (error: string) => ({ ok: false, error, logs: [] });

describe('POST /run', () => {
  it('answers a run', async () => {
    const { app } = await service();
    const response = await app.inject({ method: 'POST', url: '/run', payload: { source: SOURCE, input: 21, capabilities: {} } });
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.json()).toMatchObject({ ok: true, output: 42, logs: [] });
  });

  it.each(['', '{', 'source=1', '{"source":}', '[1,', Buffer.from([0x22, 0xff, 0x22])])('%j is no JSON: 400', async (payload) => {
    const { app } = await service();
    const response = await app.inject({ method: 'POST', url: '/run', payload, headers: { 'content-type': 'application/json' } });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(refused('invalid JSON body'));
  });

  it.for<unknown>([
    {},
    [],
    null,
    'text',
    7,
    { source: SOURCE },
    { capabilities: {} },
    { source: '', capabilities: {} },
    { source: 7, capabilities: {} },
    { source: SOURCE, capabilities: null },
    { source: SOURCE, capabilities: [] },
    { source: SOURCE, capabilities: 'all' },
    { __proto__: null, toString: SOURCE },
  ])('%j has no source or no capabilities: 400', async (body) => {
    const { app } = await service();
    const response = await app.inject({ method: 'POST', url: '/run', payload: JSON.stringify(body) });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(refused("missing 'source' or 'capabilities'"));
  });

  it('does not take source or capabilities from a prototype in the body', async () => {
    const { app } = await service();
    const payload = `{"__proto__":{"source":${JSON.stringify(SOURCE)},"capabilities":{}}}`;
    const response = await app.inject({ method: 'POST', url: '/run', payload });
    expect(response.json()).toEqual(refused("missing 'source' or 'capabilities'"));
  });

  it.each<[object, string]>([
    [{ secrets: { a: 1 } }, 'secrets must be an object of strings'],
    [{ bindings: { url: 'http://x' } }, 'bindings must be { url, token } as strings'],
    [{ bindings: {} }, 'bindings must be { url, token } as strings'],
    [{ bindings: 'x' }, 'bindings must be { url, token } as strings'],
    [{ capabilities: { net: 'example.com' } }, 'capabilities.net must be an array of hosts'],
  ])('%j is malformed: 400', async (change, message) => {
    const { app } = await service();
    const response = await app.inject({ method: 'POST', url: '/run', payload: { source: SOURCE, capabilities: {}, ...change } });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(refused(message));
  });

  it('takes null for an absent part, and clamps limits that are no numbers', async () => {
    const { app } = await service();
    const capabilities = { net: [], import: [], timeoutMs: 'soon', memoryMb: null };
    const payload = { source: 'export default (x) => [x]', input: null, secrets: null, bindings: null, capabilities };
    const response = await app.inject({ method: 'POST', url: '/run', payload });
    expect(response.json()).toMatchObject({ ok: true, output: [null] });
  });

  it.each(['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'nonsense', undefined])(
    'content type %s makes no difference',
    async (type) => {
      const { app } = await service();
      const payload = JSON.stringify({ source: SOURCE, input: 1, capabilities: {} });
      const response = await app.inject({ method: 'POST', url: '/run', payload, headers: type === undefined ? {} : { 'content-type': type } });
      expect(response.json()).toMatchObject({ ok: true, output: 2 });
    },
  );

  it('a body of the limit is taken, one byte more is 413', async () => {
    const { app } = await service({ maxBodyBytes: 4096 });
    const whole = JSON.stringify({ source: SOURCE, input: 1, capabilities: {} });
    const padded = (length: number) => whole + ' '.repeat(length - whole.length);
    const fits = await app.inject({ method: 'POST', url: '/run', payload: padded(4096) });
    expect(fits.json()).toMatchObject({ ok: true });
    const over = await app.inject({ method: 'POST', url: '/run', payload: padded(4097) });
    expect(over.statusCode).toBe(413);
    expect(over.json()).toEqual(refused('the body has more than 4096 bytes'));
  });

  it('refuses hosts that the policy does not allow, in an answer', async () => {
    const { app } = await service({ runtime: 'deno' });
    for (const capabilities of [{ net: ['169.254.169.254'] }, { net: ['*'] }, { import: ['localhost:80 '] }]) {
      const response = await app.inject({ method: 'POST', url: '/run', payload: { source: SOURCE, capabilities } });
      expect(response.statusCode).toBe(200);
      expect(response.json()).toMatchObject({ ok: false, code: 'egress-blocked', logs: [], error: expect.stringMatching(/^egress blocked: /) });
    }
  });

  it('a run that fails is 200', async () => {
    const { app } = await service();
    const payload = { source: 'export default () => { throw new TypeError("no way") }', capabilities: {} };
    const response = await app.inject({ method: 'POST', url: '/run', payload });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ ok: false, code: 'guest-error', error: 'no way' });
  });
});

describe('other paths', () => {
  it.each<['GET' | 'POST' | 'PUT' | 'DELETE', string]>([
    ['GET', '/'],
    ['GET', '/page.js'],
    ['GET', '/run'],
    ['PUT', '/run'],
    ['POST', '/health'],
    ['DELETE', '/run'],
    ['GET', '/run/../health/x'],
    ['GET', '/%'],
    ['GET', '/health/'],
    ['GET', '/HEALTH'],
  ])('%s %s: 404 of the same shape', async (method, url) => {
    const { app } = await service();
    const response = await app.inject({ method, url });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toEqual(refused('not found'));
  });

  it('health tells runtime and version', async () => {
    const { app } = await service();
    expect((await app.inject('/health')).json()).toEqual({ ok: true, runtime: 'node', version: process.versions.node });
    const deno = await service({ runtime: 'deno' });
    expect((await deno.app.inject('/health')).json()).toEqual({ ok: true, runtime: 'deno', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  });

  it('is ready when a trial run has gone well', async () => {
    const { app } = await service();
    expect((await app.inject('/ready')).json()).toEqual({ ok: true });
  });

  it('does not start without its runtime, and names the setting', async () => {
    await expect(service({ runtime: 'deno', denoBin: '/no/such/deno' })).rejects.toThrow(/^DENO_BIN is \/no\/such\/deno.*ENOENT/);
    await expect(service({ runtime: 'deno', denoBin: '/bin/true' })).rejects.toThrow(/^DENO_BIN is \/bin\/true, which is no Deno$/);
  });
});
