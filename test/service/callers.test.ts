import { describe, expect, it } from 'vitest';

import { service } from './support/service.js';

const payload = { source: 'export default () => 1', capabilities: {} };

describe('the bearer token', () => {
  it.each<[string, Record<string, string>]>([
    ['none', {}],
    ['another one', { authorization: 'Bearer wrong' }],
    ['a part of it', { authorization: 'Bearer tok' }],
    ['more than it', { authorization: 'Bearer token2' }],
    ['another scheme', { authorization: 'Basic token' }],
    ['no scheme', { authorization: 'token' }],
    ['an empty one', { authorization: 'Bearer ' }],
  ])('%s: 401, whatever the body is', async (_, headers) => {
    const { app } = await service({ token: 'token' });
    for (const body of [JSON.stringify(payload), '{', 'x'.repeat(3 * 1024 * 1024)]) {
      const response = await app.inject({ method: 'POST', url: '/run', payload: body, headers });
      expect(response.statusCode).toBe(401);
      expect(response.headers['www-authenticate']).toBe('Bearer');
      expect(response.json()).toEqual({ ok: false, error: 'a valid bearer token is needed', logs: [] });
    }
  });

  it.each(['Bearer token', 'bearer token', 'Bearer  token '])('%j is right', async (authorization) => {
    const { app } = await service({ token: 'token' });
    const response = await app.inject({ method: 'POST', url: '/run', payload, headers: { authorization } });
    expect(response.json()).toMatchObject({ ok: true, output: 1 });
  });

  it('guards the metrics, and not the probes', async () => {
    const { app } = await service({ token: 'token' });
    expect((await app.inject('/metrics')).statusCode).toBe(401);
    expect((await app.inject({ url: '/metrics', headers: { authorization: 'Bearer token' } })).statusCode).toBe(200);
    expect((await app.inject('/health')).statusCode).toBe(200);
    expect((await app.inject('/ready')).statusCode).toBe(200);
  });
});

describe('pages in a browser', () => {
  it.each([
    ['another site', { host: '127.0.0.1:8787', origin: 'https://evil.example' }],
    ['a file, or a sandboxed frame', { host: '127.0.0.1:8787', origin: 'null' }],
    ['another service of this machine', { host: '127.0.0.1:8787', origin: 'http://127.0.0.1:9999' }],
    ['a name that was made to point here (DNS rebinding)', { host: 'evil.example:8787', origin: 'http://evil.example:8787' }],
  ])('%s may not call: 403', async (_, headers) => {
    const { app } = await service();
    const response = await app.inject({ method: 'POST', url: '/run', payload, headers });
    expect(response.statusCode).toBe(403);
    expect(response.json()).toEqual({ ok: false, error: 'pages of other origins may not call', logs: [] });
  });

  it.each([
    { host: '127.0.0.1:8787', origin: 'http://127.0.0.1:8787' },
    { host: 'localhost:8787', origin: 'http://localhost:8787' },
    { host: '[::1]:8787', origin: 'http://[::1]:8787' },
  ])('the own page may: $origin', async (headers) => {
    const { app } = await service();
    expect((await app.inject({ method: 'POST', url: '/run', payload, headers })).json()).toMatchObject({ ok: true });
  });

  it('with a token the own page may be at any name, and others still may not call', async () => {
    const { app } = await service({ token: 'token' });
    const headers = { authorization: 'Bearer token', host: 'runs.example', origin: 'https://runs.example' };
    expect((await app.inject({ method: 'POST', url: '/run', payload, headers })).json()).toMatchObject({ ok: true });
    const foreign = { ...headers, origin: 'https://evil.example' };
    expect((await app.inject({ method: 'POST', url: '/run', payload, headers: foreign })).statusCode).toBe(403);
  });
});
