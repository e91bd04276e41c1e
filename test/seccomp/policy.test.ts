import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALLOW, EPERM, ENOSYS, ERRNO, KILL_PROCESS } from '../../src/seccomp/actions.js';
import { CALLS } from '../../src/seccomp/generated/calls.js';
import { AUDIT_ARCH } from '../../src/seccomp/guard.js';
import { simulate } from '../../src/seccomp/simulate.js';
import { POLICY, ROOT, VARIANTS, committedProgram } from './tools.js';
import type { Variant } from './tools.js';

interface PolicyRule {
  names: string[];
  action: string;
  errnoRet?: number;
  args?: { index: number; value: number; valueTwo: number; op: string }[];
}
const policy = JSON.parse(readFileSync(POLICY, 'utf8')) as { syscalls: PolicyRule[] };
const architectures = ['x64', 'arm64'] as const;
const refused = ERRNO | EPERM;
const unknown = ERRNO | ENOSYS;

// From the issue, not from the policy.
const CLOSED = `mount umount2 pivot_root move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr unshare setns
  ptrace process_vm_readv process_vm_writev bpf perf_event_open userfaultfd add_key request_key keyctl io_uring_setup
  io_uring_enter io_uring_register kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff reboot
  clock_settime clock_adjtime settimeofday adjtimex quotactl quotactl_fd open_by_handle_at chroot pidfd_getfd kcmp acct syslog
  sethostname setdomainname`.split(/\s+/);
const OPEN = `read write openat close mmap mprotect execve execveat exit_group futex epoll_pwait epoll_ctl eventfd2 timerfd_create
  signalfd4 inotify_init1 pidfd_open pidfd_send_signal getrandom rseq prctl sendto recvmsg connect bind listen statx clone fsync
  set_robust_list rt_sigreturn restart_syscall memfd_create copy_file_range wait4 waitid membarrier`.split(/\s+/);

function verdict(architecture: 'x64' | 'arm64', call: string | number, args: bigint[] = [], variant: Variant = 'kDefaultFilter'): number {
  const number = typeof call === 'number' ? call : CALLS[architecture].get(call);
  if (number === undefined) throw new Error(`${architecture} has no ${call}`);
  return simulate(committedProgram(architecture, variant), { architecture: AUDIT_ARCH[architecture], number, args });
}

const words = (text: string): Set<string> => new Set(text.trim().split(/\s+/));

// From what README says of guests without namespaces.
const IPC = words(`shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink
  mq_timedsend mq_timedreceive mq_notify mq_getsetattr`);
const ATTRIBUTES = words(`chown fchown lchown fchownat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr`);
const PRETENDED = words('chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat');
/** The first arguments that are about the caller; ioprio_set counts from IOPRIO_WHO_PROCESS, which is 1. */
const SELF: Record<string, bigint[]> = {
  sched_setparam: [0n],
  sched_setscheduler: [0n],
  sched_setaffinity: [0n],
  sched_setattr: [0n],
  setpriority: [0n, 0n],
  ioprio_set: [1n, 0n],
};

/** What a guest without namespaces is denied beyond the policy, or told; null where the policy decides. */
function lessened(name: string, args: bigint[], inet: boolean): number | null {
  if (PRETENDED.has(name)) return ERRNO;
  if (IPC.has(name) || ATTRIBUTES.has(name)) return refused;
  if (name === 'socket' && (!inet || BigInt.asUintN(32, args[0] ?? 0n) === 1n)) return refused;
  const isOwn = (SELF[name] ?? []).every((own, index) => BigInt.asUintN(32, args[index] ?? 0n) === own);
  return isOwn ? null : refused;
}

/** The policy read as naively as can be. */
function intended(name: string | undefined, args: bigint[], variant: Variant): number {
  if (name === undefined) return unknown;
  const inet = variant === 'kDefaultFilter' || variant === 'kNoNamespacesInetFilter';
  const less = variant.startsWith('kNoNamespaces') ? lessened(name, args, inet) : null;
  if (less !== null) return less;
  for (const rule of policy.syscalls.filter(({ names }) => names.includes(name))) {
    if (rule.action === 'SCMP_ACT_ERRNO') return ERRNO | (rule.errnoRet ?? EPERM);
    if (!inet && name === 'socket' && [2, 10].includes(rule.args?.[0]?.valueTwo ?? 0)) continue;
    const matches = (rule.args ?? []).every((arg) => ((args[arg.index] ?? 0n) & BigInt(arg.value)) === BigInt(arg.valueTwo));
    if (matches) return ALLOW;
  }
  return refused;
}

