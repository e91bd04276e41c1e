import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { compilePolicy } from '../../src/egress/policy.js';
import { hasOwnNetwork, planEgressPorts, planNameFiles } from '../../src/plan/network.js';

const allowlist = compilePolicy({ allow: ['a.test'] });

describe('hasOwnNetwork', () => {
  it('is the default', () => {
    expect(hasOwnNetwork('none', new Set(), {})).toBe(true);
    expect(hasOwnNetwork(allowlist, new Set(), {})).toBe(true);
  });

  it('is not when the host\'s network was asked for, or the fence was given up', () => {
    expect(hasOwnNetwork('host', new Set(), {})).toBe(false);
    expect(hasOwnNetwork('none', new Set(['network']), {})).toBe(false);
    expect(hasOwnNetwork(allowlist, new Set(['network']), {})).toBe(false);
  });

  it('is switched off by exactly 1', () => {
    expect(hasOwnNetwork('none', new Set(), { SANDBOX_DISABLE_NETNS_FIREWALL: '1' })).toBe(false);
    expect(hasOwnNetwork(allowlist, new Set(), { SANDBOX_DISABLE_NETNS_FIREWALL: '1' })).toBe(false);
    for (const value of ['', '0', 'true', '1 ', '01', 'yes']) {
      expect(hasOwnNetwork('none', new Set(), { SANDBOX_DISABLE_NETNS_FIREWALL: value })).toBe(true);
    }
  });
});

describe('planEgressPorts', () => {
  it('lists each port of either family once, ascending', () => {
    const policy = compilePolicy({ allow: ['a.test:443', 'b.test:9', '8.8.4.4:443', '[2606:4700:4700::1111]:53'] });
    expect(planEgressPorts(policy, true)).toEqual([
      { port: 9, ipv4: true, ipv6: false },
      { port: 53, ipv4: false, ipv6: true },
      { port: 443, ipv4: true, ipv6: false },
    ]);
  });

  it('is empty without an allowlist, and where the network is shared', () => {
    expect(planEgressPorts('none', true)).toEqual([]);
    expect(planEgressPorts('host', false)).toEqual([]);
    expect(planEgressPorts(allowlist, false)).toEqual([]);
    expect(planEgressPorts(allowlist, false, 1)).toEqual([]);
  });

  it('has the port of an attendant besides', () => {
    expect(planEgressPorts('none', true, 1)).toEqual([{ port: 1, ipv4: true, ipv6: false }]);
  });
});

describe('planNameFiles', () => {
  it('shows nothing of the host\'s names in a network of its own', async () => {
    const files = await planNameFiles(true);
    expect(files.map(({ path }) => path)).toEqual(['/etc/hosts']);
    expect(files[0]).toMatchObject({ content: expect.stringMatching(/^127\.0\.0\.1 localhost\n/) as string });
  });

  it('shows the files of the host in its network', async () => {
    const files = await planNameFiles(false);
    expect(files).toContainEqual({ kind: 'file', path: '/etc/hosts', mode: 0o644, content: readFileSync('/etc/hosts', 'utf8') });
  });
});
