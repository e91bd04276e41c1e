import { beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { BrokerCallee } from '../../src/guest/broker.js';
import { patience } from '../support/lane.js';
import { give, startBroker } from './support/broker.js';
import type { Broker } from './support/broker.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

const token = 'token-of-this-run';
let broker: Broker;
beforeAll(async () => {
  broker = await startBroker();
});
beforeEach(() => {
  broker.calls.length = 0;
  broker.answer = ({ method, args }, response) => give(response, { ok: true, value: { method, args } });
});

describe.each(runtimes)('a broker, for %s', (runtime) => {
  const executor = executorFor(runtime);
  const runWith = (source: string, capabilities = {}) => run(executor, source, { bindings: { url: broker.url, token }, capabilities });

  it('gets each call as { method, args }, with the token in a header', async () => {
    const source = `export default async () => {
      const { collections, files, store, tools } = globalThis.questpie;
      await collections.posts.find({ where: { a: 1 } });
      await collections.posts.findOne();
      await collections['with-dash'].create({ title: 'x' });
      await collections.posts.update({ where: {}, data: {} });
      await collections.posts.delete({ where: {} });
      await files.read({ path: '/a' });
      await files.write({ path: '/a', content: 'b' });
      await files.list();
      await store.notes.find({ where: { key: 'k' } });
      await store.notes.create({ key: 'k', data: 1 });
      await tools.list();
      return tools.call('search', { q: 1 });
    }`;
    expect(await outputOf(runWith(source))).toEqual({ method: 'tools.call', args: { name: 'search', arguments: { q: 1 } } });
    expect(broker.calls.map(({ method, args }) => [method, args])).toEqual([
      ['collections.posts.find', { where: { a: 1 } }],
      ['collections.posts.findOne', {}],
      ['collections.with-dash.create', { title: 'x' }],
      ['collections.posts.update', { where: {}, data: {} }],
      ['collections.posts.delete', { where: {} }],
      ['files.read', { path: '/a' }],
      ['files.write', { path: '/a', content: 'b' }],
      ['files.list', {}],
      ['collections.document_store.find', { where: { key: 'k', store: 'notes' } }],
      ['collections.document_store.create', { key: 'k', data: 1, store: 'notes' }],
      ['tools.list', {}],
      ['tools.call', { name: 'search', arguments: { q: 1 } }],
    ]);
    expect(new Set(broker.calls.map((call) => call.token))).toEqual(new Set([token]));
    expect(broker.calls[0]?.contentType).toBe('application/json');
  });

  it('serves the fetch of the guest', async () => {
    broker.answer = ({ args }, response) => {
      const { bodyBase64 = '' } = args as { bodyBase64?: string };
      give(response, { ok: true, value: { status: 201, statusText: 'Made', headers: { 'x-a': 'b' }, bodyBase64: Buffer.from(`got ${Buffer.from(bodyBase64, 'base64').toString()}`).toString('base64'), truncated: false } });
    };
    const source = `export default async () => {
      const response = await fetch('https://api.example.com/x', { method: 'POST', headers: { 'x-c': 'd' }, body: 'größe' });
      return [response.status, response.statusText, response.headers.get('x-a'), await response.text()];
    }`;
    expect(await outputOf(runWith(source))).toEqual([201, 'Made', 'b', 'got größe']);
    expect(broker.calls[0]).toMatchObject({ method: 'http.fetch', args: { url: 'https://api.example.com/x', method: 'POST', headers: { 'x-c': 'd' }, bodyBase64: Buffer.from('größe').toString('base64') } });
  });

  it('refuses with code and message, at whatever HTTP status', async () => {
    broker.answer = (_, response) => give(response, { ok: false, error: { code: 'forbidden', message: 'not yours' } }, 403);
    const source = 'export default () => questpie.files.read({ path: "/x" }).catch((error) => [error.code, error.message])';
    expect(await outputOf(runWith(source))).toEqual(['forbidden', 'not yours']);
  });

  it('stays unknown to the guest', async () => {
    const source = `import process from 'node:process';
      export default async () => {
        broker: { const all = JSON.stringify([(() => { try { return { ...process.env } } catch { return {} } })(), process.argv, globalThis.__secrets, Object.getOwnPropertyNames(globalThis), questpie.files.read.toString()]); if (/token-of|127\\.0\\.0\\.1:\\d{4}/.test(all)) return all; }
        return typeof host;
      }`;
    expect(await outputOf(runWith(source))).toBe('undefined');
  });

  it('is out of the reach of sockets of the guest', async () => {
    const before = broker.connections;
    const port = new URL(broker.url).port;
    const source = `import { connect } from 'node:net';
      export default () => new Promise((resolve) => { const s = connect(${port}, '127.0.0.1'); s.on('connect', () => resolve('connected')); s.on('error', (error) => resolve(error.code ?? error.message)); })`;
    expect(await outputOf(runWith(source, { net: ['example.com'] }))).toMatch(runtime === 'deno' ? /Requires net access|NotCapable|EACCES|EPERM/ : /ECONNREFUSED/);
    expect(broker.connections).toBe(before);
  });

  it('has 256 calls a run, 16 at a time', async () => {
    let open = 0;
    let most = 0;
    broker.answer = async (_, response) => {
      most = Math.max(most, ++open);
      await new Promise((resolve) => setTimeout(resolve, 2));
      open--;
      give(response, { ok: true, value: 1 });
    };
    const source = `export default async () => {
      const settled = await Promise.allSettled(Array.from({ length: 260 }, () => questpie.files.list()));
      return [settled.filter(({ status }) => status === 'fulfilled').length, settled.find(({ status }) => status === 'rejected').reason.code];
    }`;
    expect(await outputOf(runWith(source, { timeoutMs: patience(20_000) }))).toEqual([256, 'too_many_calls']);
    expect(broker.calls).toHaveLength(256);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(16);
  });

  it('is not followed to where it redirects', async () => {
    const elsewhere = await startBroker();
    for (const status of [301, 302, 303, 307, 308]) {
      broker.answer = (_, response) => void response.writeHead(status, { location: elsewhere.url }).end();
      expect(await outputOf(runWith('export default () => questpie.files.list().catch((error) => error.code)'))).toBe('redirect');
    }
    expect(elsewhere.connections).toBe(0);
  });

  it('that answers nonsense, too much or not at all fails the call alone', async () => {
    const answers: Record<string, (response: Parameters<Broker['answer']>[1]) => void> = {
      bad_answer: (response) => give(response, 'private diagnostics', 502),
      too_large: (response) => give(response, { ok: true, value: 'x'.repeat(3 * 1024 * 1024) }),
      unavailable: (response) => void response.destroy(),
    };
    for (const [code, answer] of Object.entries(answers)) {
      broker.answer = (_, response) => answer(response);
      const [got, message] = (await outputOf(runWith('export default () => questpie.files.list().catch((error) => [error.code, error.message])'))) as string[];
      expect(got).toBe(code);
      expect(message).not.toMatch(/127\.0\.0\.1|token-of|private/);
    }
  });

  it('hears nothing more once the run is canceled', async () => {
    const controller = new AbortController();
    let hungUp = false;
    broker.answer = (_, response) => {
      response.on('close', () => (hungUp = true));
      controller.abort();
    };
    const answer = await run(executor, 'export default async () => { await questpie.files.list(); await questpie.files.list(); }', { bindings: { url: broker.url, token }, signal: controller.signal });
    expect(answer).toMatchObject({ ok: false, code: 'canceled' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hungUp).toBe(true);
    expect(broker.calls).toHaveLength(1);
  });
});

describe('what a broker never gets', () => {
  const surface = ['collections.posts.findOne', 'store.notes.delete', 'files.write', 'tools.list', 'http.fetch'];
  const others = ['anything', 'files', 'files.delete', 'files.read.more', 'tools.', 'collections.posts', 'collections..find', 'collections.a.b.find', 'collections.posts.drop', 'collections.posts.find\n', ' files.read', 'Files.read', 'http.fetch/../x', '__proto__', 'store.notes.then'];

  it('is a method that the surface of the guest does not have', async () => {
    const callee = new BrokerCallee({ url: broker.url, token });
    for (const method of others) expect(await callee.answer(method, {}), method).toEqual({ ok: false, error: { code: 'bad_method', message: `there is no ${method}` } });
    expect(broker.calls).toEqual([]);
    for (const method of surface) expect(await callee.answer(method, {}), method).toMatchObject({ ok: true });
    expect(broker.calls.map(({ method }) => method)).toEqual(surface);
    callee.close();
  });

  it.each(runtimes)('is one that a guest on %s makes of a name', async (runtime) => {
    const source = `export default () => Promise.all(['a.find.b', '', 'a.b'].map((name) => questpie.collections[name].find().catch((error) => error.code)))`;
    expect(await outputOf(run(executorFor(runtime), source, { bindings: { url: broker.url, token } }))).toEqual(['bad_method', 'bad_method', 'bad_method']);
    expect(broker.calls).toEqual([]);
  });
});

describe('the one broker that an operator allows', () => {
  it('is the only one that a request may name', async () => {
    const executor = executorFor('node', { brokerUrl: `${broker.url}/` });
    const source = 'export default () => questpie.files.list()';
    expect((await run(executor, source, { bindings: { url: broker.url, token } })).ok).toBe(true);
    broker.calls.length = 0;
    const others = [`${broker.url}?a`, `${broker.url}#a`, broker.url.replace('/rpc', '/other'), broker.url.replace('//', '//user:word@'), 'ftp://127.0.0.1/rpc', 'rpc', ''];
    for (const url of others) {
      const answer = await run(executor, source, { bindings: { url, token } });
      expect(answer, url).toMatchObject({ ok: false, code: 'bindings-rejected', usage: { wallMs: 0 } });
      expect(answer.error, url).toMatch(/^bindings rejected: /);
      expect(answer.error, url).not.toContain(token);
    }
    expect(broker.calls).toEqual([]);
  });
});
