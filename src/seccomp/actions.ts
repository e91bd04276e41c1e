/** What a filter answers, as the kernel's numbers: the action in the upper half, its data (an errno) in the lower. */
export const ALLOW = 0x7fff0000;
export const LOG = 0x7ffc0000;
export const ERRNO = 0x00050000;
export const TRAP = 0x00030000;
export const KILL_THREAD = 0x00000000;
export const KILL_PROCESS = 0x80000000;

export const EPERM = 1;
export const ENOSYS = 38;

export type ActionName =
  | 'SCMP_ACT_ALLOW'
  | 'SCMP_ACT_LOG'
  | 'SCMP_ACT_ERRNO'
  | 'SCMP_ACT_TRAP'
  | 'SCMP_ACT_KILL'
  | 'SCMP_ACT_KILL_THREAD'
  | 'SCMP_ACT_KILL_PROCESS';

/** Actions of the format that need a tracer or a listener, which a sandbox does not have. */
export const REFUSED_ACTIONS: readonly string[] = ['SCMP_ACT_TRACE', 'SCMP_ACT_NOTIFY'];

export const ACTIONS: Readonly<Record<ActionName, number>> = {
  SCMP_ACT_ALLOW: ALLOW,
  SCMP_ACT_LOG: LOG,
  SCMP_ACT_ERRNO: ERRNO,
  SCMP_ACT_TRAP: TRAP,
  SCMP_ACT_KILL: KILL_THREAD,
  SCMP_ACT_KILL_THREAD: KILL_THREAD,
  SCMP_ACT_KILL_PROCESS: KILL_PROCESS,
};

/** Higher is stricter; the kernel orders the answers of several filters the same way. Data does not count. */
export function strictness(action: number): number {
  const bare = ((action & 0xffff0000) >>> 0) as number;
  return [ALLOW, LOG, ERRNO, TRAP, KILL_THREAD, KILL_PROCESS].indexOf(bare);
}

/** True when the call takes place. */
export function permits(action: number): boolean {
  return action === ALLOW || action === LOG;
}
