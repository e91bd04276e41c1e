import type { Fence } from '../run/result.js';

/** The command does not exist in the guest's PATH or view, or is nothing that can be executed. */
export class CommandNotFound extends Error {
  override readonly name = 'CommandNotFound';
  readonly syscall = 'spawn';

  constructor(
    readonly command: string,
    readonly code: 'ENOENT' | 'EACCES',
  ) {
    super(`spawn ${command} ${code}`);
  }
}

/** A fence of this run cannot be had on this host: nothing was started. */
export class FenceUnavailable extends Error {
  override readonly name = 'FenceUnavailable';

  constructor(
    readonly fence: Fence,
    /** For example `CGROUP_NOT_DELEGATED`. */
    readonly code: string,
    /** What to do about it. */
    readonly hint: string,
  ) {
    super(`the ${fence} fence cannot be had here: ${hint}`);
  }
}
