import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';

import { Option } from 'commander';
import type { Command } from 'commander';

import { exitCodeByError, exitCodeOfAnswer } from '../errors.js';
import type { GuestAnswer } from '../index.js';
import { Cancellation, signalExitCode } from './cancellation.js';
import type { CliCommand } from './command.js';
import { inEvalFlags } from './flag-names.js';
import { exitCodeOfBroken, wordsOfBroken } from './broken-output.js';
import { Output } from './output.js';
import { assignments, flag, hostText, repeatable } from './run-flags.js';
import { UsageError } from './usage-error.js';
import { missingFences } from './verdict.js';
import { duration, mebibytes } from './values.js';

const CANCELED_READER_MS = 500;
const STDIN = '-';

const EXAMPLES = `
Examples:
  ringfence eval --input '{"a":1}' fn.ts             prints what the function returns, as JSON
  echo 'export default (n) => n * 2' | ringfence eval --input 21
  ringfence eval --input-file - fn.ts < input.json   its input from standard input
  ringfence eval --net api.example.com --secret API_KEY fn.ts
  ringfence eval --runtime node --json fn.ts         the whole answer: logs, usage, fences, connections

The file exports a function by default, TypeScript or JavaScript. Its console goes to standard error, as it comes.

Exit code:
  0; 1 the function failed; 124 timeout; 137 out of memory; 153 it printed too much; 130 canceled;
  125 it could not be run; 126/127 its runtime cannot be executed / was not found
`;

interface EvalFlags {
  input?: string;
  inputFile?: string;
  runtime: 'deno' | 'node';
  timeout: number;
  memory: number;
  net?: string[];
  import?: string[];
  secret?: Record<string, string>;
  bestEffort?: boolean;
  json?: boolean;
}

/** `ringfence eval`: one function in a sandbox. */
export const evalCommand: CliCommand = {
  define(program, finish) {
    const command = program
      .command('eval')
      .summary('run a function in a sandbox: JSON in, JSON out')
      .description('Runs a function that nobody trusts in a sandbox of its own. Without a file, or with "-", its source is read from standard input.')
      .usage('[flags] [file]')
      .argument('[file]')
      .addHelpText('after', EXAMPLES);
    defineFlags(command).action(async (file: string | undefined, flags: EvalFlags) => finish(await evaluate(file, flags)));
  },
};

function defineFlags(command: Command): Command {
  return command
    .addOption(new Option('--input <json>', 'what the function is called with').conflicts('inputFile'))
    .addOption(new Option('--input-file <path>', 'the same from a file; - is standard input'))
    .addOption(new Option('--runtime <name>', 'what holds the function').choices(['deno', 'node']).default('deno'))
    .addOption(flag('--timeout <time>', 'wall-clock time, up to 30s', duration, 5000, '5s'))
    .addOption(flag('--memory <size>', 'heap, 16M to 1024M', mebibytes, 128, '128M'))
    .addOption(repeatable('--net <host[:port]>', 'let it reach this host (443 and 80, or the port); repeatable', hostText))
    .addOption(repeatable('--import <host[:port]>', 'let it import modules from this host (Deno only); repeatable', hostText))
    .addOption(assignments('--secret <name[=value]>', 'globalThis.__secrets.NAME: this value, or that of the variable; repeatable', process.env))
    .addOption(new Option('--best-effort', 'where a fence cannot be had, run without it'))
    .addOption(new Option('--json', 'print the whole answer'));
}

