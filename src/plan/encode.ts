import type { Controller, Mount, Plan } from './plan.js';

// The layout is that of native/shared/protocol.h; test/plan/encode.test.ts reads it back by that description.
const MAGIC = 0x31464752;
const VERSION = 4;

const NAMESPACE_BITS = { user: 1, mount: 2, pid: 4, network: 8, ipc: 16, uts: 32, cgroup: 64 } as const;
const PROC_OPTIONAL = 128;
const EGRESS = 256;
const LANDLOCK = 512;
const LANDLOCK_NO_TCP = 1024;
const LANDLOCK_NO_ABSTRACT = 2048;
const FILTERS = { none: 0, default: 1, 'no-inet': 2, 'no-namespaces': 4, 'no-namespaces-inet': 5 } as const;
const HAS_GRANTS = 4096;
const PORT_IPV4 = 1 << 16;
const PORT_IPV6 = 1 << 17;
const OWN_FILTER = 3;
const CONTROLLER_BITS: Record<Controller, number> = { memory: 1, pids: 2, cpu: 4, cpuacct: 8 };
const MOUNT_KINDS = { bind: 1, device: 1, scratch: 2, directory: 3, symlink: 4, file: 5, pin: 6 } as const;
const WRITABLE = 1;
const ID_MAPPED = 2;
const ID_MAP_OPTIONAL = 4;
const DEVICE_NODE = 8;
const MAY_BE_MISSING = 16;

/**
 * The plan as the launcher reads it.
 *
 * @throws RangeError that names the field when a string holds a NUL or a number is none that the layout can carry.
 */
export function encodePlan(plan: Plan): Uint8Array {
  const writer = new Writer(estimate(plan));
  writer.u32(MAGIC, 'magic');
  writer.u32(VERSION, 'version');
  writer.u32(flagsOf(plan), 'namespaces');
  const { identity, limits, cgroup } = plan;
  writer.u32(identity.insideUid, 'insideUid');
  writer.u32(identity.insideGid, 'insideGid');
  writer.u32(identity.outsideUid, 'outsideUid');
  writer.u32(identity.outsideGid, 'outsideGid');
  writer.u64(limits.memoryBytes, 'memoryBytes');
  writer.u64(limits.pids, 'pids');
  writer.u64(limits.cpuQuotaUs, 'cpuQuotaUs');
  writer.u64(limits.cpuTimeMs, 'cpuTimeMs');
  writer.u64(limits.openFiles, 'openFiles');
  writer.u64(limits.fileSizeBytes, 'fileSizeBytes');
  writer.u64(limits.scratchBytes, 'scratchBytes');
  writer.u64(limits.scratchInodes, 'scratchInodes');
  writer.u64(limits.deadlineMs, 'deadlineMs');
  writer.u32(cgroup?.version ?? 0, 'cgroup.version');
  writer.text(cgroup?.name ?? '', 'cgroup.name');
  writer.u32(cgroup?.parents.length ?? 0, 'cgroup.parents');
  for (const { controllers, directory } of cgroup?.parents ?? []) {
    writer.u32(controllers.reduce((bits, name) => bits | CONTROLLER_BITS[name], 0), 'cgroup.controllers');
    writer.text(directory, 'cgroup.directory');
  }
  writer.text(plan.executable, 'executable');
  writer.text(plan.cwd, 'cwd');
  writer.text(plan.hostname, 'hostname');
  writer.u32(plan.argv.length, 'argv');
  for (let index = 0; index < plan.argv.length; index++) writer.text(plan.argv[index] ?? '', index === 0 ? 'command' : `args[${index - 1}]`);
  writeEnvironment(writer, plan.env);
  writer.u32(plan.egressPorts.length, 'egressPorts');
  for (const { port, ipv4, ipv6 } of plan.egressPorts) writer.u32(port | (ipv4 ? PORT_IPV4 : 0) | (ipv6 ? PORT_IPV6 : 0), 'egressPorts');
  const { filter } = plan;
  writer.u32(typeof filter === 'string' ? FILTERS[filter] : OWN_FILTER, 'filter');
  writer.blob(typeof filter === 'string' ? new Uint8Array() : filter.program);
  writer.u32(plan.mounts.length, 'mounts');
  for (const mount of plan.mounts) writeMount(writer, mount);
  return writer.bytes();
}

