import { constants } from 'node:os';

import type { FailureRecord, KernelUsage } from './launcher/records.js';
import type { Stage } from './launcher/stages.js';
import type { Outcome, SandboxFailure, SandboxResult } from './run/result.js';

/**
 * Exit code of `ringfence run` for each outcome but `exit`, where it is the guest's own, or 128+n for a guest that died of
 * signal n. `spawn-error` is 127 or 126 for the codes of `exitCodeByError`. An output cap and the cpu limit take the
 * numbers of the signals that stand for them (SIGXFSZ, SIGXCPU), an abort that of SIGINT.
 */
export const exitCodeByOutcome = {
  timeout: 124,
  'spawn-error': 125,
  'out-of-memory': 137,
  'cpu-limit': 128 + 24,
  'overflow-stdout': 128 + 25,
  'overflow-stderr': 128 + 25,
  canceled: 128 + 2,
} as const satisfies Record<Exclude<Outcome, 'exit'>, number>;

export const exitCodeByError: Readonly<Record<string, number>> = {
  'command-not-found': 127,
  'interpreter-not-found': 127,
  'command-not-executable': 126,
};

/** The exit code of a command line that ran this. */
export function exitCodeOf({ outcome, exitCode, signal, error }: Pick<SandboxResult, 'outcome' | 'exitCode' | 'signal' | 'error'>): number {
  if (outcome === 'exit') return exitCode ?? 128 + signalNumber(signal);
  const code = error?.code ?? '';
  if (Object.hasOwn(exitCodeByError, code)) return exitCodeByError[code] ?? exitCodeByOutcome['spawn-error'];
  return exitCodeByOutcome[outcome];
}

/** The exit code of a command line that ran a function. */
export function exitCodeOfAnswer({ ok, code = '' }: { ok: boolean; code?: string }): number {
  if (ok) return 0;
  const known: Readonly<Record<string, number>> = { ...exitCodeByError, ...exitCodeByAnswer };
  return (Object.hasOwn(known, code) ? known[code] : undefined) ?? exitCodeByOutcome['spawn-error'];
}

function signalNumber(signal: NodeJS.Signals | null): number {
  if (signal === null) return 0;
  // Node has no names for real-time signals; they are called SIG34 and so on.
  return (constants.signals as Partial<Record<string, number>>)[signal] ?? Number(signal.slice(3));
}

/** Exit code of `ringfence eval` for each code of a failed run; any other one is an error of a sandbox, as above. */
export const exitCodeByAnswer = {
  'guest-error': 1,
  'guest-exit': 1,
  'process-limit': 1,
  protocol: 1,
  timeout: exitCodeByOutcome.timeout,
  'out-of-memory': exitCodeByOutcome['out-of-memory'],
  'output-limit': exitCodeByOutcome['overflow-stdout'],
  canceled: exitCodeByOutcome.canceled,
  'invalid-request': exitCodeByOutcome['spawn-error'],
  'egress-blocked': exitCodeByOutcome['spawn-error'],
  'bindings-rejected': exitCodeByOutcome['spawn-error'],
  closed: exitCodeByOutcome['spawn-error'],
} as const satisfies Readonly<Record<string, number>>;

/** HTTP status of a request that the service makes no run of. A run that fails is 200 with `ok: false`. */
export const httpStatusByRefusal = {
  'invalid-json': 400,
  'invalid-request': 400,
  unauthorized: 401,
  'foreign-page': 403,
  'not-found': 404,
  'body-too-large': 413,
  'queue-full': 429,
  /** Nobody reads it: nginx's number for a client that has gone. */
  'hung-up': 499,
  'internal-error': 500,
  'shutting-down': 503,
  'not-ready': 503,
} as const;

