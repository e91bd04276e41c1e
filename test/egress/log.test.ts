import { describe, expect, it } from 'vitest';

import { ConnectionLog } from '../../src/egress/log.js';
import type { Connection } from '../../src/run/result.js';

const refused = (host: string) => ({ host, port: 0, address: null, reason: 'not in the allowlist' });

describe('ConnectionLog', () => {
  it('keeps the first attempts, counts the rest, and tells all of them', () => {
    const told: Connection[] = [];
    const log = new ConnectionLog((connection) => told.push(connection), 2);
    for (const host of ['a', 'b', 'c']) log.refuse(refused(host));
    expect(log.entries.map(({ host }) => host)).toEqual(['a', 'b']);
    expect(log.omitted).toBe(1);
    expect(told.map(({ host }) => host)).toEqual(['a', 'b', 'c']);
  });

  it('gives the listener copies', () => {
    const log = new ConnectionLog((connection) => Object.assign(connection, { host: 'changed' }));
    log.refuse(refused('a'));
    expect(log.entries[0]?.host).toBe('a');
  });

  it('lets no terminal sequence and no endless name of the guest through', () => {
    const log = new ConnectionLog();
    log.refuse(refused('\u001b[2Jé\n'));
    log.refuse(refused('x'.repeat(5000)));
    expect(log.entries[0]?.host).toBe('\\u{1b}[2J\\u{e9}\\u{a}');
    expect(log.entries[1]?.host.length).toBe(300);
  });
});
