import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { EgressOptions } from '../../../src/index.js';
import { patience } from '../../support/lane.js';
import { useLab } from '../support/lab.js';

const lab = useLab();

describe('an address in the allowlist', { timeout: patience(60_000) }, () => {
  it('is reached as itself, with its port, in either family, and no other is', async () => {
    const { said, result } = await lab.client(
      ['many', '93.184.1.2:80', '2600:beef::1:80', '93.184.1.1:80', '93.184.1.2:8080', '2600:beef::1:8080', '2600:beef::2:80', '::ffff:93.184.1.1:80'],
      { allow: ['93.184.1.2:80', '[2600:beef::1]:80'] },
    );
    const { '93.184.1.2:80': four, '2600:beef::1:80': six, ...others } = said as Record<string, string>;
    expect([four, six]).toEqual(['reached', 'reached']);
    for (const [target, word] of Object.entries(others)) expect(word, target).toMatch(/^ECONN/);
    expect(result.connections.filter(({ verdict }) => verdict === 'allowed')).toMatchObject([
      { host: '93.184.1.2', port: 80, address: '93.184.1.2' },
      { host: '2600:beef::1', port: 80, address: '2600:beef::1' },
    ]);
    expect(result.connections.length).toBe(7);
  });

  it('has no name that TLS could be held to', async () => {
    const { result } = await lab.sh('curl -sSk https://93.184.1.2/ && curl -sSk --connect-to second.test:443:93.184.1.2:443 https://second.test/', { allow: ['93.184.1.2:443'] });
    expect(result.exitCode, result.stderr).toBe(0);
    expect(result.connections.map(({ verdict }) => verdict)).toEqual(['allowed', 'allowed']);
  });
});

describe('a name in the allowlist', { timeout: patience(60_000) }, () => {
  const tls = (name: string | null) => [
    'import socket, ssl',
    'context = ssl.create_default_context()',
    'context.check_hostname, context.verify_mode = False, ssl.CERT_NONE',
    `sock = context.wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname=${name === null ? 'None' : `"${name}"`})`,
    'sock.sendall(b"GET / HTTP/1.0\\r\\nHost: api.test\\r\\n\\r\\n")',
    'print(sock.recv(4096).decode()[:12])',
  ].join('\n');

  it.each([
    ['no name', null, 'TLS without a server name'],
    ['another name', 'second.test', 'TLS server name "second.test" is not "api.test"'],
    ['a name below it', 'a.api.test', 'TLS server name "a.api.test" is not "api.test"'],
  ])('takes no TLS with %s', async (_, name, reason) => {
    const before = (await lab.servers()).counts['93.184.1.1:443'] ?? 0;
    const { result } = await lab.sh(`/usr/bin/python3 ${lab.file('tls.py', tls(name))}`, { allow: ['api.test'] });
    expect(result.exitCode).toBe(1);
    expect(result.connections).toMatchObject([{ host: 'api.test', port: 443, verdict: 'refused', reason, bytesSent: 0 }]);
    // Connected at once, for servers that speak first; but nothing of the guest's went there.
    expect((await lab.servers()).counts['93.184.1.1:443']).toBe(before + 1);
  });

  it('takes TLS with its own name, in capitals too', async () => {
    const { result } = await lab.sh(`/usr/bin/python3 ${lab.file('tls.py', tls('API.Test'))}`, { allow: ['api.test'] });
    expect(result.stdout, result.stderr).toMatch(/^HTTP\/1\.1 200/);
  });

  it('reaches a metadata service only where that very address is opened', async () => {
    const ask = (allowPrivate: string[]) => lab.client(['reached', 'metadata.test'], { allow: ['metadata.test'], allowPrivate });
    const range = await ask(['169.254.0.0/16']);
    expect(range.said).toBe('ECONNRESET');
    expect(range.result.connections).toMatchObject([{ verdict: 'refused', reason: '169.254.169.254 may not be reached: metadata service' }]);
    expect((await lab.servers()).counts['169.254.169.254:80']).toBeUndefined();
    expect((await ask(['169.254.169.254/32'])).said).toBe('reached');
  });

  it('is pinned to a private address only where that is opened', async () => {
    const pinned = (allowPrivate: string[]) => lab.client(['reached', 'nowhere.test'], { allow: ['nowhere.test'], hosts: { 'nowhere.test': '10.66.0.5' }, allowPrivate });
    await expect(pinned([])).rejects.toThrow('RangeError: network.hosts["nowhere.test"] may not be pinned to 10.66.0.5: private');
    const before = (await lab.servers()).questions.length;
    expect((await pinned(['10.66.0.0/16'])).said).toBe('reached');
    expect((await lab.servers()).questions.length).toBe(before);
  });
});

describe('onConnection', { timeout: patience(60_000) }, () => {
  const run = (network: EgressOptions, script: string) => runSandboxed({ command: 'sh', args: ['-c', script], timeoutMs: patience(30_000), network });
  const mine = new Error('mine');
  const throwing: [string, EgressOptions['onConnection']][] = [
    ['throws', () => { throw mine; }],
    ['rejects', async () => { throw mine; }],
  ];

  it.each(throwing)('that %s kills the run, which rejects with that', async (_, onConnection) => {
    const started = Date.now();
    await expect(run({ allow: ['api.test'], onConnection }, 'getent hosts evil.test; sleep 25')).rejects.toBe(mine);
    expect(Date.now() - started).toBeLessThan(patience(15_000));
  });

  it.each(throwing)('that %s at the very end is heard, too', async (_, onConnection) => {
    await expect(run({ allow: ['api.test'], onConnection }, 'getent hosts evil.test')).rejects.toBe(mine);
  });

  it('whose promise is rejected after the end rejects the run all the same', async () => {
    const onConnection = () => sleep(500).then(() => { throw mine; });
    await expect(run({ allow: ['api.test'], onConnection }, 'getent hosts evil.test')).rejects.toBe(mine);
  });
});