/** What goes wrong with a sandbox, and what to do about it. Codes of one cause that need another remedy are another code. */
export const hints = {
  'command-not-found': 'give an absolute path, or a PATH in env that has the command',
  'command-not-executable': 'give a program of this architecture, or a script with a #! line, that everyone may execute ("chmod 755")',
  'interpreter-not-found': 'its #! interpreter or dynamic loader is not in the sandbox: add the directory it lies in to filesystem.read, or, if it is a script with CRLF line ends, save it with LF',
  'arguments-too-long': 'args and env together must fit into 2 MiB, each of them into 128 KiB: use stdin or a file',
  'working-directory-unusable': 'give a cwd that the guest may enter, or none',
  'path-not-found': 'the path was removed or replaced by a symbolic link after it was checked: leave granted paths alone while runs start',
  'grant-of-the-kernel': 'a proc, sysfs or cgroup file system of the host is mounted in what is granted: grant the directories beside it',
  'path-not-usable': 'give a path of another file system, or one that this account may bind',
  'idmap-unsupported':
    'a writable grant of a root host needs an idmapped mount (Linux 5.12 and a file system that has it: ext4, xfs, btrfs, tmpfs from 6.3); move the directory to one, or run the host as the directory\'s owner',
  'limits-too-small': 'raise limits.pids or limits.memoryMb; where these are ample, what bounds the host itself: "ulimit -u", TasksMax=',
  'scratch-full': 'raise filesystem.tmpMb, or "sysctl -w fs.mount-max=100000" if this machine has very many mounts',
  'cgroup-unavailable': 'give the host a writable cgroup: Delegate=yes in its systemd unit, "systemd-run --user --scope -p Delegate=yes", or RINGFENCE_CGROUP; "ringfence doctor" says which',
  'user-namespaces-disabled': 'type "sysctl -w user.max_user_namespaces=63359" (and the same for user.max_{mnt,pid,net,ipc,uts,cgroup}_namespaces)',
  'user-namespaces-forbidden':
    'a seccomp profile, AppArmor or kernel.unprivileged_userns_clone=0 forbids it: type "sysctl -w kernel.unprivileged_userns_clone=1", or start the container with --security-opt seccomp=unconfined',
  'user-namespaces-restricted':
    'on Ubuntu load the profile of "ringfence doctor --apparmor" or type "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"; start a container with --security-opt apparmor=unconfined --cap-add SYS_ADMIN',
  'id-map-refused': 'a root host needs CAP_SETUID and CAP_SETGID and a range of ids of its own (/proc/self/uid_map)',
  'landlock-refused': "this kernel's Landlock takes no more rules: start the program from fewer sandboxes inside one another",
  'filter-refused': 'use a kernel with CONFIG_SECCOMP_FILTER, or a profile that is a valid program',
  'allowlist-unavailable': 'an allowlist needs a kernel with packet sockets (CONFIG_PACKET) and rtnetlink in network namespaces',
  'proc-masked': 'this container masks parts of /proc: start it with --security-opt systempaths=unconfined',
  'namespaces-unsupported': 'use a kernel with user, mount, pid, network, ipc, uts and cgroup namespaces',
  'kernel-too-old': 'use Linux 5.12 or newer; a container runtime that hides new system calls needs --security-opt seccomp=unconfined',
  'fence-not-verified': "use isolation: 'best-effort' only if you can do without it; please report this",
  'host-out-of-memory': 'the machine, or the cgroup of the host, has no memory left: run fewer sandboxes at once',
  'host-out-of-descriptors': 'run fewer sandboxes at once, or raise "ulimit -n"',
  'host-out-of-processes': 'the limit of processes of this account or its cgroup is reached: run fewer sandboxes at once, or raise "ulimit -u" or TasksMax=',
  'launcher-missing': 'type "npm run build" in a checkout, or install the package again',
  'launcher-not-started': 'check that the launcher may be executed (a mount with noexec, a security module)',
  'launcher-died': 'something outside killed it (a kernel out of memory, an operator); the sandbox died with it',
  'launcher-protocol': 'the launcher is of another version than the library: type "npm run build", or install the package again',
  'set-up-failed': '"ringfence doctor" shows what this host can do',
} as const;

