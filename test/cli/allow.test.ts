import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';

import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';

import { missingTools } from '../egress/support/tools.js';
import { patience } from '../support/lane.js';
import { needs } from '../support/skip.js';
import { cli, json } from './cli.js';

beforeEach((context) => needs(context, missingTools('curl', 'python3')));

const run = (flags: string[], ...command: string[]) => cli(['run', '--no-cwd', ...flags, '--', ...command]);
const curl = (...args: string[]) => ['curl', '-sS', '--max-time', '20', ...args];

/** An HTTP server on loopback, which stands for the Internet here. */
async function server(): Promise<number> {
  const listening = createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nserved\n')));
  listening.listen(0, '127.0.0.1');
  await new Promise((resolve) => listening.once('listening', resolve));
  onTestFinished(() => void listening.close());
  return (listening.address() as AddressInfo).port;
}

describe('ringfence run --allow', { timeout: patience(60_000) }, () => {
  it('reaches the host, by the address and in the range that two more flags give it', async () => {
    const port = await server();
    const flags = ['--allow', `api.test:${port}`, '--host', 'api.test=127.0.0.1', '--allow-private', '127.0.0.1/32'];
    expect(await run(flags, ...curl(`http://api.test:${port}/`))).toMatchObject({ exitCode: 0, stdout: 'served\n', stderr: '' });
  });

  it('says what a run that failed was refused, and the flag for it', async () => {
    const { exitCode, stderr } = await run(['--allow', 'api.test'], ...curl('http://other.test/'));
    expect(exitCode).toBe(6);
    expect(stderr.split('\n')).toContain('ringfence: refused other.test: not in the allowlist; to allow it: --allow other.test');
    const port = await run(['--allow', 'api.test'], ...curl('http://api.test:8443/'));
    expect(port.stderr).toContain('ringfence: refused api.test:8443: port 8443 of this host is not in the allowlist; to allow it: --allow api.test:8443\n');
    const address = await run(['--allow', 'api.test'], ...curl('http://10.20.30.40/'));
    expect(address.stderr).toContain('ringfence: refused 10.20.30.40:80: not in the allowlist; to allow it: --allow 10.20.30.40:80 --allow-private 10.20.30.40/32\n');
  });

  it('says the same of a function, in the flags of eval, which opens no private range', async () => {
    const get = (url: string) => cli(['eval', '--runtime', 'node', '--net', 'api.test', '-'], { input: `export default () => fetch(${JSON.stringify(url)}, { signal: AbortSignal.timeout(2000) })` });
    expect((await get('http://other.test/')).stderr.split('\n')).toContain('ringfence: refused other.test: not in the allowlist; to allow it: --net other.test');
    expect((await get('http://10.20.30.40/')).stderr.split('\n')).toContain('ringfence: refused 10.20.30.40:80: not in the allowlist');
  });

  it('says what a run that failed could not connect to', async () => {
    // Port 1 of loopback: nobody is there.
    const flags = ['--allow', 'api.test:1', '--host', 'api.test=127.0.0.1', '--allow-private', '127.0.0.1/32'];
    const { exitCode, stderr } = await run(flags, ...curl('http://api.test:1/'));
    expect(exitCode).not.toBe(0);
    expect(stderr.split('\n')).toContain('ringfence: could not connect to api.test:1: connect ECONNREFUSED 127.0.0.1:1');
  });

  it('says how many attempts more there were than it knows', async () => {
    const script = 'import socket\nsock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(5): sock.sendto(b"x", ("9.9.9.9", 53))\nraise SystemExit(3)';
    const { exitCode, stderr } = await run(['--allow', 'api.test'], '/usr/bin/python3', '-c', script);
    expect(exitCode).toBe(3);
    expect(stderr.trim().split('\n')).toEqual(['ringfence: refused 9.9.9.9:53: UDP is not relayed', 'ringfence: 4 more attempts to connect are counted, but not listed']);
  });

  it('says nothing of it where the command made do without', async () => {
    const { exitCode, stderr } = await run(['--allow', 'api.test'], 'sh', '-c', 'getent hosts other.test || true');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });

  it('with --json prints the log in the result, and nothing beside it', async () => {
    const result = await json(['--no-cwd', '--allow', 'api.test', '--', ...curl('http://other.test/')]);
    expect(result['connections']).toMatchObject([{ host: 'other.test', port: 0, verdict: 'refused', reason: 'not in the allowlist' }]);
    expect(result['enforcement']).toMatchObject({ network: { status: 'enforced', by: 'netns, allowlist' } });
  });

  it.each([
    [['--allow', '*.com'], /^ringfence: --allow \("\*\.com"\) would allow everything under the top-level name "com"\n$/],
    [['--allow', 'https://api.test/'], /^ringfence: --allow \("https:\/\/api\.test\/"\) is a URL; give the host alone\n$/],
    [['--allow', 'api.test', '--allow-private', '10.0.0.0'], /^ringfence: --allow-private \("10\.0\.0\.0"\) must be a range/],
    [['--allow', 'api.test', '--host', 'other.test=8.8.8.8'], /^ringfence: --host \("other\.test"\) is not in --allow\n$/],
    [['--allow', 'api.test', '--host', 'api.test'], /must be NAME=ADDRESS, for example api\.test=10\.20\.0\.5/],
    [['--allow-private', '10.0.0.0/8'], /^ringfence: --allow-private needs a host to be about: add --allow HOST\n$/],
    [['--allow', 'api.test', '--network', 'host'], /^ringfence: --allow and --network host contradict each other/],
  ])('%o is refused before anything starts', async (flags, message) => {
    const { exitCode, stderr } = await run(flags, 'true');
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(message);
  });

  it('warns that it keeps nothing out where SANDBOX_DISABLE_NETNS_FIREWALL=1', async () => {
    const { exitCode, stderr } = await cli(['run', '--no-cwd', '--allow', 'api.test', '--', 'true'], { env: { SANDBOX_DISABLE_NETNS_FIREWALL: '1' } });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: 'ringfence: no network fence, so --allow keeps nothing out: SANDBOX_DISABLE_NETNS_FIREWALL=1 is set\n' });
  });
});
