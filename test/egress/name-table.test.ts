import { describe, expect, it } from 'vitest';

import { contains, parseRange } from '../../src/egress/addresses.js';
import { GUEST_RANGE, NameTable } from '../../src/egress/name-table.js';

describe('NameTable', () => {
  it('gives each name one address of the range, for good, and finds the name by it', () => {
    const table = new NameTable();
    const first = table.addressOf('a.test');
    const second = table.addressOf('b.test');
    expect(first).toBe('198.18.1.0');
    expect(second).toBe('198.18.1.1');
    expect(table.addressOf('a.test')).toBe(first);
    expect(table.nameOf('198.18.1.1')).toBe('b.test');
    expect(table.nameOf('198.18.1.2')).toBeUndefined();
    expect(table.nameOf('8.8.8.8')).toBeUndefined();
  });

  it('stays inside the range and ends at its capacity, with the known names still there', () => {
    const table = new NameTable(1_000_000);
    const addresses = Array.from({ length: 2 ** 17 - 257 }, (_, index) => table.addressOf(`n${index}`));
    expect(new Set(addresses).size).toBe(addresses.length);
    expect(addresses.at(-1)).toBe('198.19.255.254');
    expect(contains(GUEST_RANGE, addresses.at(-1) ?? '')).toBe(true);
    expect(table.addressOf('one.more')).toBeNull();
    expect(table.addressOf('n0')).toBe('198.18.1.0');
  });

  it('counts names, not queries, against its capacity', () => {
    const table = new NameTable(2, parseRange('127.18.0.0/16'));
    for (let round = 0; round < 5; round += 1) expect([table.addressOf('a'), table.addressOf('b'), table.addressOf('c')]).toEqual(['127.18.1.0', '127.18.1.1', null]);
  });
});