async function evaluate(file: string | undefined, flags: EvalFlags): Promise<number> {
  checkRange('--timeout', flags.timeout, 1, 30_000, '1ms to 30s');
  checkRange('--memory', flags.memory, 16, 1024, '16M to 1024M');
  const fromStdin = file === undefined || file === STDIN;
  if (fromStdin && flags.inputFile === STDIN) throw new UsageError('the function and its input cannot both come from standard input: name a file for one of them');
  if (file === undefined && process.stdin.isTTY) throw new UsageError('no function to run: type a file, for example: ringfence eval fn.ts; or - to type it here');
  const source = await read(fromStdin ? STDIN : file, 'the function');
  const input = await readInput(flags);

  const cancellation = new Cancellation();
  const stdout = new Output(process.stdout, () => cancellation.cancel());
  const stderr = new Output(process.stderr);
  void cancellation.came.then(() => {
    for (const output of [stdout, stderr]) output.hurry(CANCELED_READER_MS);
  });
  // Other commands start sooner without it.
  const { createExecutor } = await import('../index.js');
  const executor = createExecutor({ runtime: flags.runtime, isolation: flags.bestEffort === true ? 'best-effort' : 'strict' });
  const answer = await executor.run({
    source,
    input,
    capabilities: { net: flags.net ?? [], import: flags.import ?? [], timeoutMs: flags.timeout, memoryMb: flags.memory },
    secrets: flags.secret,
    signal: cancellation.signal,
    onLog: (line) => void stderr.write(`${printable(line)}\n`),
  });
  await executor.close();
  if (flags.json === true) void stdout.write(`${JSON.stringify(answer, null, process.stdout.isTTY ? 2 : 0)}\n`);
  else if (answer.ok) void stdout.write(`${JSON.stringify(answer.output ?? null, null, process.stdout.isTTY ? 2 : 0)}\n`);
  await stdout.flushed();
  const { failure } = stdout;
  const words = flags.json === true ? [] : await lastWords(answer, flags);
  for (const line of [...(failure === null ? [] : wordsOfBroken(failure)), ...words]) void stderr.write(`ringfence: ${line}\n`);
  await stderr.flushed();
  cancellation.stop();
  if (failure !== null) return exitCodeOfBroken(failure, cancellation.by);
  return answer.code === 'canceled' && cancellation.by !== null ? signalExitCode(cancellation.by) : exitCodeOfAnswer(answer);
}

async function lastWords(answer: GuestAnswer, flags: EvalFlags): Promise<string[]> {
  const hasRun = answer.enforcement.privileges.status === 'enforced';
  const lines = hasRun ? missingFences(answer.enforcement) : [];
  if (answer.ok) return lines;
  return [...lines, whatFailed(answer, flags), ...(await refused(answer))];
}

/** What the function was not let through to, with the flag for it. */
async function refused({ connections }: GuestAnswer): Promise<string[]> {
  if (connections.length === 0) return [];
  const [{ failedSummary }, { ownAddresses }] = await Promise.all([import('../egress/summary.js'), import('../egress/own-addresses.js')]);
  return failedSummary(connections, await ownAddresses(), { allow: '--net', allowPrivate: null });
}

function whatFailed({ code = '', error = '' }: GuestAnswer, { runtime }: EvalFlags): string {
  // A refusal is the library's own text; any other may be the guest's.
  const text = printable(code === 'egress-blocked' || code === 'invalid-request' ? inEvalFlags(error) : error);
  if (!Object.hasOwn(exitCodeByError, code)) return text;
  return runtime === 'deno' ? `${text}; for this: install Deno, let DENO_BIN name its program, or type --runtime node` : text;
}

async function readInput({ input, inputFile }: EvalFlags): Promise<unknown> {
  const json = input ?? (inputFile === undefined ? undefined : await read(inputFile, 'the input'));
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new UsageError(`${input === undefined ? '--input-file' : '--input'} is no JSON: ${(error as Error).message}`);
  }
}

async function read(path: string, what: string): Promise<string> {
  if (path === STDIN) return text(process.stdin);
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`cannot read ${what} from ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

function checkRange(name: string, value: number, least: number, most: number, words: string): void {
  if (value < least || value > most) throw new UsageError(`${name} must be ${words}`);
}

/** A guest's text, without what would make a terminal do things. */
function printable(line: string): string {
  return line.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
