import { describe, expect, it } from 'vitest';

import { freePort } from '../support/free-port.js';
import { broker } from './support/broker.js';
import { listening, post } from './support/service.js';

const TOKEN = 'broker-token-7f3a';

describe.each(['node', 'deno'] as const)('callbacks to a broker, in %s', (runtime) => {
  it('relays collections, files, store and tools, each with its token', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(({ method, args }) => ({ method, args }));
    const source = `export default async () => [
      await questpie.collections.posts.find({ where: { a: 1 } }),
      await questpie.collections.posts.findOne({ id: 'x' }),
      await questpie.files.read({ path: 'a.txt' }),
      await questpie.store.carts.create({ data: { n: 1 } }),
      await questpie.tools.list(),
      await questpie.tools.call('sum', { a: 1 }),
    ]`;
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN } });
    expect(answer).toMatchObject({ ok: true });
    expect(answer.output).toMatchObject([
      { method: 'collections.posts.find', args: { where: { a: 1 } } },
      { method: 'collections.posts.findOne', args: { id: 'x' } },
      { method: 'files.read', args: { path: 'a.txt' } },
      { args: { data: { n: 1 }, store: 'carts' } },
      { method: 'tools.list' },
      { method: 'tools.call' },
    ]);
    expect(real.calls).toHaveLength(6);
    for (const { headers, path } of real.calls) {
      expect(path).toBe('/rpc');
      expect(headers['x-questpie-sandbox-token']).toBe(TOKEN);
      expect(headers['content-type']).toMatch(/^application\/json/);
    }
  });

  it('turns fetch into a call, and has no socket of its own', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(({ method, args }) => {
      expect(method).toBe('http.fetch');
      expect(JSON.stringify(args)).toContain('https://api.example.com/x');
      return { status: 201, statusText: 'Created', headers: { 'x-from': 'broker' }, bodyBase64: btoa('hello') };
    });
    const source = `export default async ({ url }) => {
      const response = await fetch('https://api.example.com/x', { method: 'POST', body: 'abc' });
      const connect = globalThis.Deno ? () => Deno.connect({ hostname: '127.0.0.1', port: Number(new URL(url).port) }) : async () => {
        const { connect } = await import('node:net');
        await new Promise((resolve, reject) => connect(Number(new URL(url).port), '127.0.0.1').once('connect', resolve).once('error', reject));
      };
      const direct = await connect().then(() => 'connected', (error) => 'refused');
      return { status: response.status, body: await response.text(), direct };
    }`;
    const answer = await post(url, { source, input: { url: real.url }, bindings: { url: real.url, token: TOKEN }, capabilities: { net: ['example.com'] } });
    expect(answer).toMatchObject({ ok: true, output: { status: 201, body: 'hello', direct: 'refused' } });
  });

  it("gives the broker's error, and the guest never sees url or token", async () => {
    const { url } = await listening({ runtime });
    const real = await broker((_, response) => void response.end(JSON.stringify({ ok: false, error: { code: 'forbidden', message: 'not yours' } })));
    const source = `export default async () => {
      const error = await questpie.files.read({ path: 'x' }).then(() => null, (reason) => reason);
      const seen = [String(error), error.code, error.stack, JSON.stringify(Object.getOwnPropertyNames(globalThis)), JSON.stringify(globalThis.questpie)];
      if (!globalThis.Deno) seen.push(JSON.stringify(process.env), JSON.stringify(process.argv));
      return { message: error.message, code: error.code, seen: seen.join(' ') };
    }`;
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN } });
    expect(answer.output).toMatchObject({ message: 'not yours', code: 'forbidden' });
    expect(JSON.stringify(answer)).not.toContain(TOKEN);
    expect(JSON.stringify(answer)).not.toContain(new URL(real.url).host);
  });
});

