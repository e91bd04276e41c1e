import { exitCodeByOutcome } from '../errors.js';
import { signalExitCode } from './cancellation.js';

/** What to say of standard output that could not be written. */
export function wordsOfBroken(error: NodeJS.ErrnoException): string[] {
  return error.code === 'EPIPE' ? [] : [`cannot write the output: ${error.message}`];
}

/** A reader that has gone ends a command by SIGPIPE everywhere else, and so it is called here. */
export function exitCodeOfBroken({ code }: NodeJS.ErrnoException, by: NodeJS.Signals | null = null): number {
  if (by !== null) return signalExitCode(by);
  return code === 'EPIPE' ? signalExitCode('SIGPIPE') : exitCodeByOutcome['spawn-error'];
}
