import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { Executor } from '../../src/guest/executor.js';
import { executorFor, outputOf, run, runtimes } from './support/executors.js';

let server: Server;
let port = 0;
const requests: string[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(`${request.headers.host} ${request.url}`);
    const module = request.url?.endsWith('.ts') === true;
    response.writeHead(200, { 'content-type': module ? 'application/typescript' : 'text/plain' });
    response.end(module ? 'export const answer: number = 42; export const reach = (url: string) => fetch(url).then((r) => r.text());' : 'hello');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => void (requests.length = 0));

/** Names of this test, pinned to the server on loopback, which is opened for them. */
const network = { hosts: { 'api.test': '127.0.0.1', 'code.test': '127.0.0.1' }, allowPrivate: ['127.0.0.1/32'] };
const fetching = (url: string) => `export default async () => { try { return await (await fetch('${url}')).text() } catch (error) { return 'failed: ' + (error.cause?.code ?? error.message) } }`;

describe.each(runtimes)('the network of a function on %s', (runtime) => {
  let executor: Executor;
  executor = executorFor(runtime, { network });

  it('is nothing at all without a list', async () => {
    const answer = await run(executor, fetching(`http://api.test:${port}/`));
    expect(answer.output).toMatch(/^failed: /);
    const { output } = await run(executor, fetching(`http://127.0.0.1:${port}/`), { capabilities: { net: [] } });
    expect(output).toMatch(/^failed: /);
    expect(requests).toEqual([]);
  });

  it('is what the list names, and each connection is told', async () => {
    const answer = await run(executor, fetching(`http://api.test:${port}/x`), { capabilities: { net: [`api.test:${port}`] } });
    expect(answer).toMatchObject({ ok: true, output: 'hello', connections: [{ host: 'api.test', port, address: '127.0.0.1', verdict: 'allowed' }] });
    expect(requests).toEqual([`api.test:${port} /x`]);
  });

  it('is no other host, no other port', async () => {
    for (const url of [`http://code.test:${port}/`, 'http://api.test/', `http://127.0.0.1:${port}/`, `http://10.0.0.1:${port}/`]) {
      const answer = await run(executor, fetching(url), { capabilities: { net: [`api.test:${port}`] } });
      // Node 20's own fetch waits for ever, once in some thousands, for a connection that is reset as soon as it is made.
      expect(answer.output ?? answer['code'], `${url}: ${JSON.stringify(answer)}`).toMatch(/^(failed: |timeout$)/);
    }
    expect(requests).toEqual([]);
  });

  it('may be many at a time, with a port of the channel among them', async () => {
    const net = [`api.test:${port}`, 'api.test:1', 'api.test:2', 'example.com'];
    expect((await run(executor, fetching(`http://api.test:${port}/`), { capabilities: { net } })).output).toBe('hello');
  });

  it('is refused before anything starts when a host may not be named', async () => {
    const refused = ['*', '*.com', '10.0.0.1', '169.254.169.254', 'localhost', 'http://a.test', 'a.test/x', 'a b', '127.1', ''];
    const strict = executorFor(runtime);
    for (const host of refused) {
      const answer = await run(strict, 'export default () => 1', { capabilities: { net: ['example.com', host] } });
      expect(answer, host).toMatchObject({ ok: false, code: 'egress-blocked', usage: { wallMs: 0 }, logs: [] });
      expect(answer.error, host).toMatch(/^egress blocked: /);
    }
  });
});

describe('imports', () => {
  const deno = executorFor('deno', { network });
  const importing = (url: string) => `export default async () => { try { return (await import('${url}')).answer } catch (error) { return 'failed: ' + error.message } }`;

  it('come from nowhere without a list, not even from where Deno would take them', async () => {
    for (const url of [`http://code.test:${port}/m.ts`, 'https://esm.sh/x', 'https://deno.land/x', 'jsr:@std/assert', 'npm:left-pad']) {
      expect((await run(deno, importing(url))).output, url).toMatch(/^failed: /);
      const fixed = await run(deno, `import '${url}'; export default () => 1`);
      expect(fixed, url).toMatchObject({ ok: false, code: 'guest-error' });
      expect(fixed.error, url).not.toMatch(/data:|%20/);
    }
    expect(requests).toEqual([]);
  });

  it('come from the hosts of their own list, in TypeScript', async () => {
    const capabilities = { import: [`code.test:${port}`] };
    expect((await run(deno, importing(`http://code.test:${port}/m.ts`), { capabilities })).output).toBe(42);
    expect(await outputOf(run(deno, `import { answer } from 'http://code.test:${port}/n.ts'; export default () => answer`, { capabilities }))).toBe(42);
    expect(requests).toEqual([`code.test:${port} /m.ts`, `code.test:${port} /n.ts`]);
  });

  it('give no network, and the network gives no imports', async () => {
    const imported = await run(deno, fetching(`http://code.test:${port}/`), { capabilities: { import: [`code.test:${port}`] } });
    expect(imported.output).toMatch(/^failed: /);
    const source = `import { reach } from 'http://code.test:${port}/m.ts'; export default () => reach('http://code.test:${port}/').catch((error) => 'failed: ' + error.message)`;
    expect(await outputOf(run(deno, source, { capabilities: { import: [`code.test:${port}`] } }))).toMatch(/^failed: /);
    const fetched = await run(deno, importing(`http://api.test:${port}/m.ts`), { capabilities: { net: [`api.test:${port}`] } });
    expect(fetched.output).toMatch(/^failed: /);
    expect(requests).toEqual([`code.test:${port} /m.ts`]);
  });

  it('from other hosts than the listed ones fail', async () => {
    const capabilities = { import: ['other.test'] };
    expect((await run(deno, importing(`http://code.test:${port}/m.ts`), { capabilities })).output).toMatch(/^failed: /);
    expect((await run(deno, importing('https://esm.sh/x'), { capabilities })).output).toMatch(/^failed: /);
    expect(requests).toEqual([]);
  });

  it('do not exist on Node, which says so', async () => {
    const node = executorFor('node');
    const answer = await run(node, 'export default () => 1', { capabilities: { import: ['esm.sh'] } });
    expect(answer).toMatchObject({ ok: false, code: 'invalid-request' });
    expect(answer.error).toMatch(/remote imports/);
    expect(await run(node, `import 'https://esm.sh/x'; export default () => 1`)).toMatchObject({ ok: false, code: 'guest-error' });
  });
});
