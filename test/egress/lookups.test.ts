import { describe, expect, it } from 'vitest';

import { Lookups } from '../../src/egress/lookups.js';

describe('Lookups', () => {
  it('takes A and AAAA of one name for one attempt, in either order, and repeats for further ones', () => {
    const lookups = new Lookups();
    expect([['a', 'A'], ['A', 'AAAA'], ['a', 'AAAA'], ['a', 'A'], ['a', 'A'], ['a', 'A']].map(([name = '', type = '']) => lookups.completes(name, type))).toEqual([false, true, false, true, false, false]);
  });

  it('takes other types and other names for attempts of their own', () => {
    const lookups = new Lookups();
    expect([['a', 'A'], ['b', 'AAAA'], ['a', 'TXT'], ['a', 'AAAA']].map(([name = '', type = '']) => lookups.completes(name, type))).toEqual([false, false, false, true]);
  });

  it('remembers a bounded number of names', () => {
    const lookups = new Lookups();
    for (let index = 0; index < 1000; index += 1) lookups.completes(`n${index}`, 'A');
    expect(lookups.completes('n999', 'AAAA')).toBe(true);
    expect(lookups.completes('n0', 'AAAA')).toBe(false);
  });
});