export type FailureCode = keyof typeof hints;

/** A failure and the sentence that goes with it: what was tried, on what, what came back, what to do. */
export interface DescribedFailure {
  message: string;
  error: SandboxFailure;
}

/** Describes a failure. `tried` says what was done and on what; `hint` replaces that of the code. */
export function describeFailure(
  code: string,
  tried: string,
  about: { stage?: Stage | null; syscall?: string | null; errno?: number | string | null; hint?: string } = {},
): DescribedFailure {
  const hint = about.hint ?? (Object.hasOwn(hints, code) ? hints[code as FailureCode] : hints['set-up-failed']);
  const errno = typeof about.errno === 'number' ? errnoName(about.errno) : (about.errno ?? null);
  const came = errno === null ? '' : `: ${errno}`;
  return {
    message: `${tried}${came} (${code}). ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`,
    error: { code, stage: about.stage ?? null, syscall: about.syscall ?? null, errno, hint },
  };
}

/** Describes the failure of a stage of the launcher. `usage` is what the run's cgroup had counted by then, if that is known. */
export function describeStageFailure(record: FailureRecord, command: string, usage: Pick<KernelUsage, 'pidsRefused'> | null = null): DescribedFailure {
  const [syscall = '', ...rest] = record.detail.trim().split(' ');
  const errno = record.errno === 0 ? null : errnoName(record.errno);
  const rule = rules.find(
    ({ stages, errnos, detail, pidsRefused }) =>
      (stages === null || stages.includes(record.stage)) &&
      (errnos === null || (errno !== null && errnos.includes(errno))) &&
      (detail === undefined || detail.test(record.detail)) &&
      (pidsRefused === undefined || pidsRefused === usage?.pidsRefused),
  );
  const tried = record.stage === 'exec' ? `cannot start ${command}` : `stage ${record.stage} of the launcher failed`;
  const on = rest.length === 0 ? syscall : `${syscall} on ${rest.join(' ')}`;
  return describeFailure(rule?.code ?? 'set-up-failed', on === '' ? tried : `${tried}: ${on}`, {
    stage: record.stage,
    syscall: syscall === '' ? null : syscall,
    errno,
  });
}

/** The name of an errno, for example `ENOENT`. */
export function errnoName(errno: number): string {
  const known = Object.entries(constants.errno).find(([, value]) => value === Math.abs(errno));
  return known?.[0] ?? `errno ${Math.abs(errno)}`;
}

interface Rule {
  stages: readonly Stage[] | null;
  errnos: readonly string[] | null;
  detail?: RegExp;
  /** Processes that the run's own limit has refused; not looked at where it is absent. */
  pidsRefused?: number;
  code: FailureCode;
}

/**
 * What the kernel's answers mean, stage by stage; the first rule that fits counts. Several of them say something else than
 * their name: ENOSPC from clone3 is a sysctl, not a disk (namespaces(7)); EPERM from it is a filter or a policy, for a user
 * namespace needs no privilege; and Ubuntu's policy lets the namespace be made and takes its capabilities away, so that the
 * refusal comes stages later.
 */
