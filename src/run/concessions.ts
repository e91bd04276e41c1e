import type { FailureRecord } from '../launcher/records.js';
import type { Fence } from './result.js';

/** Shortages pass: a fence is not given up for one. */
const SHORTAGES = ['host-out-of-memory', 'host-out-of-descriptors', 'host-out-of-processes', 'limits-too-small'];

/** clone3 does not say which namespace it refused: what is lost with each of these grows, and the first that works stays. */
const NAMESPACE_TRIALS: readonly (readonly Fence[])[] = [
  ['network'],
  ['identity'],
  ['network', 'identity'],
  // Those that belong to no fence (ipc, uts, cgroup) go with the last of the others.
  ['network', 'identity', 'pids', 'filesystem'],
];

/** The fences that a best-effort run gives up, one failed launch after the other. */
export class Concessions {
  /** Each with the code of the error that it was given up for. */
  readonly dropped: Map<Fence, string>;
  /** Those that later runs of this host need not try again. */
  readonly lasting = new Map<Fence, string>();
  #nextTrial = 0;
  #onTrial: readonly Fence[] = [];

  constructor(known: ReadonlyMap<Fence, string>) {
    this.dropped = new Map(known);
  }

  /** Gives up a fence for which the plan found no place: it may find one the next time. */
  concede(fence: Fence, code: string): boolean {
    if (this.dropped.has(fence)) return false;
    this.dropped.set(fence, code);
    return true;
  }

  /**
   * Gives up what a failed launch was about. False when that is no fence, but what the caller granted, the command itself
   * or a shortage; and when it is given up already.
   */
  concedeTo(record: FailureRecord, code: string): boolean {
    if (SHORTAGES.includes(code)) return false;
    if (isOfNamespaces(record, code)) return this.#tryNext(code, record.stage === 'seal');
    const fences = fencesOf(record, code).filter((fence) => !this.dropped.has(fence));
    for (const fence of fences) {
      this.dropped.set(fence, code);
      // A cgroup that cannot be used now may be delegated later.
      if (code !== 'cgroup-unavailable') this.lasting.set(fence, code);
    }
    return fences.length > 0;
  }

  #tryNext(code: string, last: boolean): boolean {
    for (const fence of this.#onTrial) {
      this.dropped.delete(fence);
      this.lasting.delete(fence);
    }
    this.#onTrial = [];
    if (last) this.#nextTrial = Math.max(this.#nextTrial, NAMESPACE_TRIALS.length - 1);
    while (this.#nextTrial < NAMESPACE_TRIALS.length) {
      const trial = NAMESPACE_TRIALS[this.#nextTrial++] ?? [];
      const fences = trial.filter((fence) => !this.dropped.has(fence));
      if (fences.length === 0) continue;
      this.#onTrial = fences;
      for (const fence of fences) {
        this.dropped.set(fence, code);
        this.lasting.set(fence, code);
      }
      return true;
    }
    return false;
  }
}

/** The fence that this failure shows not to be had; null when it is about something else, or cannot be told. */
export function fenceOf(record: FailureRecord, code: string): Fence | null {
  if (SHORTAGES.includes(code) || isOfNamespaces(record, code)) return null;
  const [fence, ...others] = fencesOf(record, code);
  return fence !== undefined && others.length === 0 ? fence : null;
}

function isOfNamespaces({ stage, detail }: FailureRecord, code: string): boolean {
  return (stage === 'namespaces' && code !== 'cgroup-unavailable') || (stage === 'seal' && detail.startsWith('unshare'));
}

function fencesOf({ stage, detail }: FailureRecord, code: string): readonly Fence[] {
  switch (stage) {
    case 'cgroup':
    case 'attach':
      if (/\bpids\./.test(detail)) return ['pids'];
      if (/\bmemory\./.test(detail)) return ['memory'];
      if (/\bcpu\./.test(detail)) return ['cpu'];
      return ['pids', 'memory', 'cpu'];
    case 'namespaces':
      return ['pids', 'memory', 'cpu'];
    case 'id-map':
    case 'identity':
      return ['identity'];
    case 'landlock':
      return detail.startsWith('openat2') ? [] : ['landlock'];
    case 'system-calls':
      return ['syscalls'];
    case 'loopback':
    case 'egress':
      return ['network'];
    case 'hostname':
    case 'root':
    case 'pivot':
      return ['filesystem'];
    case 'sources':
      // Otherwise it is what was granted, which is no reason to open everything.
      return code === 'user-namespaces-disabled' ? ['filesystem'] : [];
    case 'view':
    case 'proc':
      return code === 'user-namespaces-restricted' ? ['filesystem'] : [];
    default:
      return [];
  }
}