function writeEnvironment(writer: Writer, env: Record<string, string>): void {
  const names = Object.keys(env);
  writer.u32(names.length, 'env');
  for (const name of names) {
    if (name === '' || name.includes('=')) throw new RangeError(`env.${name} must have a name without "="`);
    writer.text(`${name}=${env[name] ?? ''}`, `env.${name}`);
  }
}

function writeMount(writer: Writer, mount: Mount): void {
  writer.u32(MOUNT_KINDS[mount.kind], 'mount.kind');
  writer.u32(mountFlags(mount), 'mount.flags');
  writer.u32(mountMode(mount), 'mount.mode');
  writer.text(mount.path, mount.path);
  writer.text(mountSource(mount), mount.path);
}

function mountFlags(mount: Mount): number {
  if (mount.kind === 'device') return DEVICE_NODE;
  if (mount.kind !== 'bind') return 0;
  const idMap = { none: 0, required: ID_MAPPED, optional: ID_MAPPED | ID_MAP_OPTIONAL }[mount.idMap];
  return (mount.writable ? WRITABLE : 0) | idMap | (mount.mayBeMissing ? MAY_BE_MISSING : 0);
}

function mountMode(mount: Mount): number {
  if (mount.kind === 'device') return mount.minor;
  return mount.kind === 'scratch' || mount.kind === 'directory' || mount.kind === 'file' ? mount.mode : 0;
}

function mountSource(mount: Mount): string {
  if (mount.kind === 'bind' || mount.kind === 'device') return mount.source;
  if (mount.kind === 'symlink') return mount.target;
  return mount.kind === 'file' ? mount.content : '';
}

function flagsOf(plan: Plan): number {
  let flags = (plan.procOptional ? PROC_OPTIONAL : 0) | (plan.hasAllowlist ? EGRESS : 0) | (plan.hasGrants ? HAS_GRANTS : 0);
  if (plan.landlock !== null) {
    const { tcp, abstractSockets } = plan.landlock;
    flags |= LANDLOCK | (tcp ? 0 : LANDLOCK_NO_TCP) | (abstractSockets ? 0 : LANDLOCK_NO_ABSTRACT);
  }
  for (const [name, bit] of Object.entries(NAMESPACE_BITS)) {
    if (plan.namespaces[name as keyof typeof NAMESPACE_BITS]) flags |= bit;
  }
  return flags;
}

/** An upper bound in bytes: a UTF-16 unit is at most three of UTF-8. */
function estimate(plan: Plan): number {
  let characters = plan.executable.length + plan.cwd.length + plan.hostname.length + (plan.cgroup?.name.length ?? 0);
  let strings = 4 + plan.argv.length;
  for (const { directory } of plan.cgroup?.parents ?? []) characters += directory.length + 16;
  for (const argument of plan.argv) characters += argument.length;
  for (const name in plan.env) {
    characters += name.length + 1 + (plan.env[name]?.length ?? 0);
    strings++;
  }
  for (const mount of plan.mounts) {
    characters += mount.path.length + mountSource(mount).length;
    strings += 5;
  }
  const fixed = 256 + 4 * plan.egressPorts.length + (typeof plan.filter === 'string' ? 0 : plan.filter.program.length);
  return fixed + strings * 5 + characters * 3;
}

class Writer {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(capacity: number) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
  }

  u32(value: number, field: string): void {
    if (!Number.isInteger(value) || value < 0 || value > 0xffffffff) throw new RangeError(`${field} (${value}) must fit into 32 bits`);
    this.#at = this.#buffer.writeUInt32LE(value, this.#at);
  }

  u64(value: number, field: string): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${field} (${value}) must be a safe integer >= 0`);
    this.#at = this.#buffer.writeUInt32LE(value % 0x100000000, this.#at);
    this.#at = this.#buffer.writeUInt32LE(Math.floor(value / 0x100000000), this.#at);
  }

  /** Length, bytes, and a NUL that is not counted. */
  text(value: string, field: string): void {
    if (value.includes('\0')) throw new RangeError(`${field} must not contain a NUL character`);
    const length = this.#buffer.write(value, this.#at + 4, 'utf8');
    this.#buffer.writeUInt32LE(length, this.#at);
    this.#buffer[this.#at + 4 + length] = 0;
    this.#at += length + 5;
  }

  /** As text, but of any bytes. */
  blob(value: Uint8Array): void {
    this.#at = this.#buffer.writeUInt32LE(value.length, this.#at);
    this.#buffer.set(value, this.#at);
    this.#buffer[this.#at + value.length] = 0;
    this.#at += value.length + 1;
  }

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#at);
  }
}
