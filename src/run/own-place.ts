import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Place } from './collect.js';
import type { RunOptions } from './options.js';

/** Where a run that never came to have a plan would have been: the caller's directory, or the name of one that never was. */
export function ownPlace({ cwd }: Pick<RunOptions, 'cwd'>): Place {
  return {
    cwd: cwd ?? join(tmpdir(), `ringfence-${randomBytes(6).toString('hex')}`),
    cwdOwnedBySandbox: cwd === null,
    nodeHeapMbApplied: null,
  };
}
