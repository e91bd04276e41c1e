import { posix } from 'node:path';

import type { CgroupCode, CgroupProblem, LocatedParent } from './placement.js';
import { HOST_LEAF } from './run-name.js';

export function problem(code: CgroupCode, hint: string): CgroupProblem {
  return { kind: 'unavailable', code, hint };
}

const SCOPE = 'systemd-run --user --scope -p Delegate=yes -- COMMAND';

export function notMounted(): CgroupProblem {
  return problem(
    'CGROUP_MISSING',
    'no cgroup file system is mounted; as root: mount -t cgroup2 cgroup2 /sys/fs/cgroup ' +
      '(in a container, start it with /sys/fs/cgroup mounted)',
  );
}

/** The kernel lists no such controller anywhere: it is compiled out or switched off at boot. */
export function controllerSwitchedOff(controllers: readonly string[]): CgroupProblem {
  return problem(
    'CGROUP_MISSING',
    `this kernel offers no ${controllers.join(' and no ')} controller; ` +
      `boot it with ${controllers.map((name) => `cgroup_enable=${name}`).join(' ')}`,
  );
}

export function splitHierarchies(): CgroupProblem {
  return problem(
    'CGROUP_MISSING',
    'memory and pids are not both on cgroup v1 or both on v2; boot with systemd.unified_cgroup_hierarchy=1',
  );
}

export function unreachable(path: string): CgroupProblem {
  return problem(
    'CGROUP_UNREACHABLE',
    `no mount shows this process's own cgroup (${path}); mount the hierarchy at /sys/fs/cgroup, start the container ` +
      'with --cgroupns=private, or set RINGFENCE_CGROUP to a cgroup that this account may divide',
  );
}

export function readOnly(mountPoints: readonly string[]): CgroupProblem {
  // With "bind" it is about this mount and not about the whole hierarchy, which v1 refuses to change while it is in use.
  const remount = mountPoints.map((mountPoint) => `mount -o remount,bind,rw ${mountPoint}`).join(' && ');
  return problem(
    'CGROUP_READ_ONLY',
    `${mountPoints.join(' and ')} ${mountPoints.length === 1 ? 'is' : 'are'} mounted read-only; as root: ${remount} ` +
      '(in a container: docker run --privileged --cgroupns=private …, or podman run --systemd=always …)',
  );
}

export function notDelegated(directory: string, uid: number): CgroupProblem {
  return problem(
    'CGROUP_NOT_DELEGATED',
    `uid ${uid} may not make cgroups in ${directory}; start the program with: ${SCOPE} ` +
      '(a service: Delegate=yes in its [Service] section)',
  );
}

/** RINGFENCE_CGROUP is one path for all hierarchies, so the remedy makes the same one in each, below the deepest own cgroup. */
export function notDelegatedLegacy(parents: readonly LocatedParent[], uid: number): CgroupProblem {
  const below = parents.map(({ directory, mountPoint }) => posix.relative(mountPoint, directory));
  const deepest = below.reduce((longest, path) => (path.length > longest.length ? path : longest), '');
  const path = posix.join('/', deepest, 'ringfence');
  const made = parents.map(({ mountPoint }) => posix.join(mountPoint, path)).join(' ');
  return problem(
    'CGROUP_NOT_DELEGATED',
    `uid ${uid} may not make cgroups in ${parents.map(({ directory }) => directory).join(' ')}; ` +
      `as root: mkdir -p ${made} && chown -R ${uid} ${made}; then start the program with RINGFENCE_CGROUP=${path}`,
  );
}

/** clone3(CLONE_INTO_CGROUP) needs write access to cgroup.procs of the common ancestor of both ends. */
export function notContained(ancestor: string, uid: number): CgroupProblem {
  return problem(
    'CGROUP_NOT_DELEGATED',
    `uid ${uid} may not move processes below ${ancestor}; start the program inside the delegated subtree, for example ` +
      `with: ${SCOPE}`,
  );
}

export function controllersMissing(directory: string, missing: readonly string[], uid: number): CgroupProblem {
  const enable = missing.map((name) => `+${name}`).join(' ');
  const above = directory.slice(0, directory.lastIndexOf('/')) || '/';
  const remedy =
    uid === 0
      ? `as root: echo "${enable}" > ${above}/cgroup.subtree_control`
      : `for user sessions, as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' ` +
        '> /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload, then log in again ' +
        `and start the program with: ${SCOPE}`;
  return problem('CGROUP_CONTROLLER_MISSING', `${directory} does not have ${missing.join(' and ')}; ${remedy}`);
}

/** `isTop`: nothing is above it in sight, as at the root of a container. */
export function busy(directory: string, isTop: boolean): CgroupProblem {
  const leaf = `${directory}/${HOST_LEAF}`;
  const remedy = isTop
    ? `first move them all into a leaf: mkdir -p ${leaf} && for p in $(cat ${directory}/cgroup.procs); do echo $p > ${leaf}/cgroup.procs; done`
    : `start the program alone in a cgroup of its own: ${SCOPE} (as root: systemd-run --scope -p Delegate=yes -- COMMAND), ` +
      'or set RINGFENCE_CGROUP to an empty cgroup beside this one';
  return problem(
    'CGROUP_BUSY',
    `${directory} holds processes other than this one, so it cannot hand memory and pids down to children; ${remedy}`,
  );
}

export function overrideInvalid(value: string, reason: string): CgroupProblem {
  return problem(
    'CGROUP_OVERRIDE_INVALID',
    `RINGFENCE_CGROUP (${value}) ${reason}; make the cgroup first, or unset the variable to use the program's own`,
  );
}

/** Anything the kernel answered that has no better name. */
export function unexpected(action: string, error: unknown): CgroupProblem {
  const code = (error as NodeJS.ErrnoException).code ?? String(error);
  return problem('CGROUP_UNREACHABLE', `${action}: ${code}; set RINGFENCE_CGROUP to a cgroup that this account may divide`);
}
