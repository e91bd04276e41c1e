import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

import type { GuestAnswer } from '../index.js';
import type { ServiceSettings } from './settings.js';

/**
 * What the service says, one JSON document a line. Nothing that came with a request or from a guest goes in here, no
 * message of an error either: such texts quote what they complain about.
 */
export function createLog(level: ServiceSettings['logLevel'], destination?: DestinationStream): Logger {
  const options = { level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** The figures of one run. */
export function runFigures(answer: GuestAnswer, queuedMs: number): object {
  const { ok, code, ms, usage, connections } = answer;
  const refused = connections.filter(({ verdict }) => verdict === 'refused').length;
  return {
    ok,
    outcome: ok ? 'ok' : code,
    ms,
    queuedMs: Math.round(queuedMs),
    cpuMs: usage.cpuUserMs === null || usage.cpuSystemMs === null ? null : Math.round(usage.cpuUserMs + usage.cpuSystemMs),
    peakMemoryBytes: usage.peakMemoryBytes,
    connections: connections.length - refused,
    connectionsRefused: refused,
  };
}

/** Where an error of our own came from: its kind and its stack without the message. */
export function failureOf(error: unknown): object {
  if (!(error instanceof Error)) return { failure: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
  return { failure: error.name, code: (error as NodeJS.ErrnoException).code, at: frames.map((line) => line.trim()) };
}
