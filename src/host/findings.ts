import { hints } from '../errors.js';
import type { FailureCode } from '../errors.js';
import type { Circumstances } from './circumstances.js';
import { NAMESPACE_KINDS } from './circumstances.js';

/** A launch, or the planning of one, that failed here. */
export interface Symptom {
  /** A code of `src/errors.ts`, or of `src/cgroup/placement.ts`. */
  code: string;
  /** The errno's name; null where no system call failed. */
  errno: string | null;
  /** What the failure itself says is to be done. */
  hint: string;
}

/** Why something cannot be had on this host, and what to do about it. */
export interface Finding {
  code: string;
  /** The cause, as far as it can be told, in one sentence without a full stop. */
  cause: string;
  /** What to do: alternatives, the best first, each ready to be typed where that is possible. */
  remedies: string[];
}

/** Oldest kernel with idmapped mounts, and with everything else that is used. */
const OLDEST_KERNEL = [5, 12] as const;

/** Tells the cause of a failure from what surrounds it. The code's own hint is the remedy where that singles nothing out. */
export function explain(symptom: Symptom, around: Circumstances): Finding {
  const { code } = symptom;
  const found = (cause: string, ...remedies: string[]): Finding => ({ code, cause, remedies });
  switch (code) {
    case 'user-namespaces-disabled':
      return namespacesOff(symptom, around) ?? found('this machine allows no more namespaces', symptom.hint);
    case 'user-namespaces-forbidden':
      return cloneForbidden(symptom, around);
    case 'user-namespaces-restricted':
      return capabilitiesTaken(symptom, around);
    case 'kernel-too-old':
      return systemCallMissing(symptom, around);
    default:
      return found(CAUSES[code as FailureCode] ?? `it failed (${code}${symptom.errno === null ? '' : `, ${symptom.errno}`})`, symptom.hint);
  }
}

/** What the codes mean where nothing around could change it. Those of cgroups carry cause and remedy in their hint. */
const CAUSES: Readonly<Record<string, string>> = {
  'idmap-unsupported': 'this file system, or this kernel, has no idmapped mounts',
  'proc-masked': 'parts of /proc are masked here, so the kernel refuses a fresh one',
  'id-map-refused': 'this account may not map another id into a user namespace',
  'launcher-missing': 'the launcher is not there',
  'cgroup-unavailable': 'the cgroup of this process cannot hold those of runs',
  CGROUP_MISSING: 'no cgroup hierarchy with memory and pids',
  CGROUP_UNREACHABLE: 'the cgroup of this process is out of sight',
  CGROUP_READ_ONLY: 'the cgroup file system is read-only',
  CGROUP_NOT_DELEGATED: 'this account has no cgroup of its own',
  CGROUP_CONTROLLER_MISSING: 'a controller is not handed down to this cgroup',
  CGROUP_BUSY: 'the cgroup of this process is shared with others',
  CGROUP_OVERRIDE_INVALID: 'RINGFENCE_CGROUP names no usable cgroup',
  NO_UNPRIVILEGED_ID: "there is no account but the machine's root to run as",
};

function namespacesOff({ code }: Symptom, { sysctls }: Circumstances): Finding | null {
  const off = NAMESPACE_KINDS.map((kind) => `user.max_${kind}_namespaces`).filter((name) => sysctls.get(name) === 0);
  if (off.length === 0) return null;
  const settings = off.map((name) => `${name}=63359`);
  return {
    code,
    cause: `namespaces are switched off: ${off.map((name) => `${name} is 0`).join(', ')}`,
    remedies: [
      `as root: sysctl -w ${settings.join(' ')}`,
      `for good, as root: printf '%s\\n' ${settings.join(' ')} > /etc/sysctl.d/90-ringfence.conf && sysctl --system`,
    ],
  };
}

/** EPERM from clone3 is a policy: a user namespace needs no privilege. */
function cloneForbidden({ code, hint }: Symptom, around: Circumstances): Finding {
  if (around.sysctls.get('kernel.unprivileged_userns_clone') === 0 && around.uid !== 0) {
    return {
      code,
      cause: 'ordinary accounts may make no user namespaces: kernel.unprivileged_userns_clone is 0',
      remedies: ['as root: sysctl -w kernel.unprivileged_userns_clone=1 (for good: the same line without "sysctl -w" in /etc/sysctl.d/90-ringfence.conf)'],
    };
  }
  if (around.seccompFilter) {
    return { code, cause: `the seccomp profile of ${place(around)} forbids new namespaces (EPERM from clone3)`, remedies: liftSeccomp(around) };
  }
  if (isUbuntuRestricted(around)) return restricted(code, around);
  return { code, cause: 'a policy of this machine forbids new user namespaces (EPERM from clone3)', remedies: [hint] };
}

