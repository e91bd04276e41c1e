import { readFileSync, statSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { directoryOf, parseCgroupMounts, parseMemberships } from '../../src/cgroup/membership.js';

describe('parseMemberships', () => {
  it('reads v1, named and v2 lines', () => {
    expect(parseMemberships('12:cpu,cpuacct:/user.slice\n1:name=systemd:/user.slice/a:b\n0::/user.slice/x y\n')).toEqual([
      { controllers: ['cpu', 'cpuacct'], path: '/user.slice' },
      { controllers: ['name=systemd'], path: '/user.slice/a:b' },
      { controllers: [], path: '/user.slice/x y' },
    ]);
  });

  it('takes nothing from lines of another form', () => {
    expect(parseMemberships('\n0:\nmemory:/a\n0::relative\n')).toEqual([]);
  });
});

describe('parseCgroupMounts', () => {
  it('reads root, mount point, access and controllers', () => {
    const text = [
      '24 23 0:21 / /proc rw,nosuid - proc proc rw',
      '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
      '36 31 0:33 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup rw,cpu,cpuacct',
      '37 31 0:34 / /mnt/a\\040b rw shared:9 master:1 - cgroup2 none rw,nsdelegate,memory_recursiveprot',
      '38 31 0:35 / /sys/fs/cgroup rw - tmpfs tmpfs ro,mode=755',
      'garbage',
    ].join('\n');
    expect(parseCgroupMounts(text)).toEqual([
      { version: 1, root: '/', mountPoint: '/sys/fs/cgroup/memory', readOnly: false, controllers: ['memory'] },
      { version: 1, root: '/docker/ab', mountPoint: '/sys/fs/cgroup/cpu,cpuacct', readOnly: true, controllers: ['cpu', 'cpuacct'] },
      { version: 2, root: '/', mountPoint: '/mnt/a b', readOnly: false, controllers: [] },
    ]);
  });

  it('finds the mounts of this machine where they are', () => {
    const mounts = parseCgroupMounts(readFileSync('/proc/self/mountinfo', 'utf8'));
    expect(mounts).not.toEqual([]);
    for (const { mountPoint } of mounts) expect(statSync(`${mountPoint}/cgroup.procs`).isFile()).toBe(true);
  });
});

describe('directoryOf', () => {
  const mount = (root: string) => ({ version: 2 as const, root, mountPoint: '/sys/fs/cgroup', readOnly: false, controllers: [] });

  it.each([
    ['/', '/', '/sys/fs/cgroup'],
    ['/', '/a/b', '/sys/fs/cgroup/a/b'],
    ['/docker/ab', '/docker/ab', '/sys/fs/cgroup'],
    ['/docker/ab', '/docker/ab/c', '/sys/fs/cgroup/c'],
    ['/docker/ab', '/docker/abc', null],
    ['/docker/ab', '/', null],
    ['/', '/../other', null],
    ['/..', '/', null],
    ['/../..', '/a', null],
  ])('sees through a mount of %s the cgroup %s at %s', (root, path, expected) => {
    expect(directoryOf(mount(root), path)).toBe(expected);
  });
});
