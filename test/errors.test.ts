import { constants } from 'node:os';

import { describe, expect, it } from 'vitest';

import { describeStageFailure, errnoName, exitCodeOf } from '../src/errors.js';
import type { Stage } from '../src/launcher/stages.js';
import { stages } from '../src/launcher/stages.js';
import type { Outcome } from '../src/run/result.js';

describe('exit codes', () => {
  const of = (outcome: Outcome, extra: { exitCode?: number; signal?: NodeJS.Signals; code?: string } = {}) =>
    exitCodeOf({
      outcome,
      exitCode: extra.exitCode ?? null,
      signal: extra.signal ?? null,
      error: extra.code === undefined ? null : { code: extra.code, stage: null, syscall: null, errno: null, hint: '' },
    });

  it('are the guest\'s own, or 128+n for signal n', () => {
    expect(of('exit', { exitCode: 0 })).toBe(0);
    expect(of('exit', { exitCode: 42 })).toBe(42);
    expect(of('exit', { signal: 'SIGSEGV' })).toBe(139);
    expect(of('exit', { signal: 'SIG40' as NodeJS.Signals })).toBe(168);
  });

  it('tell apart what the contract tells apart', () => {
    expect(of('timeout')).toBe(124);
    expect(of('out-of-memory')).toBe(137);
    expect(of('spawn-error', { code: 'cgroup-unavailable' })).toBe(125);
    expect(of('spawn-error', { code: 'constructor' })).toBe(125);
    expect(of('spawn-error', { code: 'command-not-executable' })).toBe(126);
    expect(of('spawn-error', { code: 'command-not-found' })).toBe(127);
    for (const outcome of ['canceled', 'overflow-stdout', 'overflow-stderr', 'cpu-limit'] as const) {
      expect([0, 124, 125, 126, 127, 137]).not.toContain(of(outcome));
    }
  });
});

describe('failures of a stage', () => {
  const cases: [Stage, string, string, string][] = [
    ['namespaces', 'ENOSPC', 'clone3', 'user-namespaces-disabled'],
    ['seal', 'ENOSPC', 'unshare cgroup namespace', 'user-namespaces-disabled'],
    ['sources', 'ENOSPC', 'open_tree /dev/full', 'user-namespaces-disabled'],
    ['namespaces', 'EPERM', 'clone3', 'user-namespaces-forbidden'],
    ['namespaces', 'EBUSY', 'clone3', 'cgroup-unavailable'],
    ['namespaces', 'ENOSYS', 'clone3', 'kernel-too-old'],
    ['namespaces', 'EINVAL', 'clone3', 'namespaces-unsupported'],
    ['lifeline', 'EPIPE', 'poll launcher', 'launcher-died'],
    ['id-map', 'EPERM', 'write uid_map', 'user-namespaces-restricted'],
    ['root', 'EACCES', 'mount MS_SLAVE /', 'user-namespaces-restricted'],
    ['sources', 'EINVAL', 'mount_setattr idmap /srv/data', 'idmap-unsupported'],
    ['sources', 'ENOSPC', 'idmap /srv/data', 'user-namespaces-disabled'],
    ['sources', 'ENOENT', 'openat2 /srv/data', 'path-not-found'],
    ['sources', 'EMFILE', 'openat2 /srv/data', 'host-out-of-descriptors'],
    ['cgroup', 'EACCES', 'mkdir /sys/fs/cgroup', 'cgroup-unavailable'],
    ['proc', 'EPERM', 'fsmount proc', 'proc-masked'],
    ['guest', 'EAGAIN', 'fork', 'limits-too-small'],
    ['working-directory', 'EACCES', 'chdir /srv', 'working-directory-unusable'],
    ['verify', 'EPERM', 'getresuid', 'fence-not-verified'],
    ['exec', 'ENOENT', 'execve /x', 'interpreter-not-found'],
    ['exec', 'ENOEXEC', 'execve /x', 'command-not-executable'],
    ['exec', 'E2BIG', 'execve /x', 'arguments-too-long'],
  ];
  it.each(cases)('%s with %s from "%s" is %s', (stage, errno, detail, code) => {
    const { error, message } = describeStageFailure(
      { kind: 'failure', stage, errno: constants.errno[errno as 'EPERM'], detail },
      '/x',
    );
    expect(error).toMatchObject({ code, stage, errno, syscall: detail.split(' ')[0] });
    const [syscall, ...subject] = detail.split(' ');
    expect(message).toContain([syscall, ...(subject.length > 0 ? ['on', ...subject] : [])].join(' '));
    expect(message).toContain(errno);
    expect(message.toLowerCase()).toContain(error.hint.toLowerCase());
  });

  it.each([
    [0, 'host-out-of-processes'],
    [1, 'limits-too-small'],
    [null, 'limits-too-small'],
  ])('EAGAIN of a fork after %s refusals by the run\'s own limit is %s', (pidsRefused, code) => {
    const record = { kind: 'failure', stage: 'guest', errno: constants.errno.EAGAIN, detail: 'clone' } as const;
    expect(describeStageFailure(record, '/x', { pidsRefused }).error).toMatchObject({ code });
  });

  it('have a code and a hint whatever the stage and the errno', () => {
    for (const stage of stages) {
      for (const errno of [0, 1, 12345, ...Object.values(constants.errno)]) {
        const { error, message } = describeStageFailure({ kind: 'failure', stage, errno, detail: '' }, '/x');
        expect(error.hint.length).toBeGreaterThan(10);
        expect(message).toContain(error.code);
      }
    }
  });
});

it('names an errno, known or not', () => {
  expect(errnoName(2)).toBe('ENOENT');
  expect(errnoName(-8)).toBe('ENOEXEC');
  expect(errnoName(12345)).toBe('errno 12345');
});
