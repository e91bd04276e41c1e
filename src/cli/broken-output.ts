import { exitCodeByOutcome } from '../errors.js';
import { signalExitCode } from './cancellation.js';

/** What to say of standard output that could not be written. */
export function wordsOfBroken(error: NodeJS.ErrnoException): string[] {
  return error.code === 'EPIPE' ? [] : [`cannot write the output: ${error.message}`];
}

/** Says so on standard error. @returns the exit code */
export function reportBroken(error: NodeJS.ErrnoException, by: NodeJS.Signals | null = null): number {
  for (const line of wordsOfBroken(error)) process.stderr.write(`ringfence: ${line}\n`);
  return exitCodeOfBroken(error, by);
}

/** A reader that has gone ends a command by SIGPIPE everywhere else, and so it is called here. */
export function exitCodeOfBroken({ code }: NodeJS.ErrnoException, by: NodeJS.Signals | null): number {
  if (by !== null) return signalExitCode(by);
  return code === 'EPIPE' ? signalExitCode('SIGPIPE') : exitCodeByOutcome['spawn-error'];
}
