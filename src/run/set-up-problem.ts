import { describeFailure } from '../errors.js';
import type { DescribedFailure } from '../errors.js';
import { NativeFileError } from '../launcher/locate.js';
import { CommandNotFound, FenceUnavailable } from '../plan/errors.js';
import type { Fence } from './result.js';

/** Why nothing could be started. */
export interface SetUpProblem {
  kind: 'set-up-problem';
  failure: DescribedFailure;
  /** The fence that cannot be had here, if it is that. */
  fence: Fence | null;
}

/** Errors of the machine that have a name of their own wherever they come from. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE: 'host-out-of-descriptors',
  ENFILE: 'host-out-of-descriptors',
  ENOMEM: 'host-out-of-memory',
  EAGAIN: 'host-out-of-processes',
};

/** Turns what planning or launching threw into a value: our failing is no exception of the caller's. */
export function setUpProblem(error: unknown, tried: string, otherwise: string): SetUpProblem {
  const of = (failure: DescribedFailure, fence: Fence | null = null): SetUpProblem => ({ kind: 'set-up-problem', failure, fence });
  if (error instanceof CommandNotFound) {
    const code = error.code === 'ENOENT' ? 'command-not-found' : 'command-not-executable';
    return of(describeFailure(code, error.message, { syscall: error.syscall, errno: error.code }));
  }
  if (error instanceof FenceUnavailable) {
    return of(describeFailure(error.code, `no ${error.fence} fence on this host`, { hint: error.hint }), error.fence);
  }
  if (error instanceof NativeFileError) {
    return of(describeFailure('launcher-missing', error.message, { hint: error.hint }));
  }
  const { code = null, syscall = null, message } = error as NodeJS.ErrnoException;
  const known = code === null ? undefined : SHORTAGES[code];
  return of(describeFailure(known ?? otherwise, `${tried}: ${message}`, { syscall, errno: code }));
}
