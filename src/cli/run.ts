import { exitCodeOf } from '../errors.js';
import { Host } from '../run/host.js';
import { runnerOf } from '../run/run.js';
import type { SandboxOptions, SandboxResult } from '../index.js';
import { Cancellation, signalExitCode } from './cancellation.js';
import type { CliCommand } from './command.js';
import { currentDirectory } from './current-directory.js';
import { inFlags } from './flag-names.js';
import { exitCodeOfBroken, reportBroken, wordsOfBroken } from './broken-output.js';
import { Output } from './output.js';
import { defineRunFlags } from './run-flags.js';
import type { RunFlags } from './run-flags.js';
import { optionsOf } from './run-options.js';
import { UsageError } from './usage-error.js';
import { verdict } from './verdict.js';

const CANCELED_READER_MS = 500;

const EXAMPLES = `
Examples:
  ringfence run -- python3 untrusted.py          sees this directory, read-only; no network, no home
  ringfence run --timeout 5s --memory 256M --pids 64 -- node untrusted.js
  ringfence run --write ./out -- make OUT=out    may write to ./out, and nowhere else
  ringfence run --no-cwd --read ./data -- sh -c 'wc -l "$1"' sh "$PWD/data/words.txt"
  ringfence run --env API_TOKEN --allow api.example.com -- ./fetch.sh   reaches that host, and no other
  ringfence run --json -- npm test > result.json
  yes | ringfence run -- head -1                 standard input and output are passed through

Exit code:
  the command's own; 124 timeout; 137 out of memory; 152 cpu time; 153 output limit; 130 canceled;
  126 not executable, 127 not found;
  128+n ended by signal n; 125 the sandbox could not be set up: "ringfence doctor" says why
`;

/** `ringfence run`: one command in a sandbox, its streams passed through. */
export const runCommand: CliCommand = {
  define(program, finish) {
    const command = program
      .command('run')
      .summary('run a command in a sandbox that the kernel enforces')
      .description(
        'Runs a command in a sandbox that the kernel enforces, and leaves nothing of it behind. The command is a name in PATH ' +
          'or a path; no shell is involved. It sees the files of its runtime and the current directory, read-only; it may ' +
          'write to /tmp and HOME, which are its own and empty unless the current directory is one of them (--no-cwd); it has no network but the hosts that are allowed.',
      )
      .usage('[flags] -- command [args...]')
      // What follows the command is the command's, with or without the "--".
      .passThroughOptions()
      .argument('[command...]')
      .addHelpText('after', EXAMPLES);
    defineRunFlags(command, process.env).action(async (words: string[], flags: RunFlags) => finish(await run(words, flags)));
  },
};

async function run([command, ...args]: string[], flags: RunFlags): Promise<number> {
  if (command === undefined) throw new UsageError('no command to run: type it after "--", for example: ringfence run -- node script.js');
  if (flags.grace !== undefined && flags.grace >= flags.timeout) {
    throw new UsageError('--grace must be shorter than --timeout: it comes on top, and no run may last twice as long as its timeout');
  }
  const options = optionsOf(flags, command, args, currentDirectory(process.env['PWD']));
  return flags.json === true ? runToJson(options, flags) : runLive(options, flags);
}

async function runLive(options: SandboxOptions, flags: RunFlags): Promise<number> {
  const cancellation = new Cancellation();
  const stdout = new Output(process.stdout, () => cancellation.cancel());
  // Nobody to tell, and no reason to end the run.
  const stderr = new Output(process.stderr);
  // Somebody wants this process to end: it does not wait for a reader that does not read.
  void cancellation.came.then(() => {
    for (const output of [stdout, stderr]) output.hurry(CANCELED_READER_MS);
  });
  const result = await start({
    ...options,
    keepOutput: false,
    maxStdoutBytes: options.maxStdoutBytes ?? Number.MAX_SAFE_INTEGER,
    maxStderrBytes: options.maxStderrBytes ?? Number.MAX_SAFE_INTEGER,
    stdin: flags.stdin ? process.stdin : undefined,
    signal: cancellation.signal,
    onStdout: (chunk) => stdout.write(chunk),
    onStderr: (chunk) => stderr.write(chunk),
  });
  await stdout.flushed();
  const { failure } = stdout;
  const words = [...(failure === null ? verdict(result, flags, cancellation.by) : wordsOfBroken(failure)), ...(await failedConnections(result))];
  for (const line of words) void stderr.write(`ringfence: ${line}\n`);
  await stderr.flushed();
  cancellation.stop();
  return failure === null ? exitCodeFor(result, cancellation) : exitCodeOfBroken(failure, cancellation.by);
}

async function runToJson(options: SandboxOptions, flags: RunFlags): Promise<number> {
  const cancellation = new Cancellation();
  const result = await start({ ...options, stdin: flags.stdin ? process.stdin : undefined, signal: cancellation.signal });
  const stdout = new Output(process.stdout);
  void stdout.write(`${JSON.stringify(result, null, process.stdout.isTTY ? 2 : 0)}\n`);
  void cancellation.came.then(() => stdout.hurry(CANCELED_READER_MS));
  await stdout.flushed();
  cancellation.stop();
  return stdout.failure === null ? exitCodeFor(result, cancellation) : reportBroken(stdout.failure, cancellation.by);
}

/** What a run that failed did not get through to, with the flags that would let it; of any other, what was lost on its way. */
async function failedConnections(result: SandboxResult): Promise<string[]> {
  const succeeded = result.outcome === 'exit' && result.exitCode === 0;
  if (result.connections.length === 0) return [];
  const [{ failedSummary, isCutShort }, { ownAddresses }] = await Promise.all([import('../egress/summary.js'), import('../egress/own-addresses.js')]);
  const more = result.connectionsOmitted;
  if (succeeded) return failedSummary(result.connections.filter(isCutShort));
  return [...failedSummary(result.connections, await ownAddresses()), ...(more === 0 ? [] : [`${more} more attempts to connect are counted, but not listed`])];
}

async function start(options: SandboxOptions): Promise<SandboxResult> {
  // The last words say it, in fewer words.
  const runSandboxed = runnerOf(new Host(() => undefined));
  try {
    return await runSandboxed(options);
  } catch (error) {
    // A flag's value that only the library, or the file system, can prove wrong.
    if (error instanceof TypeError || error instanceof RangeError) throw new UsageError(inFlags(error.message));
    throw error;
  }
}

function exitCodeFor(result: SandboxResult, { by }: Cancellation): number {
  return result.outcome === 'canceled' && by !== null ? signalExitCode(by) : exitCodeOf(result);
}