describe('the bounds of relayed calls', () => {
  const runtime = 'node';

  it('follows no redirect: the token goes nowhere else', async () => {
    const { url } = await listening({ runtime });
    const elsewhere = await broker(() => 'got it');
    const real = await broker((_, response) => void response.writeHead(307, { location: elsewhere.url }).end());
    const source = 'export default () => questpie.tools.list()';
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN } });
    expect(answer).toMatchObject({ ok: false, code: 'guest-error', error: 'the broker answered with a redirect' });
    expect(elsewhere.calls).toEqual([]);
  });

  it('makes 256 calls a run, and no more', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(() => 1);
    const source = `export default async () => {
      const calls = await Promise.allSettled(Array.from({ length: 300 }, () => questpie.tools.list()));
      const failed = calls.filter(({ status }) => status === 'rejected');
      return { done: calls.length - failed.length, failed: failed.length, why: failed[0].reason.message };
    }`;
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN }, capabilities: { timeoutMs: 20_000 } });
    expect(answer.output).toEqual({ done: 256, failed: 44, why: 'more than 256 calls' });
    expect(real.calls).toHaveLength(256);
  });

  it('makes 16 at a time', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(async () => new Promise((resolve) => setTimeout(resolve, 30)));
    const source = 'export default async () => (await Promise.all(Array.from({ length: 80 }, () => questpie.tools.list()))).length';
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN }, capabilities: { timeoutMs: 20_000 } });
    expect(answer.output).toBe(80);
    expect(real.most).toBe(16);
  });

  it('waits ten seconds for one, and the deadline of the run does not move', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(() => new Promise(() => undefined));
    const source = 'export default () => questpie.tools.list()';
    const bindings = { url: real.url, token: TOKEN };
    const [slow, short] = await Promise.all([
      post(url, { source, bindings, capabilities: { timeoutMs: 25_000 } }),
      post(url, { source, bindings, capabilities: { timeoutMs: 1000 } }),
    ]);
    expect(slow).toMatchObject({ ok: false, code: 'guest-error', error: 'the call took more than 10 s' });
    expect(slow.ms).toBeGreaterThan(9000);
    expect(short).toMatchObject({ ok: false, code: 'timeout', timedOut: true });
  }, 60_000);

  it('takes answers up to 2 MiB', async () => {
    const { url } = await listening({ runtime });
    const real = await broker(({ args }) => 'x'.repeat((args as { length: number }).length));
    const source = `export default async () => {
      const lengthOf = (length) => questpie.files.read({ length }).then((text) => text.length, (error) => error.message);
      return [await lengthOf(2_000_000), await lengthOf(2 * 1024 * 1024 + 1), await lengthOf(3)];
    }`;
    const answer = await post(url, { source, bindings: { url: real.url, token: TOKEN } });
    expect(answer.output).toEqual([2_000_000, 'the answer has more than 2097152 bytes', 3]);
  });

  it.each<[string, string, RegExp]>([
    ['is no JSON', '<html>', /no answer/],
    ['is no answer', '{"value":1}', /no answer/],
    ['nests too deep', `{"ok":true,"value":${'['.repeat(5000)}${']'.repeat(5000)}}`, /no answer/],
  ])('an answer that %s is an error of the call', async (_, body, message) => {
    const { url } = await listening({ runtime });
    const real = await broker((_call, response) => void response.end(body));
    const answer = await post(url, { source: 'export default () => questpie.tools.list()', bindings: { url: real.url, token: TOKEN } });
    expect(answer).toMatchObject({ ok: false, code: 'guest-error', error: expect.stringMatching(message) });
  });

  it('a broker that is not there is an error of the call, without its address', async () => {
    const { url } = await listening({ runtime });
    const answer = await post(url, { source: 'export default () => questpie.tools.list()', bindings: { url: `http://127.0.0.1:${await freePort()}/rpc`, token: TOKEN } });
    expect(answer).toMatchObject({ ok: false, error: 'the broker cannot be reached' });
    expect(JSON.stringify(answer)).not.toContain('127.0.0.1');
  });
});

describe('SANDBOX_BROKER_URL', () => {
  it('lets requests name that broker and no other', async () => {
    const real = await broker(() => 'mine');
    const other = await broker(() => 'not mine');
    const { url } = await listening({ brokerUrl: real.url });
    const source = 'export default () => questpie.tools.list()';
    expect(await post(url, { source, bindings: { url: real.url, token: TOKEN } })).toMatchObject({ ok: true, output: 'mine' });
    for (const wrong of [other.url, `${real.url}/x`, real.url.replace('http:', 'https:'), real.url.replace('127.0.0.1', 'localhost'), 'file:///etc/passwd', '']) {
      const answer = await post(url, { source, bindings: { url: wrong, token: TOKEN } });
      expect(answer).toMatchObject({ ok: false, code: 'bindings-rejected', error: expect.stringMatching(/^bindings rejected: /), logs: [] });
      expect(answer.usage.wallMs).toBe(0);
    }
    expect(other.calls).toEqual([]);
  });
});
