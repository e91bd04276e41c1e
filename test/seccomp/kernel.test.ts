import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CALLS } from '../../src/seccomp/generated/calls.js';
import { loadProfile } from '../../src/seccomp/load.js';
import { encodeProgram } from '../../src/seccomp/program.js';
import { buildLoader, buildProber } from './tools.js';

type Argument = number | bigint | string;
type Attempt = [name: string, ...args: Argument[]];

const EPERM = 'errno 1';
const ENOSYS = 'errno 38';
const isRoot = process.getuid?.() === 0;

// Harmless without a filter, and answered otherwise than with EPERM there: that is each one's control.
const REFUSED: Attempt[] = [
  ['unshare', 0],
  ['setns', -1, 0],
  ['clone', 0x20000 | 0x10000000 | 17],
  ['ptrace', 3, -1, 0, 0], // PTRACE_PEEKUSER of nobody
  ['process_vm_readv', -1, 0, 0, 0, 0, 0],
  ['process_vm_writev', -1, 0, 0, 0, 0, 0],
  ['process_madvise', -1, 0, 0, 0, 0],
  ['process_mrelease', -1, 0],
  ['pidfd_getfd', -1, 0, 0],
  ['kcmp', 0x7fffffff, 0x7fffffff, 0, 0, 0],
  ['userfaultfd', -1],
  ['memfd_secret', 0xff],
  ['add_key', '=user', '=', 0, 0, 0],
  ['request_key', '=', 0, 0, 0],
  ['keyctl', -1],
  ['io_uring_setup', 0, 0],
  ['io_uring_enter', -1, 0, 0, 0, 0, 0],
  ['io_uring_register', -1, 0, 0, 0],
  ['io_setup', 0, 0],
  ['io_destroy', 0],
  ['syncfs', -1],
  ['name_to_handle_at', -1, '=x', 0, 0, 0],
  ['personality', 0x40000], // ADDR_NO_RANDOMIZE
  ['socket', 40, 1, 0], // AF_VSOCK
  ['socket', 38, 5, 0], // AF_ALG
  ['socket', 16, 3, 15], // NETLINK_KOBJECT_UEVENT
  ['socket', 16, 3, 12], // NETLINK_NETFILTER
  ['socket', 2, 1, 132], // SCTP
  ['socket', 99, 1, 0],
  ['socketpair', 99, 1, 0, 0],
  ['ioctl', -1, 0x5412, 0], // TIOCSTI
  ['ioctl', -1, 0x541c, 0], // TIOCLINUX
  ['ioctl', -1, 0x1_0000_5412n, 0], // the kernel drops the upper half
  ['ioctl', -1, 0xffffffff_0000541cn, 0],
  ['mbind', 0, 0, -1, 0, 0, 0],
  ['set_mempolicy', -1, 0, 0],
  ['remap_file_pages', 1, 0, 0, 0, 0],
];

// The same, but an ordinary user gets EPERM without a filter too.
const REFUSED_TO_ROOT: Attempt[] = [
  ['mount', '=x', '=/nonexistent/x', '=tmpfs', 0, 0],
  ['umount2', '=/nonexistent/x', 0],
  ['pivot_root', '=/nonexistent/x', '=/nonexistent/x'],
  ['chroot', '=/nonexistent/x'],
  ['move_mount', -1, '=', -1, '=', 0],
  ['open_tree', -1, '=/nonexistent/x', 0],
  ['fsopen', '=nonexistent', 0],
  ['fsconfig', -1, 1, '=a', '=b', 0],
  ['fsmount', -1, 0, 0],
  ['fspick', -1, '=x', 0],
  ['mount_setattr', -1, '=x', 0, 1, 0],
  ['bpf', -1, 0, 0],
  ['perf_event_open', 0, 0, -1, -1, 0],
  ['open_by_handle_at', -1, 0, 0],
  ['quotactl', -1, '=/nonexistent/x', 0, 0],
  ['kexec_load', 0, 17, 0, -1],
  ['kexec_file_load', -1, -1, 0, '=', -1],
  ['init_module', 0, 0, '='],
  ['finit_module', -1, '=', 0],
  ['delete_module', '=no_such_module_x', 0x800],
  ['swapon', '=/nonexistent/x', 0],
  ['swapoff', '=/nonexistent/x'],
  ['reboot', 1, 2, 3, 0], // wrong magic
  ['syslog', -1, 0, 0],
  ['acct', '=/nonexistent/x'],
  ['sethostname', '=x', -1],
  ['setdomainname', '=x', -1],
  ['settimeofday', 1, 0],
  ['clock_settime', -1, 0],
  ['clock_adjtime', 0, 1],
  ['fanotify_init', -1, 0],
  ['socket', 17, 99, 0], // AF_PACKET, no such type
  ['iopl', 99],
  ['ioperm', 0, 0, 0],
];

