import type { CliCommand } from './command.js';
import { doctorCommand } from './doctor.js';
import { evalCommand } from './eval.js';
import { runCommand } from './run.js';
import { serveCommand } from './serve.js';

/** Every command of `ringfence`, in the order of the help text. */
export const commands: readonly CliCommand[] = [runCommand, evalCommand, serveCommand, doctorCommand];
