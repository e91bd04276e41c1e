import { networkInterfaces } from 'node:os';

import { describe, expect, it } from 'vitest';

import { parseEntry } from '../../src/egress/entry.js';
import { ownAddresses } from '../../src/egress/own-addresses.js';
import { failedSummary } from '../../src/egress/summary.js';
import type { Connection } from '../../src/run/result.js';

const attempt = (host: string, port: number, reason: string, verdict: Connection['verdict'] = 'refused'): Connection => ({
  at: 0, host, port, address: null, verdict, reason, bytesSent: 0, bytesReceived: 0, durationMs: 0,
});

describe('failedSummary', () => {
  it('has nothing to say when nothing was refused', () => {
    expect(failedSummary([attempt('a.test', 443, 'closed', 'allowed')])).toEqual([]);
  });

  it('names what was allowed and reached nobody', () => {
    const lines = failedSummary([
      attempt('a.test', 443, 'connect ECONNREFUSED 93.184.215.14:443', 'allowed'),
      attempt('b.test', 80, 'not connected within 10000 ms', 'allowed'),
      attempt('c.test', 80, 'idle for 1000 ms', 'allowed'),
      attempt('d.test', 80, 'the guest ended, and the server took no more', 'allowed'),
    ]);
    expect(lines).toEqual([
      'could not connect to a.test:443: connect ECONNREFUSED 93.184.215.14:443',
      'could not connect to b.test:80: not connected within 10000 ms',
      'not all was delivered to d.test:80: the guest ended, and the server took no more',
    ]);
  });

  it('talks nobody into opening this host itself', async () => {
    const own = await ownAddresses();
    const interfaces = Object.values(networkInterfaces()).flat().map((each) => each?.address ?? '');
    expect(interfaces).toContain('127.0.0.1');
    for (const address of [...interfaces, ...own]) expect(failedSummary([{ ...attempt(address, 80, 'not in the allowlist'), address }], own).join()).not.toContain('--allow');
  });

  it('tells what to add, once for each host and reason, the most frequent first', () => {
    const lines = failedSummary([
      attempt('a.test', 443, 'TLS without a server name'),
      attempt('b.test', 0, 'not in the allowlist'),
      attempt('b.test', 0, 'not in the allowlist'),
      attempt('c.test', 8443, 'port 8443 of this host is not in the allowlist'),
      attempt('2606:4700::1', 443, 'not in the allowlist'),
    ]);
    expect(lines).toEqual([
      'refused b.test: not in the allowlist; to allow it: --allow b.test (2 times)',
      'refused a.test:443: TLS without a server name',
      'refused c.test:8443: port 8443 of this host is not in the allowlist; to allow it: --allow c.test:8443',
      'refused [2606:4700::1]:443: not in the allowlist; to allow it: --allow [2606:4700::1]:443',
    ]);
    for (const line of lines) {
      const entry = / --allow (\S+)/.exec(line)?.[1];
      if (entry !== undefined) expect(() => parseEntry(entry)).not.toThrow();
    }
  });

  it('never proposes what would be refused, and a range where one is needed', () => {
    const at = (address: string, port: number, reason: string, host = address): Connection => ({ ...attempt(host, port, reason), address });
    const proposals = failedSummary([
      at('10.2.3.4', 5432, 'not in the allowlist'),
      at('127.0.0.1', 80, 'not in the allowlist'),
      at('198.18.77.1', 80, 'not in the allowlist'),
      at('169.254.169.254', 80, 'not in the allowlist'),
      at('10.2.3.4', 443, '10.2.3.4 may not be reached: private', 'db.test'),
      at('169.254.169.254', 443, '169.254.169.254 may not be reached: link-local', 'meta.test'),
      at('8.8.8.8', 53, 'UDP is not relayed'),
      attempt('localhost', 0, 'not in the allowlist'),
      attempt('metadata.google.internal', 0, 'not in the allowlist'),
    ]).map((line) => line.split('; to allow it: ')[1] ?? null);
    expect(proposals).toEqual(['--allow 10.2.3.4:5432 --allow-private 10.2.3.4/32', null, null, null, '--allow-private 10.2.3.4/32', null, null, null, null]);
  });

  it('proposes nothing for a look-up of what is no name, and no wildcard of the guest\'s wording', () => {
    const hosts = ['10.0.0.1', '8.8.8.8', '2606:4700::1', '*.evil.com', '*', '*.com', 'evil.com:8443', '10.0.0.0/8', 'evil.com,other.com', '-x.com', 'a b.com', '127.1', ''];
    for (const host of hosts) expect(failedSummary([attempt(host, 0, 'not in the allowlist')]).join()).not.toContain('to allow it');
    expect(failedSummary([attempt('10.0.0.1', 443, '10.0.0.1 may not be reached: private')]).join()).not.toContain('to allow it');
    expect(failedSummary([{ ...attempt('8.8.8.8', 0, 'not in the allowlist'), address: '8.8.8.8' }]).join()).not.toContain('to allow it');
    expect(failedSummary([attempt('Evil.com.', 0, 'not in the allowlist')]).join()).toContain('to allow it: --allow Evil.com.');
  });

  it('ends after ten lines', () => {
    const lines = failedSummary(Array.from({ length: 25 }, (_, index) => attempt(`n${index}.test`, 0, 'not in the allowlist')));
    expect(lines.length).toBe(11);
    expect(lines.at(-1)).toBe('and 15 more');
  });
});
