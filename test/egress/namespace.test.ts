import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';
import { needs } from '../support/skip.js';
import { compilePolicy, listenPorts } from '../../src/egress/policy.js';
import type { EgressOptions } from '../../src/egress/policy.js';
import type { Connection } from '../../src/run/result.js';
import { selfSigned } from './support/certificate.js';
import { compileSources } from './support/compiled.js';
import { startDns, zone } from './support/dns-fixture.js';
import type { DnsFixture } from './support/dns-fixture.js';
import { serve } from './support/gateway-fixture.js';
import { missingNamespaces, missingTools } from './support/tools.js';

const here = fileURLToPath(new URL('namespace/', import.meta.url));
const missing = missingTools('curl', 'openssl', 'python3') ?? missingNamespaces();
beforeEach((context) => needs(context, missing));

const servers: Server[] = [];
let compiled: ReturnType<typeof compileSources>;
let scratch = '';
let dns: DnsFixture;
let http = 0;
let https = 0;

beforeAll(async () => {
  if (missing !== null) return;
  const certificate = selfSigned('api.test');
  compiled = compileSources();
  scratch = mkdtempSync(join(tmpdir(), 'egress-ns-'));
  writeFileSync(join(scratch, 'ca.pem'), certificate.cert, { mode: 0o644 });
  dns = await startDns(zone({ 'api.test': ['127.0.0.1'], 'a.wild.test': ['127.0.0.1'] }));
  http = await listen(createHttpServer((request, response) => response.end(`plain ${request.headers.host}`)));
  https = await listen(createHttpsServer(certificate, (request, response) => response.end(`secure ${request.headers.host}`)));
});

afterAll(async () => {
  for (const server of servers) server.close();
  await dns?.close();
  compiled?.remove();
  if (scratch !== '') rmSync(scratch, { recursive: true, force: true });
});

async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<number> {
  servers.push(server);
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

interface Guest {
  output: string;
  connections: Connection[];
  hostExit: number | null;
}

/** Runs a shell script inside a network namespace whose sockets are served by a gateway in another process outside. */
async function run(options: EgressOptions, script: string): Promise<Guest> {
  const policy = compilePolicy(options);
  const { ipv4, ipv6 } = listenPorts(policy);
  const path = join(scratch, `host-${Math.random().toString(36).slice(2)}`);
  const env = { PATH: `/usr/bin:/bin:/usr/sbin:/sbin`, HOME: '/nonexistent' };
  const host = spawn('python3', [join(here, 'host.py'), path, process.execPath, join(here, 'host.mjs'), compiled.directory, JSON.stringify(options), JSON.stringify([...ipv4, ...ipv6]), dns.server], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let told = '';
  host.stdout.on('data', (chunk) => (told += String(chunk)));
  await once(host.stdout, 'data');
  const literals = JSON.stringify([...policy.literals.keys()]);
  const guest = spawn('unshare', ['-rnm', 'python3', join(here, 'inside.py'), path, JSON.stringify(ipv4), JSON.stringify(ipv6), literals, 'sh', '-c', script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  guest.stdout.on('data', (chunk) => (output += String(chunk)));
  await once(guest, 'close');
  host.stdin.end();
  // If a handle were left, the host would not end by itself.
  const timer = setTimeout(() => host.kill('SIGKILL'), patience(10_000));
  const [hostExit] = (await once(host, 'close')) as [number | null];
  clearTimeout(timer);
  return { output, connections: JSON.parse(told.replace('waiting\n', '') || '[]') as Connection[], hostExit };
}

const loopback = { allowPrivate: ['127.0.0.0/8'] };

describe('a network namespace with a gateway behind it', () => {
  it('lets unmodified clients reach the allowed host and nothing else', async () => {
    const node = process.execPath;
    const { output, connections, hostExit } = await run({ allow: [`api.test:${http}`, `api.test:${https}`], ...loopback }, `
      curl -s http://api.test:${http}/; echo
      curl -s --cacert ${scratch}/ca.pem https://api.test:${https}/; echo
      python3 -c "import urllib.request; print(urllib.request.urlopen('http://api.test:${http}/').read().decode())"
      ${node} -e "fetch('http://api.test:${http}/').then(async (r) => console.log(await r.text()))"
      ${node} -e "require('net').connect({ host: 'api.test', port: ${http} }).end('GET / HTTP/1.0\\r\\n\\r\\n').on('data', (d) => console.log(/200/.test(d)))"
      getent ahosts api.test | head -1
      curl -s --max-time 5 http://evil.test:${http}/ || echo "evil $?"
      curl -s --max-time 5 http://127.0.0.1:${http}/ || echo "loopback $?"
      curl -s --max-time 5 http://198.18.77.77:${http}/ || echo "unknown $?"
      curl -s --max-time 5 http://8.8.8.8:${http}/ || echo "direct $?"
      curl -s --max-time 5 -k --connect-to ::api.test:${https} https://evil.test/ || echo "fronting $?"
    `);
    expect(output.split('\n')).toEqual([
      `plain api.test:${http}`,
      `secure api.test:${https}`,
      `plain api.test:${http}`,
      `plain api.test:${http}`,
      'true',
      expect.stringMatching(/^198\.18\.1\.0 +STREAM/),
      'evil 6',
      expect.stringMatching(/^loopback (7|52|56)$/),
      expect.stringMatching(/^unknown (7|52|56)$/),
      expect.stringMatching(/^direct (7|52|56)$/),
      expect.stringMatching(/^fronting 35$/),
      '',
    ]);
    expect(hostExit).toBe(0);
    expect(connections.map(({ host, verdict, reason }) => [host, verdict, reason])).toEqual([
      ...Array.from({ length: 5 }, () => ['api.test', 'allowed', 'closed']),
      ['evil.test', 'refused', 'not in the allowlist'],
      ['127.0.0.1', 'refused', 'not in the allowlist'],
      ['198.18.77.77', 'refused', 'not in the allowlist'],
      ['8.8.8.8', 'refused', 'not in the allowlist'],
      ['api.test', 'refused', 'TLS server name "evil.test" is not "api.test"'],
    ]);
  }, patience(60_000));

  it('reaches IPv4 and IPv6 literals through routes and listeners of their own', async () => {
    const { server, port } = await serve((socket) => socket.end('four'), '127.0.0.5');
    servers.push(server);
    const six = await listen(createHttpServer((_, response) => response.end('six')), '::1');
    const { output, connections, hostExit } = await run({ allow: [`127.0.0.5:${port}`, `[::1]:${six}`], allowPrivate: ['127.0.0.0/8', '::1/128'] }, `
      python3 -c "import socket; print(socket.create_connection(('127.0.0.5', ${port})).recv(9).decode())"
      curl -s 'http://[::1]:${six}/'; echo
      curl -s --max-time 5 http://127.0.0.6:${port}/ || echo "neighbour $?"
    `);
    expect(output.split('\n')).toEqual(['four', 'six', expect.stringMatching(/^neighbour (7|52|56)$/), '']);
    expect(hostExit).toBe(0);
    expect(connections).toMatchObject([
      { host: '127.0.0.5', address: '127.0.0.5', verdict: 'allowed' },
      { host: '::1', address: '::1', verdict: 'allowed' },
      { host: '127.0.0.6', verdict: 'refused' },
    ]);
  }, patience(60_000));
});
