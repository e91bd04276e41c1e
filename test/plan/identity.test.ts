import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import type { IdRange } from '../../src/plan/identity.js';
import { needsIdMap, parseIdMap, planIdentity } from '../../src/plan/identity.js';

const everything: IdRange[] = [{ first: 0, outer: 0, count: 4294967295 }];

function root(map: IdRange[], gidMap = map) {
  return { uid: 0, gid: 0, uidMap: map, gidMap };
}

describe('planIdentity', () => {
  it('maps an ordinary account to itself', () => {
    const host = { uid: 1234, gid: 100, uidMap: everything, gidMap: everything };
    const identity = planIdentity(host, true);
    expect(identity).toEqual({ insideUid: 1000, insideGid: 1000, outsideUid: 1234, outsideGid: 100 });
    expect(identity !== null && needsIdMap(identity, host)).toBe(false);
  });

  it('gives every run of a root host ids of its own that nobody else has', () => {
    const host = root(everything);
    const ids = Array.from({ length: 50 }, () => planIdentity(host, true));
    for (const identity of ids) {
      expect(identity?.outsideUid).toBeGreaterThanOrEqual(0x70000000);
      expect(identity?.outsideUid).toBeLessThanOrEqual(0x7ffffffe);
      expect(identity?.outsideGid).toBe(identity?.outsideUid);
      expect(identity !== null && needsIdMap(identity, host)).toBe(true);
    }
    expect(new Set(ids.map((identity) => identity?.outsideUid)).size).toBeGreaterThan(45);
  });

  it('takes the highest id of a container', () => {
    expect(planIdentity(root([{ first: 0, outer: 100_000, count: 65_536 }]), true)).toMatchObject({ outsideUid: 65_534, outsideGid: 65_534 });
    const split = [{ first: 0, outer: 1000, count: 1 }, { first: 1, outer: 100_000, count: 1000 }];
    expect(planIdentity(root(split), true)).toMatchObject({ outsideUid: 1000, outsideGid: 1000 });
  });

  it('picks a group by itself where the ranges differ', () => {
    const identity = planIdentity(root(everything, [{ first: 0, outer: 0, count: 500 }]), true);
    expect(identity?.outsideGid).toBe(499);
  });

  it("maps the root of a user namespace with a single id to itself: it is an ordinary account's", () => {
    expect(planIdentity(root([{ first: 0, outer: 1000, count: 1 }]), true)).toMatchObject({ outsideUid: 0, outsideGid: 0 });
  });

  it("has nobody to be where the machine's root is the only id", () => {
    expect(planIdentity(root([{ first: 0, outer: 0, count: 1 }]), true)).toBeNull();
    expect(planIdentity(root(everything, [{ first: 0, outer: 0, count: 1 }]), true)).toBeNull();
    expect(planIdentity(root([]), true)).toBeNull();
  });

  it('has no second name without a user namespace, and still is not root', () => {
    const identity = planIdentity(root(everything), false);
    expect(identity?.insideUid).toBe(identity?.outsideUid);
    expect(identity?.insideUid).not.toBe(0);
  });
});

describe('parseIdMap', () => {
  it('reads the columns of the kernel', () => {
    expect(parseIdMap('         0     100000      65536\n     65536          1          1\n')).toEqual([
      { first: 0, outer: 100_000, count: 65_536 },
      { first: 65_536, outer: 1, count: 1 },
    ]);
    expect(parseIdMap('')).toEqual([]);
  });

  it('reads the map of this process', () => {
    const map = parseIdMap(readFileSync('/proc/self/uid_map', 'utf8'));
    const uid = process.geteuid?.() ?? -1;
    expect(map.some(({ first, count }) => first <= uid && uid < first + count)).toBe(true);
  });
});
