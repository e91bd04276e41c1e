import { expect, it } from 'vitest';

import type { FailureRecord } from '../../src/launcher/records.js';
import { Concessions, fenceOf } from '../../src/run/concessions.js';

function failed(stage: FailureRecord['stage'], detail = 'syscall subject'): FailureRecord {
  return { kind: 'failure', stage, errno: 1, detail };
}

it('tries without one namespace after the other, and gives up no more than it has to', () => {
  const concessions = new Concessions(new Map());
  const trials: string[][] = [];
  while (concessions.concedeTo(failed('namespaces', 'clone3'), 'user-namespaces-disabled')) {
    trials.push([...concessions.dropped.keys()]);
    expect([...concessions.lasting.keys()]).toEqual([...concessions.dropped.keys()]);
  }
  expect(trials).toEqual([['network'], ['identity'], ['network', 'identity'], ['network', 'identity', 'pids', 'filesystem']]);
});

it('keeps what was given up for another reason', () => {
  const concessions = new Concessions(new Map([['network', 'before']]));
  expect(concessions.concede('memory', 'CGROUP_BUSY')).toBe(true);
  expect(concessions.concedeTo(failed('namespaces', 'clone3'), 'user-namespaces-forbidden')).toBe(true);
  expect([...concessions.dropped]).toEqual([['network', 'before'], ['memory', 'CGROUP_BUSY'], ['identity', 'user-namespaces-forbidden']]);
  expect(concessions.concedeTo(failed('root', 'mount MS_SLAVE /'), 'user-namespaces-restricted')).toBe(true);
  expect([...concessions.lasting.keys()]).toEqual(['identity', 'filesystem']);
});

it('does not hold a cgroup that cannot be used now against later runs', () => {
  const concessions = new Concessions(new Map());
  expect(concessions.concedeTo(failed('cgroup', 'write memory.max'), 'cgroup-unavailable')).toBe(true);
  expect([...concessions.dropped.keys()]).toEqual(['memory']);
  expect(concessions.concedeTo(failed('cgroup', 'mkdir /x'), 'cgroup-unavailable')).toBe(true);
  expect([...concessions.dropped.keys()].sort()).toEqual(['cpu', 'memory', 'pids']);
  expect(concessions.concedeTo(failed('cgroup', 'mkdir /x'), 'cgroup-unavailable')).toBe(false);
  expect(concessions.lasting.size).toBe(0);
});

it.each([
  ['what was granted', failed('sources', 'openat2 /srv'), 'path-not-found'],
  ['a grant that cannot be idmapped', failed('sources', 'mount_setattr idmap /srv'), 'idmap-unsupported'],
  ['a full scratch', failed('view', 'write /etc/hosts'), 'scratch-full'],
  ['the command', failed('exec', 'execve /x'), 'command-not-executable'],
  ['the working directory', failed('working-directory', 'chdir /x'), 'working-directory-unusable'],
  ['privileges that do not go', failed('capabilities'), 'set-up-failed'],
  ['a fence that was not verified', failed('verify'), 'fence-not-verified'],
  ['a shortage', failed('namespaces', 'clone3'), 'host-out-of-memory'],
])('gives up nothing for %s', (_, record, code) => {
  const concessions = new Concessions(new Map());
  expect(concessions.concedeTo(record, code)).toBe(false);
  expect(concessions.dropped.size).toBe(0);
  expect(fenceOf(record, code)).toBeNull();
});

it('names the fence of a failure where there is but one', () => {
  expect(fenceOf(failed('loopback', 'ioctl lo'), 'user-namespaces-restricted')).toBe('network');
  expect(fenceOf(failed('cgroup', 'write pids.max'), 'cgroup-unavailable')).toBe('pids');
  expect(fenceOf(failed('cgroup', 'mkdir /x'), 'cgroup-unavailable')).toBeNull();
  expect(fenceOf(failed('namespaces', 'clone3'), 'user-namespaces-disabled')).toBeNull();
});
