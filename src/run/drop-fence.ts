import type { FailureRecord } from '../launcher/records.js';
import type { Fence } from './result.js';

/** Shortages pass: a fence is not given up for one. */
const SHORTAGES = ['host-out-of-memory', 'host-out-of-descriptors', 'host-out-of-processes', 'limits-too-small'];
/** clone3 does not say which namespace it refused: one after the other, the filesystem last. */
const NAMESPACE_FENCES: readonly Fence[] = ['network', 'identity', 'processes', 'filesystem'];

/**
 * The fences that a best-effort run gives up after this failure before it tries again; empty when the failure is none of
 * a fence: what the caller granted, the command itself, a shortage.
 */
export function fencesToDrop(record: FailureRecord, code: string, dropped: ReadonlyMap<Fence, string>): Fence[] {
  if (SHORTAGES.includes(code)) return [];
  const left = candidates(record, code).filter((fence) => !dropped.has(fence));
  return record.stage === 'namespaces' && code !== 'cgroup-unavailable' ? left.slice(0, 1) : left;
}

function candidates({ stage, detail }: FailureRecord, code: string): readonly Fence[] {
  switch (stage) {
    case 'cgroup':
    case 'attach':
      if (/\bpids\./.test(detail)) return ['processes'];
      if (/\bmemory\./.test(detail)) return ['memory'];
      if (/\bcpu/.test(detail)) return ['cpu'];
      return ['processes', 'memory', 'cpu'];
    case 'namespaces':
      return code === 'cgroup-unavailable' ? ['processes', 'memory', 'cpu'] : NAMESPACE_FENCES;
    case 'id-map':
    case 'identity':
      return ['identity'];
    case 'loopback':
      return ['network'];
    case 'hostname':
    case 'root':
    case 'pivot':
      return ['filesystem'];
    case 'view':
    case 'proc':
      // Anything else is about what was granted, or about its size.
      return code === 'user-namespaces-restricted' ? ['filesystem'] : [];
    default:
      return [];
  }
}
