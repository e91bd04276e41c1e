import { closeSync } from 'node:fs';
import path from 'node:path';
import { native } from '../../src/launcher/addon.js';
import type { Launch, Streams } from '../../src/launcher/native.js';
import { compileFixture } from '../support/compile.js';

/** A launcher that does what its plan says, see the fixture. */
export const scriptedLauncher = compileFixture('scripted-launcher.cc', { flags: ['-I', path.resolve('native/shared')] });

export interface Seen {
  /** What the launcher sent, and `exit <code> <signal>` at last: the order is part of the contract. */
  events: string[];
  descriptors: number[];
}

/** A launch with its streams taken. */
export type FullLaunch = Launch & Required<Streams>;

export interface Scripted {
  launch: FullLaunch;
  seen: Seen;
  /** The end of file for the launcher's standard input. */
  closeStdin(): void;
  done: Promise<Seen>;
}

export async function startScript(script: string, onRecord: (text: string, launch: FullLaunch) => void = () => {}): Promise<Scripted> {
  const seen: Seen = { events: [], descriptors: [] };
  const { promise, resolve } = withResolvers<Seen>();
  const started = await native().launch({
    launcher: scriptedLauncher,
    plan: Buffer.from(script),
    withStdin: true,
    onRecord(record, descriptors) {
      seen.events.push(record.toString());
      seen.descriptors.push(...descriptors);
      onRecord(record.toString(), launch);
    },
    onExit(exitCode, signal) {
      seen.events.push(`exit ${exitCode} ${signal}`);
      for (const fd of open) closeSync(fd);
      resolve(seen);
    },
  });
  const launch: FullLaunch = { ...started, ...(started.takeStreams() as Required<Streams>) };
  const open = new Set([launch.stdin, launch.stdout, launch.stderr]);
  const closeStdin = (): void => {
    if (open.delete(launch.stdin)) closeSync(launch.stdin);
  };
  return { launch, seen, closeStdin, done: promise };
}

/** Starts the script and waits for its end. */
export async function runScript(script: string, onRecord?: (text: string, launch: FullLaunch) => void): Promise<Seen> {
  return (await startScript(script, onRecord)).done;
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