const rules: readonly Rule[] = [
  { stages: ['view'], errnos: ['EPERM'], detail: /^mountinfo/, code: 'grant-of-the-kernel' },
  { stages: ['plan'], errnos: ['EINVAL'], detail: /argv|env/, code: 'arguments-too-long' },
  { stages: ['system-calls'], errnos: ['EINVAL', 'ENOSYS', 'EPROTO', 'EFAULT'], code: 'filter-refused' },
  { stages: ['landlock'], errnos: ['ENOENT', 'ENOTDIR', 'ELOOP'], detail: /^openat2/, code: 'path-not-found' },
  { stages: ['landlock'], errnos: ['E2BIG', 'EPERM', 'EINVAL', 'EPROTO', 'EBADFD'], code: 'landlock-refused' },
  { stages: ['exec'], errnos: ['ENOENT', 'ELIBBAD'], code: 'interpreter-not-found' }, // the plan has found the command itself
  { stages: ['exec'], errnos: ['EACCES', 'ENOEXEC', 'EISDIR', 'EPERM', 'ETXTBSY', 'ENOTDIR', 'EINVAL', 'ELOOP'], code: 'command-not-executable' },
  { stages: ['exec'], errnos: ['E2BIG'], code: 'arguments-too-long' },
  // Not by the run's own limit: by that of the account.
  { stages: ['guest', 'exec'], errnos: ['EAGAIN'], pidsRefused: 0, code: 'host-out-of-processes' },
  { stages: ['guest', 'exec'], errnos: ['EAGAIN', 'ENOMEM'], code: 'limits-too-small' },
  // Init asks whether the launcher still lives.
  { stages: ['lifeline'], errnos: ['EPIPE'], code: 'launcher-died' },
  { stages: null, errnos: ['EMFILE', 'ENFILE'], code: 'host-out-of-descriptors' },
  { stages: ['namespaces'], errnos: ['ENOSPC', 'EUSERS'], code: 'user-namespaces-disabled' },
  // A cgroup namespace, and the mount namespace that the kernel makes for each detached tree, count against the same limits.
  { stages: ['seal', 'sources'], errnos: ['ENOSPC'], detail: /^(unshare|open_tree) /, code: 'user-namespaces-disabled' },
  { stages: ['namespaces'], errnos: ['EPERM'], code: 'user-namespaces-forbidden' },
  { stages: ['namespaces'], errnos: ['EINVAL'], code: 'namespaces-unsupported' },
  { stages: ['namespaces'], errnos: ['EAGAIN'], code: 'host-out-of-processes' },
  // clone3 with CLONE_INTO_CGROUP: the group is gone, not delegated, or an inner node.
  { stages: ['namespaces'], errnos: ['EACCES', 'EBUSY', 'EOPNOTSUPP', 'ENOTSUP', 'ENODEV', 'ENOENT'], code: 'cgroup-unavailable' },
  { stages: ['cgroup', 'attach'], errnos: ['ENOMEM'], code: 'host-out-of-memory' },
  { stages: ['cgroup', 'attach'], errnos: null, code: 'cgroup-unavailable' },
  { stages: null, errnos: ['ENOMEM'], code: 'host-out-of-memory' },
  { stages: null, errnos: ['ENOSYS'], code: 'kernel-too-old' },
  // An idmapped mount takes a user namespace to hold the map.
  { stages: ['sources'], errnos: ['ENOSPC', 'EUSERS'], detail: /idmap/, code: 'user-namespaces-disabled' },
  { stages: ['sources'], errnos: null, detail: /idmap/, code: 'idmap-unsupported' },
  { stages: ['sources'], errnos: ['ENOENT', 'ENOTDIR', 'ELOOP'], code: 'path-not-found' },
  { stages: ['sources', 'root', 'view', 'proc', 'pivot', 'hostname', 'loopback'], errnos: ['ENOSPC'], code: 'scratch-full' },
  { stages: ['proc'], errnos: ['EPERM', 'EBUSY'], detail: /^(fsmount|mount)/, code: 'proc-masked' },
  { stages: ['id-map'], errnos: ['EINVAL', 'ERANGE'], code: 'id-map-refused' },
  {
    stages: ['id-map', 'identity', 'hostname', 'loopback', 'egress', 'root', 'view', 'proc', 'pivot', 'sources'],
    errnos: ['EACCES', 'EPERM'],
    code: 'user-namespaces-restricted',
  },
  { stages: ['egress'], errnos: null, code: 'allowlist-unavailable' },
  { stages: ['sources', 'view'], errnos: null, code: 'path-not-usable' },
  { stages: ['working-directory'], errnos: null, code: 'working-directory-unusable' },
  { stages: ['verify'], errnos: null, code: 'fence-not-verified' },
  { stages: ['plan'], errnos: null, code: 'launcher-protocol' },
];
