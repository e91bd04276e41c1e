import type { Command } from 'commander';

/** One entry of the command table. */
export interface CliCommand {
  /** Adds the command with its own flags and examples; its action resolves with the exit code. */
  define(program: Command, finish: (exitCode: number) => void): void;
}