/** The namespace was made, and then its first privileged operation was refused: that is a security module, not seccomp. */
function capabilitiesTaken({ code, hint }: Symptom, around: Circumstances): Finding {
  if (isUbuntuRestricted(around) && around.container === null) return restricted(code, around);
  if (around.container !== null) {
    const profile = around.appArmorProfile;
    const cause =
      profile === null
        ? `a security module of ${place(around)} forbids mounts inside a user namespace`
        : `the AppArmor profile ${profile} of ${place(around)} forbids mounts inside a user namespace`;
    return { code, cause, remedies: liftAppArmor(around) };
  }
  return { code, cause: 'a security module takes the capabilities of new user namespaces away', remedies: [hint] };
}

/** ENOSYS on a kernel that has the call comes from a filter: container runtimes answer so to keep libc's fallbacks working. */
function systemCallMissing({ code }: Symptom, around: Circumstances): Finding {
  if (isKernelOld(around.kernel)) {
    return {
      code,
      cause: `Linux ${around.kernel} is older than ${OLDEST_KERNEL.join('.')}`,
      remedies: [`boot Linux ${OLDEST_KERNEL.join('.')} or newer`],
    };
  }
  return { code, cause: `the seccomp profile of ${place(around)} hides system calls that Linux ${around.kernel} has`, remedies: liftSeccomp(around) };
}

function restricted(code: string, around: Circumstances): Finding {
  return {
    code,
    cause: 'AppArmor takes the capabilities of new user namespaces away: kernel.apparmor_restrict_unprivileged_userns is 1',
    remedies: [
      `give the launcher a profile: ringfence doctor --apparmor | sudo tee /etc/apparmor.d/ringfence && sudo apparmor_parser -r /etc/apparmor.d/ringfence${around.launcher === null ? ' (once it is built)' : ''}`,
      'or for all programs, as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
    ],
  };
}

function liftSeccomp({ container }: Circumstances): string[] {
  if (container === null) return ['of a systemd unit: RestrictNamespaces=no and no SystemCallFilter= that lacks clone3, mount, pivot_root, setns and unshare'];
  if (container === 'kubernetes') return ['in the pod: securityContext: { seccompProfile: { type: Unconfined } }'];
  return [`${runtimeOf(container)} run --security-opt seccomp=unconfined …`];
}

function liftAppArmor({ container }: Circumstances): string[] {
  if (container === 'kubernetes') return ['in the pod: securityContext: { appArmorProfile: { type: Unconfined }, procMount: Unmasked }'];
  return [
    `${runtimeOf(container)} run --security-opt apparmor=unconfined --security-opt systempaths=unconfined …`,
    `where SELinux is on: ${runtimeOf(container)} run --security-opt label=disable …`,
  ];
}

function runtimeOf(container: string | null): string {
  return container === 'podman' ? 'podman' : 'docker';
}

function place({ container }: Circumstances): string {
  return container === null ? 'this service' : `this ${container} container`;
}

function isUbuntuRestricted({ sysctls }: Circumstances): boolean {
  return sysctls.get('kernel.apparmor_restrict_unprivileged_userns') === 1;
}

export function isKernelOld(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
  return major < OLDEST_KERNEL[0] || (major === OLDEST_KERNEL[0] && minor < OLDEST_KERNEL[1]);
}

/** For what nobody knows a remedy. A run that fails so names the doctor, which is where the reader is by then. */
const NO_REMEDY = 'mend what else is said here, and type "ringfence doctor" again; if this stays, please report it with what "ringfence doctor --json" prints';

/** The remedy that a failure came with, or else that of its code. */
export function hintOf(code: string, hint: string | null = null): string {
  const known = hint ?? (Object.hasOwn(hints, code) ? hints[code as FailureCode] : null);
  return known === null || known === hints['set-up-failed'] ? NO_REMEDY : known;
}
