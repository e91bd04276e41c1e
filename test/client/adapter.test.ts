import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';

import { httpSandboxAdapter } from '../../src/client/adapter.js';
import { freePort } from '../support/free-port.js';
import { listening } from '../service/support/service.js';

afterEach(() => void vi.unstubAllEnvs());

const source = 'export default (n) => n * 2';

/** Something on a port that is no Ringfence. */
async function server(listener: RequestListener): Promise<string> {
  const created = createServer(listener);
  await new Promise<void>((resolve) => created.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    created.closeAllConnections();
    created.close();
  });
  return `http://127.0.0.1:${(created.address() as AddressInfo).port}`;
}

describe('against the service', () => {
  it('gives the answer of the run', async () => {
    const { url } = await listening();
    const answer = await httpSandboxAdapter({ url }).run({ source, input: 21 });
    expect(answer).toMatchObject({ ok: true, output: 42, logs: [], connections: [], enforcement: { network: { status: 'enforced' } } });
    for (const spelling of [`${url}/`, `${url}/run`, `${url}/run/`]) {
      expect(await httpSandboxAdapter({ url: spelling }).run({ source, input: 1 })).toMatchObject({ ok: true, output: 2 });
    }
  });

  it('takes url and token from the environment', async () => {
    const { url } = await listening({ token: 'abc' });
    vi.stubEnv('SANDBOX_URL', url);
    vi.stubEnv('SANDBOX_TOKEN', 'abc');
    expect(await httpSandboxAdapter().run({ source, input: 1 })).toMatchObject({ ok: true, output: 2 });
    vi.stubEnv('SANDBOX_TOKEN', '');
    expect(await httpSandboxAdapter().run({ source, input: 1 })).toMatchObject({ ok: false, code: 'http-401', error: 'a valid bearer token is needed', logs: [] });
  });

  it('a signal cancels the run, there as well', async () => {
    const running = await listening();
    const stop = new AbortController();
    const forever = 'export default () => new Promise(() => setInterval(() => {}, 1000))';
    const answer = httpSandboxAdapter({ url: running.url }).run({ source: forever, capabilities: { timeoutMs: 30_000 }, signal: stop.signal });
    setTimeout(() => stop.abort(), 1500);
    expect(await answer).toMatchObject({ ok: false, code: 'canceled' });
    const canceled = () => running.logged.some((line) => line.includes('"outcome":"canceled"'));
    while (!canceled()) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

describe('options', () => {
  it.each<[object, ErrorConstructor, string]>([
    [{ url: 'ftp://h' }, RangeError, 'url must be an http or https URL without user, password, query and fragment, got "ftp://h"'],
    [{ url: 'http://h/base?y=1' }, RangeError, 'url must be an http or https URL without user, password, query and fragment, got "http://h/base?…"'],
    [{ url: 'http://user:hidden@h/' }, RangeError, 'url must be an http or https URL without user, password, query and fragment, got "http://…@h/"'],
    [{ url: 7 }, TypeError, 'url must be an http or https URL without user, password, query and fragment, got 7'],
    [{ token: 'hid\nden' }, RangeError, 'token must be of visible ASCII characters, got a string'],
    [{ fetchTimeoutMs: -1 }, RangeError, 'fetchTimeoutMs must be a positive finite integer, got -1'],
    [{ fetchTimeoutMs: Number.NaN }, RangeError, 'fetchTimeoutMs must be a positive finite integer, got NaN'],
    [{ validateEgress: 'no' }, TypeError, 'validateEgress must be a boolean, got "no"'],
    [{ fetch: {} }, TypeError, 'fetch must be a function, got an object'],
    [{ Url: 'http://h' }, TypeError, 'Url is not a known option; did you mean url?'],
  ])('that are wrong throw: %o', (options, kind, message) => {
    const make = () => httpSandboxAdapter(options);
    expect(make).toThrow(kind);
    expect(make).toThrow(message);
  });

  it('a path comes before /run', async () => {
    const seen: string[] = [];
    const own: typeof fetch = async (input) => {
      seen.push(String(input));
      return new Response('{"ok":true,"logs":[]}');
    };
    for (const url of ['http://h', 'http://h/base/', 'HTTP://h/base//', 'http://h/a b/run']) await httpSandboxAdapter({ url, fetch: own }).run({ source });
    expect(seen).toEqual(['http://h/run', 'http://h/base/run', 'http://h/base/run', 'http://h/a%20b/run']);
  });

  it('a SANDBOX_URL that is none is said on run', async () => {
    vi.stubEnv('SANDBOX_URL', 'localhost:8787');
    await expect(httpSandboxAdapter().run({ source })).rejects.toThrow(/^SANDBOX_URL must be an http or https URL/);
  });
});

describe('without the service', () => {
  it('throws on run without a url', async () => {
    vi.stubEnv('SANDBOX_URL', '');
    const adapter = httpSandboxAdapter();
    await expect(adapter.run({ source })).rejects.toThrow(/SANDBOX_URL/);
  });

  it('judges the hosts before anything is sent, unless it is told not to', async () => {
    let requests = 0;
    const url = await server((_, response) => {
      requests++;
      response.end('{"ok":true,"logs":[]}');
    });
    for (const capabilities of [{ net: ['127.0.0.1'] }, { net: ['*.com'] }, { import: ['169.254.169.254'] }]) {
      expect(await httpSandboxAdapter({ url }).run({ source, capabilities })).toMatchObject({ ok: false, code: 'egress-blocked', error: expect.stringMatching(/^egress blocked: /) });
    }
    expect(requests).toBe(0);
    expect(await httpSandboxAdapter({ url, validateEgress: false }).run({ source, capabilities: { net: ['127.0.0.1'] } })).toMatchObject({ ok: true });
    expect(requests).toBe(1);
  });

  it('says that the connection was refused', async () => {
    const answer = await httpSandboxAdapter({ url: `http://127.0.0.1:${await freePort()}` }).run({ source });
    expect(answer).toMatchObject({ ok: false, code: 'unreachable', error: 'the sandbox service cannot be reached: connection refused (ECONNREFUSED)', logs: [] });
  });

  it.each([null, undefined, 'text', { code: 'ETEST' }])('survives a fetch of the caller that throws %j', async (thrown) => {
    const fetch = () => Promise.reject(thrown);
    const answer = await httpSandboxAdapter({ url: 'http://127.0.0.1:1', fetch }).run({ source });
    expect(answer).toMatchObject({ ok: false, code: 'unreachable' });
  });

  it('says that there was no answer in time', async () => {
    const url = await server(() => undefined);
    const answer = await httpSandboxAdapter({ url, fetchTimeoutMs: 300 }).run({ source });
    expect(answer).toMatchObject({ ok: false, code: 'no-answer', error: 'timed out: no answer of the sandbox service within 300 ms' });
    const stalled = await server((_, response) => void response.write('{"ok":'));
    expect(await httpSandboxAdapter({ url: stalled, fetchTimeoutMs: 300 }).run({ source })).toMatchObject({ code: 'no-answer' });
  });

  it('waits ten seconds longer than the run may take', async () => {
    const waits: number[] = [];
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    const adapter = httpSandboxAdapter({ url: 'http://127.0.0.1:9' });
    for (const capabilities of [undefined, { timeoutMs: 1234 }, { timeoutMs: 1e9 }]) {
      await adapter.run({ source, capabilities });
      waits.push(Number(timeout.mock.lastCall?.[0]));
    }
    timeout.mockRestore();
    expect(waits).toEqual([15_000, 11_234, 40_000]);
  });

  it.each<[string, RequestListener, string]>([
    ['HTML', (_, response) => void response.writeHead(502).end('<html>'), 'the sandbox service gave a non-JSON answer (HTTP 502)'],
    ['nothing', (_, response) => void response.end(), 'the sandbox service gave a non-JSON answer (HTTP 200)'],
    ['other JSON', (_, response) => void response.end('{"status":"fine"}'), 'the sandbox service gave JSON that is no answer (HTTP 200)'],
    ['null', (_, response) => void response.end('null'), 'the sandbox service gave JSON that is no answer (HTTP 200)'],
  ])('says that the answer was %s', async (_, listener, error) => {
    const url = await server(listener);
    expect(await httpSandboxAdapter({ url }).run({ source })).toMatchObject({ ok: false, code: 'bad-answer', error, logs: [] });
  });

  it('follows no redirect: secrets go nowhere else', async () => {
    let requests = 0;
    const elsewhere = await server((_, response) => {
      requests++;
      response.end('{"ok":true}');
    });
    const url = await server((_, response) => void response.writeHead(307, { location: `${elsewhere}/run` }).end());
    expect(await httpSandboxAdapter({ url }).run({ source, secrets: { a: 'b' } })).toMatchObject({ ok: false, code: 'bad-answer' });
    expect(requests).toBe(0);
  });

  it('passes what the service refuses on, with its message', async () => {
    const url = await server((_, response) => void response.writeHead(429).end('{"ok":false,"error":"too many runs: the queue is full","logs":[]}'));
    expect(await httpSandboxAdapter({ url }).run({ source })).toMatchObject({ ok: false, code: 'http-429', error: 'too many runs: the queue is full' });
  });

  it('uses the fetch that it is given', async () => {
    const seen: [string, RequestInit | undefined][] = [];
    const own: typeof fetch = async (input, init) => {
      seen.push([String(input), init]);
      return new Response('{"ok":true,"output":1,"logs":[]}');
    };
    const adapter = httpSandboxAdapter({ url: 'http://sandbox.test', fetch: own, token: 't' });
    expect(await adapter.run({ source, input: { a: 1 }, secrets: { k: 'v' }, bindings: { url: 'http://b.test', token: 'x' } })).toMatchObject({ ok: true, output: 1 });
    expect(seen[0]?.[0]).toBe('http://sandbox.test/run');
    expect(new Headers(seen[0]?.[1]?.headers).get('authorization')).toBe('Bearer t');
    expect(JSON.parse(String(seen[0]?.[1]?.body))).toEqual({ source, input: { a: 1 }, capabilities: {}, secrets: { k: 'v' }, bindings: { url: 'http://b.test', token: 'x' } });
  });

  it.each<[string, object, RegExp]>([
    ['bindings that are functions', { bindings: { sum: () => 1 } }, /cannot be called over HTTP/],
    ['input that is no JSON', { input: 1n }, /input must be JSON/],
    ['no source', { source: '' }, /source/],
  ])('%s is an answer too', async (_, change, error) => {
    expect(await httpSandboxAdapter({ url: 'http://127.0.0.1:9' }).run({ source, ...change })).toMatchObject({ ok: false, code: 'invalid-request', error: expect.stringMatching(error) });
  });
});
