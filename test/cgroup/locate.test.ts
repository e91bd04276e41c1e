import { describe, expect, it } from 'vitest';

import { locateCgroup } from '../../src/cgroup/locate.js';

interface Machine {
  memberships: string;
  mountinfo: string;
  override?: string;
  directories?: string[];
}

function locate({ memberships, mountinfo, override, directories = [] }: Machine) {
  return locateCgroup({ memberships, mountinfo, override, isDirectory: (path) => directories.includes(path) });
}

const unifiedMount = (options = 'rw', root = '/') => `30 23 0:26 ${root} /sys/fs/cgroup ${options},nosuid - cgroup2 cgroup2 rw,nsdelegate\n`;
const legacyMount = (name: string, options = 'rw', root = '/') => `40 31 0:32 ${root} /sys/fs/cgroup/${name} ${options} - cgroup cgroup rw,${name}\n`;

const scope = '/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope';
const unified: Machine = { memberships: `0::${scope}\n`, mountinfo: unifiedMount() };

/** As systemd had it with v1: cpu and cpuacct together, a v2 hierarchy without controllers. */
const hybrid: Machine = {
  memberships: '12:pids:/\n5:memory:/jobs/7\n4:cpu,cpuacct:/\n3:cpuset:/\n1:name=systemd:/jobs\n0::/jobs\n',
  mountinfo: ['pids', 'memory', 'cpu,cpuacct', 'cpuset'].map((name) => legacyMount(name)).join('') + unifiedMount().replace('/sys/fs/cgroup', '/sys/fs/cgroup/unified'),
};

describe('on v2', () => {
  it("finds the host's own cgroup", () => {
    expect(locate(unified)).toEqual({
      kind: 'located',
      version: 2,
      parents: [{ controllers: [], directory: `/sys/fs/cgroup${scope}`, mountPoint: '/sys/fs/cgroup' }],
      ownDirectory: `/sys/fs/cgroup${scope}`,
      mountPoint: '/sys/fs/cgroup',
      overridden: false,
    });
  });

  it('finds the root of a private cgroup namespace', () => {
    expect(locate({ memberships: '0::/\n', mountinfo: unifiedMount() })).toMatchObject({ parents: [{ directory: '/sys/fs/cgroup' }] });
  });

  it('finds the part of the hierarchy that a container shows', () => {
    const machine = { memberships: '0::/docker/ab/app\n', mountinfo: unifiedMount('rw', '/docker/ab') };
    expect(locate(machine)).toMatchObject({ parents: [{ directory: '/sys/fs/cgroup/app' }] });
  });

  it('says so when the mount shows another part', () => {
    const shared = { memberships: '0::/docker/ab\n', mountinfo: unifiedMount('rw', '/docker/other') };
    expect(locate(shared)).toMatchObject({ kind: 'unavailable', code: 'CGROUP_UNREACHABLE', hint: expect.stringContaining('/docker/ab') as string });
    expect(locate({ memberships: '0::/../outside\n', mountinfo: unifiedMount() })).toMatchObject({ code: 'CGROUP_UNREACHABLE' });
  });

  it('says so when it is read-only, with the command that helps', () => {
    expect(locate({ ...unified, mountinfo: unifiedMount('ro') })).toMatchObject({
      code: 'CGROUP_READ_ONLY',
      hint: expect.stringContaining('mount -o remount,bind,rw /sys/fs/cgroup') as string,
    });
  });

  it('prefers a writable mount of the same hierarchy', () => {
    const second = unifiedMount().replace('/sys/fs/cgroup', '/run/cgroup');
    for (const mountinfo of [unifiedMount('ro') + second, second + unifiedMount('ro')]) {
      expect(locate({ ...unified, mountinfo })).toMatchObject({ parents: [{ directory: `/run/cgroup${scope}` }] });
    }
  });

  it('says so when nothing is mounted', () => {
    expect(locate({ ...unified, mountinfo: '24 23 0:21 / /proc rw - proc proc rw\n' })).toMatchObject({ code: 'CGROUP_MISSING' });
  });
});

