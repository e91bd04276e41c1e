import { stages } from './stages.js';
import type { Stage } from './stages.js';

/** The wire format of `native/shared/protocol.h`, as far as records and commands go. */
export const RECORD_BYTES = 232;
const COMMAND_BYTES = 8;
const DETAIL_AT = 72;
const UNKNOWN = 0xffff_ffff_ffff_ffffn;

const KIND = { failure: 1, ready: 2, ended: 3, sockets: 4 } as const;
const COMMAND = { signal: 1, kill: 2 } as const;

/** What the launcher says it verified for this very run; bit n of the record's word is the n-th name. */
export const fenceBits = [
  'privileges',
  'identity',
  'filesystem',
  'network',
  'process-tree',
  'process-limit',
  'memory',
  'cpu',
  'proc',
  'user-namespace',
  'system-calls',
  'landlock',
  'cpu-time',
] as const;
export type FenceBit = (typeof fenceBits)[number];

/** Why a sandbox ended, by the launcher's account; the number on the wire is the index. */
export const endCauses = [
  'guest-ended',
  'killed',
  'deadline',
  'out-of-memory',
  'cpu-limit',
  'host-gone',
  'init-died',
] as const;
export type EndCause = (typeof endCauses)[number];

/** A stage failed and nothing of the guest ran. */
export interface FailureRecord {
  kind: 'failure';
  stage: Stage;
  /** A positive errno; 0 where no system call failed. */
  errno: number;
  /** `syscall subject`, for example `openat2 /srv/data`. */
  detail: string;
}

/** Everything stands, execve comes next. */
export interface ReadyRecord {
  kind: 'ready';
  fences: ReadonlySet<FenceBit>;
  /** The version of Landlock in force; 0 without it. */
  landlockAbi: number;
}

/** The sockets of an allowlisted network; their descriptors come along, in the order of native/shared/protocol.h. */
export interface SocketsRecord {
  kind: 'sockets';
  /** True where there is a listener for IPv6 behind each of those for IPv4. */
  hasIpv6: boolean;
}

/** The guest is gone, its cgroup is read and removed. */
export interface EndedRecord {
  kind: 'ended';
  /** The errno of removing the run's cgroup: 0 when it is gone. */
  removalErrno: number;
  cause: EndCause;
  /** As of waitpid(2); null where the guest never started or did not end by itself. */
  waitStatus: number | null;
  usage: KernelUsage;
}

/** The run's counters; null where this host does not tell. */
export interface KernelUsage {
  cpuUserUs: number | null;
  cpuSystemUs: number | null;
  peakMemoryBytes: number | null;
  peakPids: number | null;
  oomKills: number | null;
  pidsRefused: number | null;
}

export type LauncherRecord = FailureRecord | ReadyRecord | SocketsRecord | EndedRecord;

/** A message that is not a record: the launcher is of another version, or it is broken. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
  readonly code = 'launcher-protocol';
}

/** Reads one message of the launcher. @throws RecordError when it is anything but a whole record of a known kind. */
export function decodeRecord(bytes: Uint8Array): LauncherRecord {
  if (bytes.length !== RECORD_BYTES) throw new RecordError(`a record has ${RECORD_BYTES} bytes, got ${bytes.length}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kind = view.getUint32(0, true);
  switch (kind) {
    case KIND.failure:
      return {
        kind: 'failure',
        stage: named(stages, view.getUint32(4, true), 'stage'),
        errno: decodeErrno(view),
        detail: decodeDetail(bytes),
      };
    case KIND.ready:
      return { kind: 'ready', fences: decodeFences(view.getUint32(12, true)), landlockAbi: decodeAbi(view) };
    case KIND.sockets:
      return { kind: 'sockets', hasIpv6: view.getInt32(16, true) === 1 };
    case KIND.ended: {
      const waitStatus = view.getInt32(16, true);
      return {
        kind: 'ended',
        removalErrno: decodeErrno(view),
        cause: named(endCauses, view.getUint32(20, true), 'cause'),
        waitStatus: waitStatus < 0 ? null : waitStatus,
        usage: decodeUsage(view),
      };
    }
    default:
      throw new RecordError(`unknown record kind ${kind}`);
  }
}

/** The command that sends a signal to the guest process. */
export function signalCommand(signal: number): Uint8Array {
  return encodeCommand(COMMAND.signal, signal);
}

/** The command that kills the whole sandbox at once. */
export function killCommand(): Uint8Array {
  return encodeCommand(COMMAND.kill, 0);
}

function encodeCommand(kind: number, value: number): Uint8Array {
  const bytes = new Uint8Array(COMMAND_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, kind, true);
  view.setUint32(4, value, true);
  return bytes;
}

function named<T extends string>(names: readonly T[], index: number, what: string): T {
  const name = names[index];
  if (name === undefined) throw new RecordError(`unknown ${what} ${index}`);
  return name;
}

function decodeErrno(view: DataView): number {
  const errno = view.getInt32(8, true);
  if (errno < 0) throw new RecordError(`errno must not be negative, got ${errno}`);
  return errno;
}

function decodeAbi(view: DataView): number {
  const abi = view.getInt32(16, true);
  if (abi < 0) throw new RecordError(`the ABI of Landlock must not be negative, got ${abi}`);
  return abi;
}

function decodeFences(word: number): ReadonlySet<FenceBit> {
  if (word >>> fenceBits.length !== 0) throw new RecordError(`unknown fence bits 0x${word.toString(16)}`);
  return new Set(fenceBits.filter((_, bit) => (word & (1 << bit)) !== 0));
}

function decodeUsage(view: DataView): KernelUsage {
  const counter = (index: number): number | null => {
    const value = view.getBigUint64(24 + 8 * index, true);
    return value === UNKNOWN ? null : Number(value);
  };
  return {
    cpuUserUs: counter(0),
    cpuSystemUs: counter(1),
    peakMemoryBytes: counter(2),
    peakPids: counter(3),
    oomKills: counter(4),
    pidsRefused: counter(5),
  };
}

function decodeDetail(bytes: Uint8Array): string {
  const end = bytes.indexOf(0, DETAIL_AT);
  if (end < 0) throw new RecordError('the detail of a record must end with NUL');
  // A long path is cut at a byte, which may lie inside a character.
  return Buffer.from(bytes.subarray(DETAIL_AT, end)).toString('utf8').replace(/\uFFFD+$/, '…');
}
