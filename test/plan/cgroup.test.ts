import { expect, it } from 'vitest';

import type { CgroupPlacement } from '../../src/cgroup/placement.js';
import { planCgroup } from '../../src/plan/cgroup.js';
import { FenceUnavailable } from '../../src/plan/errors.js';
import type { Controller } from '../../src/plan/plan.js';
import { readHostFacts } from '../../src/host/facts.js';

const account = await readHostFacts();
const place = (version: 1 | 2, controllers: Controller[]): CgroupPlacement => ({ kind: 'ready', version, controllers, parents: [{ controllers, directory: '/sys/fs/cgroup/x' }] }) as CgroupPlacement;
const plan = (placement: CgroupPlacement, limits: { cpus?: number; cpuTimeMs?: number }, dropped: 'cpu'[] = []) =>
  planCgroup(placement, account, { cpus: null, cpuTimeMs: null, ...limits }, new Set(dropped));

it('a limit of the run\'s cpu time takes what counts it: of v1 the controller, of v2 any cgroup', () => {
  expect(plan(place(2, ['memory', 'pids']), { cpuTimeMs: 1 })?.parents).toHaveLength(1);
  expect(plan(place(1, ['memory', 'pids', 'cpuacct']), { cpuTimeMs: 1 })?.parents[0]?.controllers).toContain('cpuacct');
  const uncounted = place(1, ['memory', 'pids']);
  expect(() => plan(uncounted, { cpuTimeMs: 1 })).toThrow(FenceUnavailable);
  expect(() => plan(uncounted, { cpuTimeMs: 1 })).toThrow(/no cpuacct controller .* without limits\.cpuTimeMs/);
  expect(plan(uncounted, { cpuTimeMs: 1 }, ['cpu'])?.parents).toHaveLength(1);
  expect(plan(uncounted, {})?.parents).toHaveLength(1);
});

it('a share of the processors takes its controller', () => {
  expect(() => plan(place(2, ['memory', 'pids']), { cpus: 1 })).toThrow(/no cpu controller .* without limits\.cpus/);
});
