import { describe, expect, it } from 'vitest';

import { Pace } from '../../src/egress/pace.js';

describe('Pace', () => {
  it('lets a burst through, then as many as the rate', () => {
    let now = 0;
    const pace = new Pace(10, () => now);
    const takeAll = () => {
      let taken = 0;
      while (pace.take()) taken += 1;
      return taken;
    };
    expect(takeAll()).toBe(10);
    now += 500;
    expect(takeAll()).toBe(5);
    now += 60_000;
    expect(takeAll()).toBe(10);
  });

  it('tells who has to wait how long, one behind the other', () => {
    let now = 0;
    const pace = new Pace(10, () => now, 2);
    expect([pace.reserve(), pace.reserve(), pace.reserve(), pace.reserve()]).toEqual([0, 0, 100, 200]);
    now += 200;
    expect(pace.take()).toBe(false);
    expect(pace.reserve()).toBe(100);
    now += 60_000;
    expect([pace.reserve(), pace.reserve(), pace.reserve()]).toEqual([0, 0, 100]);
  });
});