describe('on v1 and hybrid machines', () => {
  it("finds the host's own cgroup in every hierarchy that runs use", () => {
    expect(locate(hybrid)).toMatchObject({
      version: 1,
      parents: [
        { controllers: ['pids'], directory: '/sys/fs/cgroup/pids' },
        { controllers: ['memory'], directory: '/sys/fs/cgroup/memory/jobs/7' },
        { controllers: ['cpu', 'cpuacct'], directory: '/sys/fs/cgroup/cpu,cpuacct' },
      ],
    });
  });

  it('does without cpu where it cannot be seen, but not without memory', () => {
    const withoutCpu = hybrid.mountinfo.replace(legacyMount('cpu,cpuacct'), legacyMount('cpu,cpuacct', 'ro'));
    expect(locate({ ...hybrid, mountinfo: withoutCpu })).toMatchObject({ kind: 'located', parents: [{ controllers: ['pids'] }, { controllers: ['memory'] }] });
    const readOnly = hybrid.mountinfo.replace(legacyMount('memory'), legacyMount('memory', 'ro'));
    expect(locate({ ...hybrid, mountinfo: readOnly })).toMatchObject({ code: 'CGROUP_READ_ONLY' });
    const unmounted = hybrid.mountinfo.replace(legacyMount('memory'), '');
    expect(locate({ ...hybrid, mountinfo: unmounted })).toMatchObject({ code: 'CGROUP_MISSING' });
  });

  it('names the controller that is switched off at boot', () => {
    const memberships = hybrid.memberships.replace('5:memory:/jobs/7\n', '');
    const mountinfo = legacyMount('pids') + legacyMount('cpuset');
    expect(locate({ memberships, mountinfo })).toMatchObject({ code: 'CGROUP_MISSING', hint: expect.stringContaining('cgroup_enable=memory') as string });
  });

  it('refuses to spread one run over v1 and v2', () => {
    expect(locate({ ...hybrid, memberships: '12:pids:/\n0::/\n' })).toMatchObject({ code: 'CGROUP_MISSING' });
  });
});

describe('RINGFENCE_CGROUP', () => {
  const directories = ['/sys/fs/cgroup/mine/runs'];

  it.each(['/mine/runs', 'mine/runs', '/sys/fs/cgroup/mine/runs', '/sys/fs/cgroup/mine//runs/'])('can be given as %s', (override) => {
    expect(locate({ ...unified, override, directories })).toMatchObject({
      overridden: true,
      parents: [{ directory: '/sys/fs/cgroup/mine/runs' }],
      ownDirectory: `/sys/fs/cgroup${scope}`,
    });
  });

  it('serves where the own cgroup is out of sight', () => {
    const machine = { memberships: '0::/../x\n', mountinfo: unifiedMount(), override: 'mine/runs', directories };
    expect(locate(machine)).toMatchObject({ kind: 'located', ownDirectory: null });
  });

  it('counts as unset when it is empty', () => {
    expect(locate({ ...unified, override: '' })).toMatchObject({ overridden: false });
  });

  it.each(['/mine/../../../etc', '..', '/nope', '/sys/fs/cgroup/nope', 'a\0b'])('is refused by name when it is %j', (override) => {
    expect(locate({ ...unified, override, directories })).toMatchObject({ code: 'CGROUP_OVERRIDE_INVALID', hint: expect.stringMatching(/^RINGFENCE_CGROUP \(/) as string });
  });

  it('applies on v1 in every hierarchy that has it, however it is given', () => {
    const found = ['/sys/fs/cgroup/memory/mine', '/sys/fs/cgroup/pids/mine'];
    for (const override of ['/mine', '/sys/fs/cgroup/memory/mine', '/sys/fs/cgroup/pids/mine/']) {
      expect(locate({ ...hybrid, override, directories: found })).toMatchObject({
        overridden: true,
        parents: [{ directory: '/sys/fs/cgroup/pids/mine' }, { directory: '/sys/fs/cgroup/memory/mine' }, { directory: '/sys/fs/cgroup/cpu,cpuacct' }],
      });
    }
    expect(locate({ ...hybrid, override: '/mine' })).toMatchObject({ code: 'CGROUP_OVERRIDE_INVALID' });
  });
});
