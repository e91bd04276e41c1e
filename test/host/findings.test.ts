import { describe, expect, it } from 'vitest';

import { appArmorProfileFor } from '../../src/host/apparmor.js';
import type { Circumstances } from '../../src/host/circumstances.js';
import { readCircumstances } from '../../src/host/circumstances.js';
import { explain, hintOf, isKernelOld } from '../../src/host/findings.js';
import { describeStageFailure, hints } from '../../src/errors.js';
import type { Stage } from '../../src/launcher/stages.js';
import { constants } from 'node:os';

const plain: Circumstances = {
  kernel: '6.1.0-18-amd64',
  uid: 1000,
  container: null,
  seccompFilter: false,
  appArmorProfile: null,
  sysctls: new Map(),
  launcher: '/opt/app/launcher',
  networkToggle: undefined,
};

/** What is found when the launcher reports this. */
function found(stage: Stage, errno: keyof typeof constants.errno, detail: string, around: Partial<Circumstances> = {}) {
  const { error } = describeStageFailure({ kind: 'failure', stage, errno: constants.errno[errno], detail }, 'true');
  const finding = explain(error, { ...plain, ...around });
  return { ...finding, all: finding.remedies.join('\n') };
}

describe('user namespaces that are switched off', () => {
  it('name the very setting, and how to keep it', () => {
    const { cause, remedies } = found('namespaces', 'ENOSPC', 'clone3', { sysctls: new Map([['user.max_user_namespaces', 0]]) });
    expect(cause).toContain('user.max_user_namespaces is 0');
    expect(remedies[0]).toBe('as root: sysctl -w user.max_user_namespaces=63359');
    expect(remedies[1]).toContain('/etc/sysctl.d/');
  });

  it('may be those of another kind', () => {
    const sysctls = new Map([['user.max_user_namespaces', 63359], ['user.max_net_namespaces', 0]]);
    expect(found('namespaces', 'ENOSPC', 'clone3', { sysctls }).remedies[0]).toBe('as root: sysctl -w user.max_net_namespaces=63359');
  });

  it('or merely used up', () => {
    expect(found('namespaces', 'ENOSPC', 'clone3').remedies).toEqual([hints['user-namespaces-disabled']]);
  });

  it('are told from a policy: Debian\'s setting', () => {
    const { all } = found('namespaces', 'EPERM', 'clone3', { sysctls: new Map([['kernel.unprivileged_userns_clone', 0]]) });
    expect(all).toContain('sysctl -w kernel.unprivileged_userns_clone=1');
  });
});

describe('containers', () => {
  const docker = { container: 'docker', seccompFilter: true, appArmorProfile: 'docker-default' };

  it.each<['EPERM' | 'ENOSYS']>([['EPERM'], ['ENOSYS']])('%s from clone3 is seccomp, not AppArmor and not the kernel', (errno) => {
    const { cause, all } = found('namespaces', errno, 'clone3', docker);
    expect(cause).toMatch(/seccomp/);
    expect(all).toBe('docker run --security-opt seccomp=unconfined …');
  });

  it.each<[Stage]>([['root'], ['view'], ['proc']])('EACCES at stage %s is AppArmor, not seccomp', (stage) => {
    const { cause, all } = found(stage, 'EACCES', 'move_mount /', docker);
    expect(cause).toContain('docker-default');
    expect(all).toContain('apparmor=unconfined');
    expect(all).not.toContain('seccomp');
  });

  it('of Kubernetes have other words for it', () => {
    expect(found('namespaces', 'EPERM', 'clone3', { ...docker, container: 'kubernetes' }).all).toContain('seccompProfile');
    expect(found('root', 'EACCES', 'mount', { ...docker, container: 'kubernetes' }).all).toContain('appArmorProfile');
  });

  it('of podman are started by podman', () => {
    expect(found('namespaces', 'EPERM', 'clone3', { ...docker, container: 'podman' }).all).toMatch(/^podman run/);
  });

  it('that mask /proc need one more flag', () => {
    expect(found('proc', 'EPERM', 'fsmount proc', docker).all).toContain('systempaths=unconfined');
  });
});

it('a filter outside of a container is the service\'s', () => {
  expect(found('namespaces', 'EPERM', 'clone3', { seccompFilter: true }).all).toContain('RestrictNamespaces=no');
});

