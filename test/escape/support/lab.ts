import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

import { runSandboxed } from '../../../src/index.js';
import type { SandboxOptions } from '../../../src/index.js';
import { compileFixture } from '../../support/compile.js';
import { patience } from '../../support/lane.js';
import { runOutside } from '../../support/outside.js';
import type { OutsideOptions } from '../../support/outside.js';
import { temporaryDirectory } from '../../support/temporary.js';
import type { Attempt, ClassOfAttacks, Guest, Options } from './attack.js';
import { runWithoutLandlock } from './without-landlock.js';

const fixtures = fileURLToPath(new URL('../../fixtures/escape/', import.meta.url));

/** A process on the host side that an attack is aimed at. */
export interface Helper {
  pid: number;
  /** The first line it said. */
  line: string;
  /** Everything it has said so far. */
  said(): string;
  /** Ends it, if it has not ended. */
  end(): Promise<void>;
}

/** Where one attack is prepared and carried out. What it makes goes with the running test. */
export class Lab {
  readonly #about: ClassOfAttacks;
  #program: string | null = null;

  constructor(about: ClassOfAttacks) {
    this.#about = about;
  }

  /** The compiled program of this class. */
  get program(): string {
    return (this.#program ??= compileAttacks(this.#about));
  }

  /** The guest that carries out one attack of the program. */
  attack(name: string, ...args: string[]): Guest {
    return { command: this.program, args: [name, ...args] };
  }

  /** A new directory that everybody may enter and list: no permission bit is what keeps a guest out of it. */
  directory(): string {
    const directory = temporaryDirectory();
    chmodSync(directory, 0o755);
    return directory;
  }

  /** A file that everybody may read, with a word that nobody can guess, in a directory of its own. */
  secret(): { directory: string; file: string; word: string } {
    const directory = this.directory();
    const file = path.join(directory, 'secret');
    const word = randomWord();
    writeFileSync(file, word);
    chmodSync(file, 0o644);
    return { directory, file, word };
  }

  fixture(name: string): string {
    return path.join(fixtures, name);
  }

  /** Runs the guest in a sandbox in which the class's program is to be seen. */
  async sandbox(guest: Guest, options: Options = {}): Promise<Attempt> {
    const { command, args, stdin } = guest;
    const { landlock, ...others } = options;
    const read = [...(options.filesystem?.read ?? []), this.program];
    const run = landlock === false ? runWithoutLandlock : runSandboxed;
    const result = await run({
      command,
      args,
      timeoutMs: patience(20_000),
      ...(stdin === undefined ? {} : { stdin }),
      ...others,
      filesystem: { ...options.filesystem, read },
    } satisfies SandboxOptions);
    return { ...verdictOf(result.stdout), exitCode: result.exitCode, result };
  }

  /** Runs the guest without any fence. */
  async outside(guest: Guest, options: OutsideOptions = {}): Promise<Attempt> {
    const { command, args, stdin } = guest;
    const { stdout, stderr, exitCode } = await runOutside(command, { args, timeoutMs: patience(20_000), ...(stdin === undefined ? {} : { input: stdin }), ...options });
    const verdict = verdictOf(stdout);
    return { ...verdict, words: verdict.verdict === null ? `${verdict.words} ${stderr}` : verdict.words, exitCode };
  }

  /** Starts a process of the host and waits for its first line. It ends with its stdin, and with the test. */
  async start(command: string, args: string[], options: { cwd?: string; env?: Record<string, string> } = {}): Promise<Helper> {
    const child = spawn(command, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    // The end of its input lets it take away what it made: queues and segments stay in the kernel without an owner.
    const end = async (): Promise<void> => {
      child.stdin.end();
      const impatient = setTimeout(() => child.kill('SIGKILL'), 2000);
      await exited;
      clearTimeout(impatient);
    };
    onTestFinished(end);
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const line = await Promise.race([
      new Promise<string>((resolve, reject) => {
        createInterface({ input: child.stdout }).once('line', resolve);
        child.once('error', reject);
      }),
      exited.then(() => Promise.reject(new Error(`${command} ended before it said anything`))),
    ]);
    return { pid: child.pid ?? 0, line, said: () => said, end };
  }
}

export function randomWord(): string {
  return randomBytes(9).toString('hex');
}

/** The last line that is a verdict. */
export function verdictOf(stdout: string): Pick<Attempt, 'verdict' | 'words' | 'stdout'> & { result: null } {
  const line = stdout.trimEnd().split('\n').reverse().find((each) => /^(ESCAPED|HELD)\b/.test(each));
  const verdict = line === undefined ? null : line.startsWith('ESCAPED') ? 'escaped' : 'held';
  return { verdict, words: line ?? stdout.slice(-500), stdout, result: null };
}

/** The cache of compiled fixtures goes by source and flags: what the shared header says goes into the flags. */
function compileAttacks({ program, flags = [] }: ClassOfAttacks): string {
  const header = createHash('sha256').update(readFileSync(path.join(fixtures, 'attack.h'))).digest('hex').slice(0, 8);
  const executable = compileFixture(`escape/${program}`, { flags: [...flags, `-DATTACK_HEADER=0x${header}`] });
  return executable;
}

/** Makes a directory below another one, open to everybody. */
export function openDirectory(parent: string, name: string, mode = 0o755): string {
  const directory = path.join(parent, name);
  mkdirSync(directory);
  chmodSync(directory, mode);
  return directory;
}
