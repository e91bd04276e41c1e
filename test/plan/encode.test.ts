import { readFileSync } from 'node:fs';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { encodePlan } from '../../src/plan/encode.js';
import type { Mount, Plan } from '../../src/plan/plan.js';

/** Everything that the layout can carry, once. */
const full: Plan = {
  namespaces: { user: true, mount: true, pid: true, network: true, ipc: true, uts: true, cgroup: true },
  procOptional: true,
  identity: { insideUid: 1000, insideGid: 1001, outsideUid: 0x70000001, outsideGid: 0xfffffffe },
  limits: {
    memoryBytes: 2 ** 40 + 7,
    pids: 64,
    cpuQuotaUs: 50_000,
    cpuTimeMs: 1500,
    openFiles: 1024,
    fileSizeBytes: 0,
    scratchBytes: 2 ** 28,
    scratchInodes: 4096,
    deadlineMs: 17_000,
  },
  cgroup: {
    version: 1,
    name: 'ringfence-1-2-3-ab',
    parents: [
      { controllers: ['memory'], directory: '/sys/fs/cgroup/memory/a' },
      { controllers: ['cpu', 'cpuacct'], directory: '/sys/fs/cgroup/cpu,cpuacct' },
      { controllers: ['pids'], directory: '/sys/fs/cgroup/pids' },
    ],
  },
  executable: '/usr/bin/node',
  cwd: '/tmp/größe',
  hostname: 'ringfence',
  argv: ['node', '-e', '', 'line\nbreak', '💡'],
  env: { PATH: '/usr/bin', EMPTY: '', EQUALS: 'a=b' },
  hasAllowlist: true,
  egressPorts: [{ port: 80, ipv4: true, ipv6: false }, { port: 443, ipv4: true, ipv6: true }, { port: 65535, ipv4: false, ipv6: true }],
  filter: { program: Uint8Array.from([6, 0, 0, 0, 0, 0, 0xff, 0x7f]) },
  landlock: { tcp: false, abstractSockets: false },
  hasGrants: false,
  mounts: [
    { kind: 'symlink', path: '/bin', target: 'usr/bin' },
    { kind: 'device', path: '/dev/null', source: '/dev/null', minor: 3 },
    { kind: 'file', path: '/etc/passwd', mode: 0o644, content: 'guest:x:1000:1000::/:/bin/sh\n' },
    { kind: 'directory', path: '/srv', mode: 0o755 },
    { kind: 'scratch', path: '/tmp', mode: 0o1777 },
    { kind: 'bind', path: '/usr', source: '/usr', writable: false, idMap: 'none', mayBeMissing: true },
    { kind: 'bind', path: '/w/a b', source: '/w/a b', writable: true, idMap: 'required', mayBeMissing: false },
    { kind: 'bind', path: '/w/r', source: '/w/r', writable: false, idMap: 'optional', mayBeMissing: false },
  ],
};

/** Reads a plan by the description in native/shared/protocol.h, and by nothing else. */
function decode(bytes: Uint8Array) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const u32 = () => view.getUint32((at += 4) - 4, true);
  const u64 = () => view.getBigUint64((at += 8) - 8, true);
  const blob = () => {
    const length = u32();
    const value = Uint8Array.from(bytes.subarray(at, at + length));
    at += length;
    expect(view.getUint8(at++)).toBe(0);
    return value;
  };
  const text = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(blob());
  const list = <T>(read: () => T): T[] => Array.from({ length: u32() }, read);
  const plan = {
    magic: u32(),
    version: u32(),
    flags: u32(),
    ids: [u32(), u32(), u32(), u32()],
    limits: Array.from({ length: 9 }, u64),
    cgroupVersion: u32(),
    cgroupName: text(),
    parents: list(() => ({ controllers: u32(), directory: text() })),
    executable: text(),
    cwd: text(),
    hostname: text(),
    argv: list(text),
    env: list(text),
    ports: list(u32),
    filter: u32(),
    program: blob(),
    mounts: list(() => ({ kind: u32(), flags: u32(), mode: u32(), path: text(), source: text() })),
  };
  expect(at).toBe(bytes.byteLength);
  return plan;
}

