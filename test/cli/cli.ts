import { fileURLToPath } from 'node:url';

import { execa } from 'execa';
import type { Options } from 'execa';

/** The command line as it is shipped: tests run it as a child, never by import. */
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface CliResult {
  exitCode: number | undefined;
  signal: string | undefined;
  stdout: string;
  stderr: string;
}

/** Runs `ringfence` with these arguments; standard input is empty unless given. */
export async function cli(args: readonly string[], options: Options = {}): Promise<CliResult> {
  return outcomeOf(await execa(process.execPath, [MAIN, ...args], { ...DEFAULTS, ...options }));
}

/** Runs a shell script in which `$RINGFENCE` is the command line. */
export async function shell(script: string, options: Options = {}): Promise<CliResult> {
  const env = { RINGFENCE: `${process.execPath} ${MAIN}`, ...options.env };
  return outcomeOf(await execa('sh', ['-c', script], { ...DEFAULTS, ...options, env }));
}

/** The parsed result of `ringfence run --json`. */
export async function json(args: readonly string[], options: Options = {}): Promise<Record<string, unknown> & { stdout: string; stderr: string }> {
  const { stdout, stderr } = await cli(['run', '--json', ...args], options);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Record<string, unknown> & { stdout: string; stderr: string };
}

const DEFAULTS: Options = { reject: false, stripFinalNewline: false, input: '', timeout: 120_000 };

function outcomeOf(result: { exitCode?: number | undefined; signal?: string | undefined; stdout?: unknown; stderr?: unknown }): CliResult {
  return { exitCode: result.exitCode, signal: result.signal, stdout: String(result.stdout), stderr: String(result.stderr) };
}
