import type { CliCommand } from './command.js';
import { doctorCommand } from './doctor.js';
import { runCommand } from './run.js';

/** Every command of `ringfence`, in the order of the help text. */
export const commands: readonly CliCommand[] = [runCommand, doctorCommand];