/** The value of an enumerator or constant of protocol.h, so that the two sides cannot drift apart unseen. */
function nativeValue(name: string): number {
  const header = readFileSync(new URL('../../native/shared/protocol.h', import.meta.url), 'utf8');
  const expression = new RegExp(`\\b${name} = ([^,;\\n]+)[,;]`).exec(header)?.[1];
  if (expression === undefined) throw new Error(`protocol.h has no ${name}`);
  const shift = /^1u << (\d+)$/.exec(expression);
  return shift === null ? Number(expression) : 2 ** Number(shift[1]);
}

describe('encodePlan', () => {
  it('writes every field where protocol.h says it is', () => {
    const read = decode(encodePlan(full));
    expect(read).toEqual({
      magic: 0x31464752,
      version: 4,
      flags: 4095,
      ids: [1000, 1001, 0x70000001, 0xfffffffe],
      limits: [2n ** 40n + 7n, 64n, 50_000n, 1500n, 1024n, 0n, 2n ** 28n, 4096n, 17_000n],
      cgroupVersion: 1,
      cgroupName: 'ringfence-1-2-3-ab',
      parents: [
        { controllers: 1, directory: '/sys/fs/cgroup/memory/a' },
        { controllers: 12, directory: '/sys/fs/cgroup/cpu,cpuacct' },
        { controllers: 2, directory: '/sys/fs/cgroup/pids' },
      ],
      executable: '/usr/bin/node',
      cwd: '/tmp/größe',
      hostname: 'ringfence',
      argv: ['node', '-e', '', 'line\nbreak', '💡'],
      env: ['PATH=/usr/bin', 'EMPTY=', 'EQUALS=a=b'],
      ports: [0x10000 + 80, 0x30000 + 443, 0x20000 + 65535],
      filter: 3,
      program: Uint8Array.from([6, 0, 0, 0, 0, 0, 0xff, 0x7f]),
      mounts: [
        { kind: 4, flags: 0, mode: 0, path: '/bin', source: 'usr/bin' },
        { kind: 1, flags: 8, mode: 3, path: '/dev/null', source: '/dev/null' },
        { kind: 5, flags: 0, mode: 0o644, path: '/etc/passwd', source: 'guest:x:1000:1000::/:/bin/sh\n' },
        { kind: 3, flags: 0, mode: 0o755, path: '/srv', source: '' },
        { kind: 2, flags: 0, mode: 0o1777, path: '/tmp', source: '' },
        { kind: 1, flags: 16, mode: 0, path: '/usr', source: '/usr' },
        { kind: 1, flags: 3, mode: 0, path: '/w/a b', source: '/w/a b' },
        { kind: 1, flags: 6, mode: 0, path: '/w/r', source: '/w/r' },
      ],
    });
  });

  it('says that there are grants', () => {
    expect(decode(encodePlan({ ...full, hasGrants: true })).flags).toBe(4095 | 4096);
    expect(nativeValue('kHasGrants')).toBe(4096);
  });

  it('gives the same bytes as ever', () => {
    const golden = readFileSync(new URL('plan.golden.hex', import.meta.url), 'utf8').replace(/\s/g, '');
    expect(Buffer.from(encodePlan(full)).toString('hex')).toBe(golden);
  });

  it('uses the numbers of protocol.h', () => {
    expect(nativeValue('kPlanMagic')).toBe(0x31464752);
    expect(nativeValue('kPlanVersion')).toBe(4);
    expect(['kPortIpv4', 'kPortIpv6'].map(nativeValue)).toEqual([0x10000, 0x20000]);
    const flags = ['kUserNamespace', 'kMountNamespace', 'kPidNamespace', 'kNetworkNamespace', 'kIpcNamespace', 'kUtsNamespace', 'kCgroupNamespace', 'kProcOptional', 'kEgress'];
    expect(flags.map(nativeValue)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256]);
    expect(['kLandlock', 'kLandlockNoTcp', 'kLandlockNoAbstract'].map(nativeValue)).toEqual([512, 1024, 2048]);
    const filters = ['kNone', 'kDefault', 'kNoInet', 'kOwn', 'kNoNamespaces', 'kNoNamespacesInet'];
    expect(filters.map(nativeValue)).toEqual([0, 1, 2, 3, 4, 5]);
    const controllers = ['kMemoryController', 'kPidsController', 'kCpuController', 'kCpuAccountController'];
    expect(controllers.map(nativeValue)).toEqual([1, 2, 4, 8]);
    expect(['kBind', 'kScratch', 'kDirectory', 'kSymlink', 'kFile'].map(nativeValue)).toEqual([1, 2, 3, 4, 5]);
    const mountFlags = ['kWritable', 'kIdMapped', 'kIdMapOptional', 'kDeviceNode', 'kMayBeMissing'];
    expect(mountFlags.map(nativeValue)).toEqual([1, 2, 4, 8, 16]);
  });

  it('sets one bit per namespace, and none for what is left out', () => {
    const none = { user: false, mount: false, pid: false, network: false, ipc: false, uts: false, cgroup: false };
    const bare = { ...full, procOptional: false, hasAllowlist: false, egressPorts: [], landlock: null };
    expect(decode(encodePlan({ ...bare, namespaces: none })).flags).toBe(0);
    expect(decode(encodePlan({ ...bare, namespaces: { ...none, network: true } })).flags).toBe(8);
  });

  it('tells Landlock with TCP or abstract sockets from Landlock without, and from none', () => {
    expect(decode(encodePlan({ ...full, landlock: null })).flags).toBe(511);
    expect(decode(encodePlan({ ...full, landlock: { tcp: true, abstractSockets: false } })).flags).toBe(511 + 512 + 2048);
    expect(decode(encodePlan({ ...full, landlock: { tcp: false, abstractSockets: true } })).flags).toBe(511 + 512 + 1024);
  });

  it('tells an allowlist without ports, which has a resolver and nothing else, from none', () => {
    expect(decode(encodePlan({ ...full, hasAllowlist: true, egressPorts: [] }))).toMatchObject({ flags: 4095, ports: [] });
    expect(decode(encodePlan({ ...full, hasAllowlist: false, egressPorts: [] }))).toMatchObject({ flags: 4095 - 256, ports: [] });
  });

  it.each([['none', 0], ['default', 1], ['no-inet', 2], ['no-namespaces', 4], ['no-namespaces-inet', 5]] as const)('writes no program with the filter %s', (filter, number) => {
    expect(decode(encodePlan({ ...full, filter }))).toMatchObject({ filter: number, program: new Uint8Array() });
  });

  it('writes version 0 and no parents where there is no cgroup', () => {
    expect(decode(encodePlan({ ...full, cgroup: null }))).toMatchObject({ cgroupVersion: 0, cgroupName: '', parents: [] });
  });

  it.each<[string, Partial<Plan>]>([
    ['args[1]', { argv: ['node', 'a', 'b\0c'] }],
    ['command', { argv: ['no\0de'] }],
    ['cwd', { cwd: '/a\0b' }],
    ['executable', { executable: '/a\0' }],
    ['env.SECRET', { env: { SECRET: 'a\0b' } }],
    ['/etc/x', { mounts: [{ kind: 'file', path: '/etc/x', mode: 0, content: '\0' }] }],
  ])('names %s when it holds a NUL', (field, wrong) => {
    expect(() => encodePlan({ ...full, ...wrong })).toThrow(new RangeError(`${field} must not contain a NUL character`));
  });

  it('does not show the value of a variable in its error', () => {
    expect(() => encodePlan({ ...full, env: { TOKEN: 'hunter2\0' } })).not.toThrow(/hunter2/);
  });

  it.each([-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY])('refuses %s as a limit', (pids) => {
    expect(() => encodePlan({ ...full, limits: { ...full.limits, pids } })).toThrow(/^pids \(.*\) must be a safe integer >= 0$/);
  });

  it('refuses a name that would make two variables of one', () => {
    expect(() => encodePlan({ ...full, env: { 'A=B': 'c' } })).toThrow(/env\.A=B/);
  });

  it('brings back any strings, in order', () => {
    // NUL and lone surrogates are refused before a plan is made.
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !/[\0\p{Surrogate}]/u.test(value));
    fc.assert(
      fc.property(fc.array(text, { minLength: 1 }), text, fc.array(fc.tuple(text, text)), (argv, cwd, links) => {
        const mounts = links.map(([path, target]): Mount => ({ kind: 'symlink', path, target }));
        const read = decode(encodePlan({ ...full, argv, cwd, mounts }));
        expect(read.argv).toEqual(argv);
        expect(read.cwd).toBe(cwd);
        expect(read.mounts.map(({ path, source }) => [path, source])).toEqual(links);
      }),
    );
  });
});