describe.each(architectures)('the default policy on %s', (architecture) => {
  const names = new Map([...CALLS[architecture]].map(([name, number]) => [number, name]));
  const listed = new Set(policy.syscalls.flatMap((rule) => rule.names));
  const highest = Math.max(...[...listed].map((name) => CALLS[architecture].get(name) ?? 0));

  it('decides on each call that this kernel generation has, and on nothing else', () => {
    const undecided = [...CALLS[architecture]].filter(([name, number]) => number <= highest && !listed.has(name));
    expect(undecided).toEqual([]);
  });

  it.each(VARIANTS)('%s gives every number up to 1023 and the x32 range its verdict', (variant) => {
    const program = committedProgram(architecture, variant);
    const pool = [0n, 1n, 2n, 3n, 8n, 10n, 16n, 17n, 0x5412n, 0x541cn, 0x15412n, 0x20000n, 0x10000000n, 0xffffffffn, 0x1_0000_0002n];
    const samples = pool.flatMap((a) => pool.flatMap((b) => [0n, 6n, 17n].map((c) => [a, b, c])));
    const wrong: string[] = [];
    for (let number = -1; number < 1024; number++) {
      const name = number <= highest ? names.get(number) : undefined;
      const several = name !== undefined && (name in SELF || policy.syscalls.some((rule) => rule.args && rule.names.includes(name)));
      for (const args of several ? samples : samples.slice(0, 60)) {
        const got = simulate(program, { architecture: AUDIT_ARCH[architecture], number, args });
        if (got !== intended(name, args, variant)) wrong.push(`${number} ${name ?? '-'} ${args}: ${got.toString(16)}`);
      }
      const x32 = simulate(program, { architecture: AUDIT_ARCH[architecture], number: number | 0x40000000 });
      if (x32 !== unknown) wrong.push(`x32 ${number}: ${x32.toString(16)}`);
    }
    expect(wrong).toEqual([]);
  });

  it('refuses what the issue names with EPERM, and clone3 with ENOSYS', () => {
    for (const name of CLOSED.filter((name) => CALLS[architecture].has(name))) expect([name, verdict(architecture, name)]).toEqual([name, refused]);
    expect(verdict(architecture, 'clone3')).toBe(unknown);
    for (const newer of ['statmount', 'listmount', 'mseal', 'listns']) expect(verdict(architecture, newer)).toBe(unknown);
  });

  it('allows what runtimes live on', () => {
    for (const name of OPEN) expect([name, verdict(architecture, name)]).toEqual([name, ALLOW]);
  });

  it('refuses clone with any flag that makes a namespace, whatever else is set', () => {
    const threads = 0x3d0f00n;
    expect(verdict(architecture, 'clone', [threads])).toBe(ALLOW);
    expect(verdict(architecture, 'clone', [17n])).toBe(ALLOW);
    for (const flag of [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n])
      for (const more of [0n, 17n, threads, 1n << 40n]) expect(verdict(architecture, 'clone', [flag | more])).toBe(refused);
  });

  it('opens sockets of unix, inet, inet6 and route netlink only', () => {
    for (let family = 0n; family < 64n; family++) {
      const open = [1n, 2n, 10n, 16n].includes(family);
      for (const upper of [0n, 1n << 32n, 0xffffffffn << 32n])
        expect([family, verdict(architecture, 'socket', [family | upper, 1n, 0n])]).toEqual([family, open ? ALLOW : refused]);
    }
    for (let protocol = 1n; protocol < 32n; protocol++) expect(verdict(architecture, 'socket', [16n, 3n, protocol])).toBe(refused);
    const raw = [2n, 3n, 1n];
    const sctp = [2n, 1n, 132n];
    const mptcp = [10n, 1n, 262n];
    for (const args of [raw, sctp, mptcp]) expect(verdict(architecture, 'socket', args)).toBe(refused);
    const flags = 0o2004000n; // SOCK_CLOEXEC | SOCK_NONBLOCK
    for (const args of [[2n, 1n, 6n], [10n, 1n | flags, 0n], [2n, 2n | flags, 17n]]) expect(verdict(architecture, 'socket', args)).toBe(ALLOW);
    expect(verdict(architecture, 'socketpair', [1n, 1n, 0n])).toBe(ALLOW);
    expect(verdict(architecture, 'socketpair', [30n, 1n, 0n])).toBe(refused);
  });

  it('has a variant without inet that differs in nothing but inet sockets', () => {
    for (let family = 0n; family < 64n; family++)
      for (const [type, protocol] of [[1n, 0n], [1n, 6n], [2n, 0n], [2n, 17n], [3n, 0n]] as const) {
        const args = [family, type, protocol];
        const inet = family === 2n || family === 10n;
        expect(verdict(architecture, 'socket', args, 'kNoInetFilter')).toBe(inet ? refused : verdict(architecture, 'socket', args));
      }
  });

  it('refuses terminal injection however the upper half of the command is filled, and no other ioctl', () => {
    const program = committedProgram(architecture, 'kDefaultFilter');
    const number = CALLS[architecture].get('ioctl') ?? -1;
    for (const upper of [0n, 1n, 0xffffffffn, 0x80000000n])
      for (let command = 0n; command < 0x10000n; command++) {
        const got = simulate(program, { architecture: AUDIT_ARCH[architecture], number, args: [0n, (upper << 32n) | command] });
        if (got !== (command === 0x5412n || command === 0x541cn ? refused : ALLOW)) expect([upper, command, got]).toBe('its verdict');
      }
    for (const command of [0x80045430n, 0x40049409n, 0xc0185879n]) expect(verdict(architecture, 'ioctl', [0n, command])).toBe(ALLOW);
  });

  it('lets no file be made or changed to run as its owner', () => {
    const modes: [string, number][] = [['fchmod', 1], ['fchmodat', 2], ['fchmodat2', 2], ['mknodat', 2]];
    if (architecture === 'x64') modes.push(['chmod', 1], ['creat', 1], ['mknod', 1]);
    const withMode = (index: number, mode: bigint) => Array.from({ length: 4 }, (_, at) => (at === index ? mode : 0n));
    for (const [name, index] of modes) {
      expect(verdict(architecture, name, withMode(index, 0o1777n)), name).toBe(ALLOW);
      for (const bit of [0o4000n, 0o2000n, 0o6755n]) expect(verdict(architecture, name, withMode(index, bit)), name).toBe(refused);
    }
    const flags = { create: 0o100n, temporary: 0o20000000n };
    expect(verdict(architecture, 'openat', [0n, 0n, 0n, 0o6755n])).toBe(ALLOW);
    expect(verdict(architecture, 'openat', [0n, 0n, flags.create, 0o666n])).toBe(ALLOW);
    expect(verdict(architecture, 'openat', [0n, 0n, flags.create, 0o4755n])).toBe(refused);
    expect(verdict(architecture, 'openat', [0n, 0n, flags.temporary, 0o2755n])).toBe(refused);
    expect(verdict(architecture, 'openat2')).toBe(unknown);
  });

  it('allows all of fcntl but what keeps others waiting', () => {
    for (const command of [0n, 1n, 4n, 16n, 38n, 1023n, 1025n, 1027n, 1030n, 1031n, 1033n, 1039n]) expect(verdict(architecture, 'fcntl', [3n, command])).toBe(ALLOW);
    for (const lease of [1024n, 1026n, 1040n, 2048n, 0x80000400n]) expect(verdict(architecture, 'fcntl', [3n, lease])).toBe(refused);
  });

  it('allows the personalities that programs ask for', () => {
    for (const persona of [0n, 8n, 0x20000n, 0x20008n, 0xffffffffn]) expect(verdict(architecture, 'personality', [persona])).toBe(ALLOW);
    for (const persona of [0x40000n, 0x400000n, 0x100000n, 1n]) expect(verdict(architecture, 'personality', [persona])).toBe(refused);
  });

  it('kills calls by way of any other architecture', () => {
    const program = committedProgram(architecture, 'kDefaultFilter');
    const others = [0x40000003, 0x40000028, 0xc00000b7, 0xc000003e, 0].filter((other) => other !== AUDIT_ARCH[architecture]);
    for (const other of others) for (const number of [0, 1, 39, 400]) expect(simulate(program, { architecture: other, number })).toBe(KILL_PROCESS);
  });

  it('comes from a header whose first line names its generator', () => {
    const text = readFileSync(`${ROOT}native/seccomp/generated/${architecture}.h`, 'utf8');
    expect(text.split('\n')[0]).toContain('Generated by scripts/seccomp.mjs from native/seccomp/default.json');
    expect([...text.matchAll(/sock_filter (\w+)\[\]/g)].map(([, name]) => name)).toEqual([...VARIANTS]);
  });
});
