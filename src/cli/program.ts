import { Command, CommanderError } from 'commander';

import { exitCodeByOutcome } from '../errors.js';
import { packageVersion } from '../version.js';
import { commands } from './commands.js';
import { UsageError } from './usage-error.js';

const EXAMPLES = `
Examples:
  ringfence run -- python3 untrusted.py     no network, no files but this directory (read-only), bounded
  ringfence run --timeout 5s --memory 256M -- node untrusted.js
  ringfence eval --input '{"a":1}' fn.ts     a function of JavaScript or TypeScript: JSON in, JSON out
  ringfence serve                           the same over HTTP
  ringfence doctor                          what this machine can enforce, and how to get what is missing

"ringfence run --help" shows every flag of a command.
`;

/** Runs the command line. @returns its exit code; what was typed wrongly is one of them, not an error. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  process.removeAllListeners('warning').on('warning', ({ message }) => process.stderr.write(`ringfence: ${message}\n`));
  const program = createProgram((code) => (exitCode = code));
  const words = argv.slice(2);
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync(words, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodeByOutcome['spawn-error'];
    // Anything else is a fault of ours, and must not look like an exit of the guest's.
    const text = error instanceof UsageError ? error.message : `internal error, please report it: ${(error as Error).stack ?? String(error)}`;
    process.stderr.write(`ringfence: ${text}\n`);
    return exitCodeByOutcome['spawn-error'];
  }
}

function createProgram(finish: (exitCode: number) => void): Command {
  const program = new Command('ringfence')
    .description('Runs code nobody trusts in a sandbox that the Linux kernel enforces.')
    .usage('<command> [flags]')
    .version(packageVersion(), '--version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the flags and examples of a command')
    .configureHelp({ subcommandTerm: (command) => `${command.name()} ${command.usage()}` })
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'ringfence: ').replace(/ is invalid\. /, ' is invalid: ')) })
    .argument('[words...]')
    .addHelpText('after', EXAMPLES)
    .action(refuseUnknown);
  for (const command of commands) command.define(program, finish);
  for (const command of program.commands) command.showHelpAfterError(`To see the flags and examples, type: ringfence ${command.name()} --help`);
  program.showHelpAfterError('To see the commands, type: ringfence --help');
  return program;
}

/** Most likely somebody's command with the `run --` forgotten. */
function refuseUnknown(words: string[]): never {
  const [first = ''] = words;
  throw new UsageError(`there is no command "${first}"; to run it in a sandbox, type: ringfence run -- ${words.map(quoted).join(' ')}`);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
