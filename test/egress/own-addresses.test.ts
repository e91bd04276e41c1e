import { networkInterfaces } from 'node:os';
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';

import { needs } from '../support/skip.js';
import { ownAddresses, recentOwnAddresses } from '../../src/egress/own-addresses.js';
import { compileSources } from './support/compiled.js';
import { missingNamespaces } from './support/tools.js';

describe('recentOwnAddresses', () => {
  it('reads once for all that ask in a while, and again after that', async () => {
    let reads = 0;
    const recent = recentOwnAddresses(50, async () => new Set([String(++reads)]));
    expect([...(await recent()), ...(await recent())]).toEqual(['1', '1']);
    await sleep(60);
    expect([...(await recent())]).toEqual(['2']);
  });

  it('keeps no failure', async () => {
    let reads = 0;
    const recent = recentOwnAddresses(60_000, async () => {
      if (++reads === 1) throw new Error('first');
      return new Set(['x']);
    });
    await expect(recent()).rejects.toThrow('first');
    expect([...(await recent())]).toEqual(['x']);
  });
});

describe('ownAddresses', () => {
  it('has every address of the interfaces but loopback', async () => {
    const own = await ownAddresses();
    const expected = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ internal }) => !internal)
      .map(({ address }) => address.split('%')[0]);
    expect([...own]).toEqual(expect.arrayContaining(expected));
    expect(own.has('127.0.0.1')).toBe(false);
    expect(own.has('::1')).toBe(false);
  });

  it('has the addresses of an interface without a carrier, which the operating system module leaves out', (context) => {
    needs(context, missingNamespaces());
    // One end of a veth pair whose other end is down, in a network namespace of the test's own.
    const script = [
      'ip link set lo up',
      'ip link add idle type veth peer name other',
      'ip addr add 10.99.0.1/24 dev idle',
      'ip addr add fd99::1/64 dev idle',
      'ip addr add 203.0.114.9/24 dev lo',
      'ip -6 route add local 2600:dead::5/128 dev lo',
      'ip link set idle up',
      'exec "$NODE" --input-type=module -e "$PROGRAM"',
    ].join(' && ');
    const program = `
      const { networkInterfaces } = await import('node:os');
      const { ownAddresses } = await import('./src/egress/own-addresses.js');
      console.log(JSON.stringify({ seen: JSON.stringify(networkInterfaces()), own: [...await ownAddresses()] }));`;
    const compiled = compileSources();
    const env = { PATH: process.env['PATH'], NODE: process.execPath, PROGRAM: program };
    const output = execFileSync('unshare', ['-rn', 'sh', '-c', script], { encoding: 'utf8', cwd: compiled.directory, env });
    compiled.remove();
    const { seen, own } = JSON.parse(output) as { seen: string; own: string[] };
    expect(seen).not.toContain('10.99.0.1');
    expect(own).toEqual(expect.arrayContaining(['10.99.0.1', 'fd99::1', '203.0.114.9', '2600:dead::5']));
  });
});
