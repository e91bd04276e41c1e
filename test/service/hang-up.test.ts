import { connect } from 'node:net';

import { describe, expect, it } from 'vitest';

import { leftovers, newLeftovers } from '../support/leftovers.js';
import { listening, metric, post, until } from './support/service.js';

const FOREVER = 'export default () => new Promise(() => setInterval(() => {}, 1000))';
const body = JSON.stringify({ source: FOREVER, capabilities: { timeoutMs: 30_000 } });

describe('a client that hangs up', () => {
  it('cancels its run, and nothing is left of it', async () => {
    const running = await listening();
    await running.app.inject('/ready');
    const before = leftovers();
    const hangUp = new AbortController();
    const request = fetch(`${running.url}/run`, { method: 'POST', body, signal: hangUp.signal });
    await until(async () => (await metric(running, 'ringfence_running')) === 1);
    hangUp.abort();
    await expect(request).rejects.toThrow();
    await until(async () => (await metric(running, 'ringfence_running')) === 0);
    expect(await metric(running, 'ringfence_runs_total{outcome="canceled"}')).toBe(1);
    await until(() => newLeftovers(before, leftovers()).processes === undefined);
    expect(newLeftovers(before, leftovers())).not.toHaveProperty('cgroups');
  });

  it('while it waits in the queue takes nobody a place, and no run is started for it', async () => {
    const running = await listening({ concurrency: 1 });
    await running.app.inject('/ready');
    const first = new AbortController();
    const requests = [fetch(`${running.url}/run`, { method: 'POST', body, signal: first.signal }).catch(() => null)];
    await until(async () => (await metric(running, 'ringfence_running')) === 1);
    const waiting = new AbortController();
    requests.push(fetch(`${running.url}/run`, { method: 'POST', body, signal: waiting.signal }).catch(() => null));
    await until(async () => (await metric(running, 'ringfence_queue_length')) === 1);
    const third = post(running.url, { source: 'export default () => 3' });
    await until(async () => (await metric(running, 'ringfence_queue_length')) === 2);
    waiting.abort();
    await until(async () => (await metric(running, 'ringfence_queue_length')) === 1);
    first.abort();
    expect(await third).toMatchObject({ ok: true, output: 3 });
    await Promise.all(requests);
    expect(await metric(running, 'ringfence_runs_total{outcome="canceled"}')).toBe(1);
    expect(await metric(running, 'ringfence_refused_requests_total{reason="hung-up"}')).toBe(1);
  });

  it('in the middle of its request does no harm', async () => {
    const running = await listening();
    for (const part of ['POST /run HTTP/1.1\r\nHo', 'POST /run HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"source":']) {
      const socket = connect(running.port, '127.0.0.1', () => socket.write(part, () => setTimeout(() => socket.destroy(), 50)));
      await new Promise((resolve) => socket.on('close', resolve));
    }
    expect(await post(running.url, { source: 'export default () => 1' })).toMatchObject({ ok: true });
    expect(running.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

describe('over real HTTP', () => {
  it('a body that is far too big is answered 413, also to a client that sends all of it first', async () => {
    const { url } = await listening();
    const big = 'x'.repeat(24 * 1024 * 1024);
    const response = await fetch(`${url}/run`, { method: 'POST', body: big });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ ok: false, error: 'the body has more than 2097152 bytes', logs: [] });
    const streamed = await fetch(`${url}/run`, { method: 'POST', body: new Blob([big]).stream(), duplex: 'half' } as RequestInit);
    expect(streamed.status).toBe(413);
  });

  it('a body without end is cut off', async () => {
    const { port } = await listening({ maxBodyBytes: 64 * 1024 });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('POST /run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    let sent = 0;
    const more = (): void => {
      while (!socket.destroyed && socket.write(chunk)) sent++;
    };
    socket.on('drain', more);
    more();
    await new Promise((resolve) => socket.on('close', resolve));
    expect(sent).toBeLessThan(1000);
  });

  it.each(['GARBAGE\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', `GET /${'x'.repeat(70_000)} HTTP/1.1\r\n\r\n`])('bytes that are no HTTP are answered in the same shape', async (bytes) => {
    const { port } = await listening();
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const chunks: Buffer[] = [];
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    await new Promise((resolve) => socket.on('close', resolve));
    const text = Buffer.concat(chunks).toString();
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toEqual({ ok: false, error: 'the request is malformed', logs: [] });
  });
});