const UNKNOWN: Attempt[] = [['clone3', 0, 0], ['listmount', 0, 0, 0, 0]];

const ALLOWED: Attempt[] = [
  ['getpid'], ['clone', 17], ['socket', 1, 1, 0], ['socket', 16, 3, 0], ['personality', 0xffffffff], ['eventfd2', 0, 0], ['epoll_create1', 0],
  ['timerfd_create', 1, 0], ['inotify_init1', 0], ['getrandom', 0, 0, 0], ['memfd_create', '=x', 0], ['sched_yield'], ['prctl', 3], ['umask', 0o22],
];

const ids = new Map<string, number>(process.arch === 'arm64' ? CALLS.arm64 : CALLS.x64);
let loader = '';
let prober = '';
let directory = '';
beforeAll(() => {
  [loader, prober] = [buildLoader(), buildProber()];
  directory = mkdtempSync(join(tmpdir(), 'seccomp-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function line([name, ...args]: Attempt): string {
  const words = args.map((arg) => (typeof arg === 'string' ? arg : BigInt.asUintN(64, BigInt(arg)).toString()));
  return ['call', ids.get(name), ...words].join(' ');
}

/** One answer for each attempt. */
function probe(filter: string, lines: string[]): string[] {
  return execFileSync(loader, [filter, prober], { input: `${lines.join('\n')}\n`, encoding: 'utf8' }).trim().split('\n');
}

function here(attempts: Attempt[]): Attempt[] {
  return attempts.filter(([name]) => ids.has(name));
}

describe('under the default filter the kernel', () => {
  it.each([
    ['refuses with EPERM what it answers otherwise without one', REFUSED, false],
    ['refuses with EPERM even to root what root may ask without one', REFUSED_TO_ROOT, true],
  ] as const)('%s', (_title, attempts, rootOnly) => {
    const lines = here([...attempts]).map(line);
    expect(probe('default', lines)).toEqual(lines.map(() => EPERM));
    if (rootOnly && !isRoot) return; // an ordinary user is refused without a filter too: no control
    const controls = probe('none', lines);
    expect(controls.flatMap((control, index) => (control === EPERM ? [here([...attempts])[index]] : []))).toEqual([]);
  });

  it('answers ENOSYS to clone3 and to calls newer than the policy', () => {
    expect(probe('default', [...UNKNOWN.map(line), 'call 999'])).toEqual([ENOSYS, ENOSYS, ENOSYS]);
    expect(probe('none', [line(['clone3', 0, 0])])).toEqual(['errno 22']);
  });

  it.skipIf(process.arch !== 'x64')('answers ENOSYS in the x32 range and kills what comes by way of i386', () => {
    const getpid = ids.get('getpid') ?? 0;
    expect(probe('default', [`call ${getpid | 0x40000000}`, 'call 1073742344', 'call 3221225511', 'int80 20'])).toEqual([ENOSYS, ENOSYS, ENOSYS, 'signal 31']);
    expect(probe('none', ['int80 20'])[0]).not.toBe('signal 31');
  });

  it('lets through what runtimes need, by both variants', () => {
    for (const filter of ['default', 'no-inet'])
      for (const [index, answer] of probe(filter, ALLOWED.map(line)).entries()) expect([filter, ALLOWED[index], answer]).toEqual([filter, ALLOWED[index], expect.stringMatching(/^ok/)]);
  });

  it('makes inet sockets unless they are closed', () => {
    const lines = ([['socket', 2, 1, 0], ['socket', 10, 2, 0], ['socket', 2, 1, 6]] as Attempt[]).map(line);
    expect(probe('default', lines)).toEqual(lines.map(() => expect.stringMatching(/^ok/)));
    expect(probe('no-inet', lines)).toEqual(lines.map(() => EPERM));
  });

  it('keeps a filter in force beneath every later one', () => {
    const filters = (command: string[]) =>
      Number(execFileSync(command[0] ?? '', [...command.slice(1), '/bin/grep', '^Seccomp_filters:', '/proc/self/status'], { encoding: 'utf8' }).split('\t')[1]);
    const before = filters([loader, 'none']);
    expect(filters([loader, 'no-inet'])).toBe(before + 1);
    expect(filters([loader, 'no-inet', loader, 'default'])).toBe(before + 2);
    const inet = execFileSync(loader, ['no-inet', loader, 'default', prober], { input: `${line(['socket', 2, 1, 0])}\n`, encoding: 'utf8' });
    expect(inet.trim()).toBe(EPERM);
  });
});

describe("a caller's own profile", () => {
  const target = { architecture: process.arch === 'arm64' ? 'arm64' : 'x64', kernel: '6.1' } as const;
  const write = (document: object): string => {
    const path = join(directory, `${Math.random()}.json`);
    writeFileSync(path, JSON.stringify(document));
    return path;
  };
  const install = async (document: object): Promise<string> => {
    const path = join(directory, `${Math.random()}.bpf`);
    writeFileSync(path, encodeProgram((await loadProfile(write(document), target)).program));
    return path;
  };

  it('does in the kernel what it says, a refusal beside a permission of the same call included', async () => {
    const filter = await install({
      defaultAction: 'SCMP_ACT_ALLOW',
      syscalls: [
        { names: ['uname'], action: 'SCMP_ACT_ERRNO', errnoRet: 13 },
        { names: ['ioctl'], action: 'SCMP_ACT_ALLOW' },
        { names: ['ioctl'], action: 'SCMP_ACT_ERRNO', errnoRet: 7, args: [{ index: 1, value: 0xffffffff, valueTwo: 0x5412, op: 'SCMP_CMP_MASKED_EQ' }] },
        { names: ['sched_yield'], action: 'SCMP_ACT_KILL_PROCESS' },
      ],
    });
    const lines = ([['uname', 0], ['ioctl', -1, 0x5412, 0], ['ioctl', -1, 0xff_0000_5412n, 0], ['ioctl', -1, 0x5413, 0], ['sched_yield'], ['getpid']] as Attempt[]).map(line);
    expect(probe(filter, lines)).toEqual(['errno 13', 'errno 7', 'errno 7', 'errno 9', 'signal 31', expect.stringMatching(/^ok/)]);
  });

  it('must let the launcher finish', async () => {
    await expect(loadProfile(write({ defaultAction: 'SCMP_ACT_ERRNO' }), target)).rejects.toThrow(/must allow prctl/);
    const syscalls = [{ names: ['prctl', 'exit_group'], action: 'SCMP_ACT_ALLOW' }];
    await expect(loadProfile(write({ defaultAction: 'SCMP_ACT_ERRNO', syscalls }), target)).rejects.toThrow(/^seccomp\.profile .*must allow execve/);
  });

  it('is an error with its path when it cannot be read', async () => {
    await expect(loadProfile('/nonexistent/profile.json', target)).rejects.toThrow(/^seccomp\.profile \/nonexistent\/profile\.json: ENOENT/);
  });
});