describe('Ubuntu 24.04', () => {
  const ubuntu = { kernel: '6.8.0-31-generic', sysctls: new Map([['kernel.apparmor_restrict_unprivileged_userns', 1]]) };
  it.each<[Stage, 'EPERM' | 'EACCES']>([['id-map', 'EPERM'], ['loopback', 'EPERM'], ['root', 'EACCES'], ['namespaces', 'EPERM']])(
    'stage %s with %s: the profile and the sysctl',
    (stage, errno) => {
      const { cause, remedies } = found(stage, errno, 'x y', ubuntu);
      expect(cause).toContain('kernel.apparmor_restrict_unprivileged_userns is 1');
      expect(remedies[0]).toContain('ringfence doctor --apparmor');
      expect(remedies[1]).toContain('sysctl -w kernel.apparmor_restrict_unprivileged_userns=0');
    },
  );

  it('the profile names the launcher, and nothing but a path goes into it', () => {
    const profile = appArmorProfileFor('/opt/my app/launcher');
    expect(profile).toContain('profile ringfence-launcher "/opt/my app/launcher" flags=(unconfined) {');
    expect(profile).toContain('  userns,');
    for (const path of ['/opt/"x', '/opt/*', '/opt/@{HOME}', '/opt/a\nb']) expect(() => appArmorProfileFor(path)).toThrow(RangeError);
  });
});

describe('old kernels', () => {
  it('are told by their number', () => {
    expect(isKernelOld('5.11.22')).toBe(true);
    expect(isKernelOld('4.18.0-553.el8')).toBe(true);
    expect(isKernelOld('5.12.0')).toBe(false);
    expect(isKernelOld('6.1.0-18-amd64')).toBe(false);
    expect(isKernelOld('10.0')).toBe(false);
  });
  it('are the finding where the call is missing', () => {
    const { cause, all } = found('sources', 'ENOSYS', 'mount_setattr /x', { kernel: '5.10.0-28-amd64' });
    expect(cause).toContain('5.10.0-28-amd64 is older than 5.12');
    expect(all).toBe('boot Linux 5.12 or newer');
  });
});

it('every code has a cause in words and a remedy', () => {
  for (const code of [...Object.keys(hints), 'CGROUP_READ_ONLY', 'never-heard-of']) {
    const { cause, remedies } = explain({ code, errno: 'EPERM', hint: hintOf(code) }, plain);
    expect(cause, code).not.toBe('');
    expect(remedies.length, code).toBeGreaterThan(0);
    expect(remedies.every((remedy) => remedy !== ''), code).toBe(true);
  }
});

it('no remedy is the doctor itself', () => {
  const own = hints['set-up-failed'];
  for (const code of ['set-up-failed', 'CGROUP_CONTROLLER_MISSING', 'never-heard-of']) {
    for (const hint of [hintOf(code), hintOf(code, null), hintOf(code, own)]) expect(hint).toMatch(/^mend what else is said here/);
  }
  expect(hintOf('set-up-failed', 'do this')).toBe('do this');
  expect(hintOf('launcher-missing')).toBe(hints['launcher-missing']);
});

describe('circumstances', () => {
  const read = (files: Record<string, string>, env: Record<string, string> = {}) =>
    readCircumstances(null, { read: (path) => files[path] ?? null, exists: (path) => path in files, env });

  it('of a plain machine', () => {
    const around = read({ '/proc/self/status': 'Name:\tnode\nSeccomp:\t0\n', '/proc/self/cgroup': '0::/user.slice/user-1000.slice\n' });
    expect(around).toMatchObject({ container: null, seccompFilter: false, appArmorProfile: null });
  });

  it('of a container by docker', () => {
    const around = read({
      '/.dockerenv': '',
      '/proc/self/status': 'Name:\tnode\nSeccomp:\t2\nSeccomp_filters:\t1\n',
      '/sys/module/apparmor/parameters/enabled': 'Y\n',
      '/proc/self/attr/current': 'docker-default (enforce)\n',
    });
    expect(around).toMatchObject({ container: 'docker', seccompFilter: true, appArmorProfile: 'docker-default' });
  });

  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['podman', { '/run/.containerenv': '' }, {}],
    ['kubernetes', { '/.dockerenv': '' }, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }],
    ['lxc', {}, { container: 'lxc' }],
    ['systemd-nspawn', { '/run/systemd/container': 'systemd-nspawn\n' }, {}],
    ['docker', { '/proc/self/cgroup': '12:memory:/docker/0123abcd\n' }, {}],
  ])('of a container by %s', (name, files, env) => {
    expect(read(files, env).container).toBe(name);
  });

  it('settings that this kernel lacks are absent, not 0', () => {
    const { sysctls } = read({ '/proc/sys/user/max_user_namespaces': '0\n' });
    expect([...sysctls]).toEqual([['user.max_user_namespaces', 0]]);
  });

  it('an unconfined process has no profile', () => {
    const around = read({ '/sys/module/apparmor/parameters/enabled': 'Y\n', '/proc/self/attr/current': 'unconfined\n' });
    expect(around.appArmorProfile).toBeNull();
  });
});
