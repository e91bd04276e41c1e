import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { nameRun, ownerOfRun, startTimeOf } from '../../src/cgroup/run-name.js';

const host = { pid: 4194303, startTime: 123456789012, pidNamespace: 4026531836 };

describe('names of runs', () => {
  it('tell which process a cgroup belongs to', () => {
    expect(ownerOfRun(nameRun(host))).toEqual(host);
  });

  it('never repeat', () => {
    expect(new Set(Array.from({ length: 1000 }, () => nameRun(host))).size).toBe(1000);
  });

  it.each(['ringfence-host', 'ringfence-1-2-3', 'ringfence-1-2-3-', 'ringfence-1-2-x-ab', 'xringfence-1-2-3-ab', 'ringfence-1-2-3-ab\n', 'ringfence-1-2-3-ab/..', 'ringfence-1--2-3-ab', 'user.slice'])(
    'are not mistaken for %j',
    (name) => {
      expect(ownerOfRun(name)).toBeNull();
    },
  );
});

describe('startTimeOf', () => {
  it('is not misled by the name of a process', () => {
    const rest = `S ${Array.from({ length: 18 }, (_, index) => index).join(' ')} 777 0 0`;
    expect(startTimeOf(`1 (sh) ${rest}`)).toBe(777);
    expect(startTimeOf(`1 (a) b ) 1 2 (c) ${rest}`)).toBe(777);
    expect(startTimeOf('')).toBeNull();
  });

  it('reads this process', () => {
    expect(startTimeOf(readFileSync('/proc/self/stat', 'utf8'))).toBeGreaterThan(0);
  });
});
