import { Socket } from 'node:net';
import { constants } from 'node:os';

import { closeAll } from './descriptors.js';
import type { Launch, Native } from './native.js';
import { decodeRecord, killCommand, RecordError, signalCommand } from './records.js';
import type { LauncherRecord, SocketsRecord } from './records.js';

/** How the launcher process itself ended. */
export interface LauncherExit {
  exitCode: number | null;
  signal: number | null;
}

export interface LaunchEvents {
  onRecord(record: Exclude<LauncherRecord, SocketsRecord>): void;
  /** The sockets of an allowlisted network, before `ready`. The descriptors are the callee's. */
  onSockets(record: SocketsRecord, descriptors: number[]): void;
  /** A message that is no record. The sandbox is being ended already. */
  onNonsense(error: RecordError): void;
  /** Called exactly once, after the last record. */
  onExit(exit: LauncherExit): void;
}

export interface LaunchInput {
  /** Absolute path of the launcher. */
  launcher: string;
  /** The encoded plan. */
  plan: Uint8Array;
  /** False: the guest gets end of file at once. */
  withStdin: boolean;
}

/** The host's ends of the guest's standard streams. */
export interface GuestStreams {
  stdin: Socket | null;
  stdout: Socket;
  stderr: Socket;
}

/** One launcher that runs. */
export interface RunningLaunch {
  pid: number;
  /** By the clock of `performance.now()`. */
  startedAt: number;
  /**
   * Takes the streams over; to be called once. It costs the event loop about as much as the launch itself: better in a
   * turn of its own. Throws, with everything closed and the sandbox being ended, when the machine has no more to give.
   */
  openStreams(): GuestStreams;
  /** Sends a signal to the guest process. */
  signal(name: NodeJS.Signals): void;
  /** Ends the sandbox at once. */
  kill(): void;
  /** Closes the lifeline, which ends the sandbox too. */
  hangUp(): void;
  /** SIGKILL to the launcher: for one that does not answer. */
  killLauncher(): void;
}

/**
 * Starts one launcher. The first event comes after the promise's own callbacks.
 * @throws Error with `code`, `errno` and `syscall` when it cannot be started; nothing is left open then.
 */
export async function launch(native: Native, input: LaunchInput, events: LaunchEvents): Promise<RunningLaunch> {
  const started: Launch = await native.launch({
    ...input,
    onRecord(message, descriptors) {
      deliver(message, descriptors, events, () => started.hangUp());
    },
    onExit: (exitCode, signal) => events.onExit({ exitCode, signal }),
  });
  return {
    pid: started.pid,
    startedAt: performance.now() - started.ageMs,
    openStreams: () => openStreams(started),
    signal: (name) => void started.send(signalCommand(constants.signals[name])),
    kill: () => void started.send(killCommand()),
    hangUp: () => started.hangUp(),
    killLauncher: () => started.kill(),
  };
}

function deliver(message: Buffer, descriptors: number[], events: LaunchEvents, hangUp: () => void): void {
  let record: LauncherRecord;
  try {
    record = decodeRecord(message);
  } catch (error) {
    closeAll(descriptors);
    if (!(error instanceof RecordError)) throw error;
    hangUp();
    events.onNonsense(error);
    return;
  }
  if (record.kind === 'sockets') return events.onSockets(record, descriptors);
  // No other record comes with descriptors; one that does must not leak them.
  closeAll(descriptors);
  events.onRecord(record);
}

function openStreams({ takeStreams, hangUp }: Launch): GuestStreams {
  const { stdin, stdout, stderr } = takeStreams();
  const open = new Set([stdout, stderr, ...(stdin === undefined ? [] : [stdin])]);
  const sockets: Socket[] = [];
  const adopt = (fd: number, direction: { readable?: boolean; writable?: boolean }): Socket => {
    const socket = new Socket({ fd, readable: false, writable: false, ...direction });
    open.delete(fd);
    sockets.push(socket);
    // The guest decides when a pipe breaks; it must not be able to break the host with it.
    socket.on('error', () => undefined);
    return socket;
  };
  try {
    return {
      stdout: adopt(stdout, { readable: true }),
      stderr: adopt(stderr, { readable: true }),
      stdin: stdin === undefined ? null : adopt(stdin, { writable: true }),
    };
  } catch (error) {
    for (const socket of sockets) socket.destroy();
    closeAll([...open]);
    hangUp();
    throw error;
  }
}
