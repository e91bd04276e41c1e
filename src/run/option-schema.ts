import { constants } from 'node:os';
import { isAbsolute } from 'node:path';
import type { Readable } from 'node:stream';
import { types } from 'node:util';

import { z } from 'zod';

import type { EgressOptions } from '../egress/policy.js';
import type { OnChunk } from './capture.js';
import type { OptionNames } from './option-problem.js';
import { isPlainObject } from './plain-object.js';

const MIB = 1024 * 1024;
const GIB_IN_MIB = 1024;
/** setTimeout takes no more. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
/** The kernel's PID_MAX_LIMIT. */
const MAX_PIDS = 4 * MIB;
/** The default of fs.nr_open, above which setrlimit(2) refuses. */
const MAX_OPEN_FILES = MIB;
const MAX_MIB = 2 ** 20 * GIB_IN_MIB;

/** NUL ends a C string early, and a lone surrogate has no UTF-8: both would reach the kernel as something else. */
const UNSENDABLE = /[\0\p{Surrogate}]/u;

const text = (expected: string) =>
  z
    .string(expected)
    .refine((value) => !UNSENDABLE.test(value), 'must not contain a NUL character or a lone surrogate');

export const wholeNumber = (expected: string, min: number, max: number) =>
  // Not zod's int(), to which a whole number above MAX_SAFE_INTEGER is none.
  z.number(expected).refine(Number.isInteger, expected).min(min, expected).max(max, `must be at most ${max}`);

export const positiveInteger = (max: number) => wholeNumber('must be a positive finite integer', 1, max);

const absolutePath = text('must be an absolute path')
  .refine(isAbsolute, 'must be an absolute path');

export const command = text('must be a non-empty string')
  .min(1, 'must be a non-empty string')
  .refine(
    (value) => isAbsolute(value) || !value.includes('/'),
    'must be an absolute path, or a name without a slash that is looked up in PATH',
  );

const NOT_PLAIN = Symbol('not a plain object');
/** zod reads what it knows of any object, and finds nothing wrong with a Map. */
export const plain = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (typeof value === 'object' && !isPlainObject(value) ? NOT_PLAIN : value), schema);

/** A value checked by its shape; `wrongType` tells `firstProblem` that this is a TypeError. */
export const shaped = <T>(check: (value: unknown) => boolean, expected: string) =>
  z.custom<T>((value) => holds(check, value), { error: expected, abort: true, params: { wrongType: true } });

const callback = shaped<OnChunk>((value) => typeof value === 'function', 'must be a function')
  .optional()
  .transform((value) => value ?? null);

const stdin = shaped<string | Uint8Array | Readable>(isStdin, 'must be a string, a Uint8Array or a Readable')
  .optional()
  .transform((value) => value ?? null);

const signal = shaped<AbortSignal>(isAbortSignal, 'must be an AbortSignal')
  .optional()
  .transform((value) => value ?? null);

const SIGNAL_EXPECTED = 'must be the name of a signal of Linux, for example "SIGTERM"';
const shutdownSignal = z
  .string(SIGNAL_EXPECTED)
  .refine((value): value is NodeJS.Signals => Object.hasOwn(constants.signals, value), SIGNAL_EXPECTED)
  .transform((value) => value as NodeJS.Signals)
  .default('SIGTERM');

/** An object of strings, as it is. */
export const record = (expected: string) =>
  shaped<Record<string, string>>((value) => isPlainObject(value) && Object.values(value).every((each) => typeof each === 'string'), expected);

// Not z.record: the names are data, "__proto__" included, and the values may be secrets that no message may show.
const env = shaped<Record<string, string>>(isPlainObject, 'must be an object of strings')
  .superRefine((value, context) => {
    for (const [name, content] of Object.entries(value)) {
      const expected = environmentProblem(name, content);
      if (expected === null) continue;
      const params = { wrongType: typeof content !== 'string' };
      context.addIssue({ code: 'custom', path: [name], message: expected, params });
    }
  })
  .transform((value) => Object.fromEntries(Object.entries(value)))
  .default({});

const filesystem = z.strictObject(
  {
    read: z.array(absolutePath, 'must be an array of absolute paths').default([]),
    write: z.array(absolutePath, 'must be an array of absolute paths').default([]),
    tmpMb: positiveInteger(MAX_MIB).default(256),
  },
  'must be an object',
);

const limits = z.strictObject(
  {
    memoryMb: positiveInteger(MAX_MIB).default(512),
    pids: positiveInteger(MAX_PIDS).default(128),
    // The kernel takes no quota below 1 ms a period of 100 ms.
    cpus: z
      .number('must be a positive finite number')
      .min(0.01, 'must be a number of at least 0.01')
      .max(8192, 'must be at most 8192')
      .optional()
      .transform((value) => value ?? null),
    cpuTimeMs: optionalInteger(MAX_TIMER_MS),
    openFiles: wholeNumber('must be a finite integer of at least 3', 3, MAX_OPEN_FILES).default(1024),
    fileSizeMb: optionalInteger(MAX_MIB),
  },
  'must be an object',
);

const NETWORK_EXPECTED = "must be 'none', 'host' or { allow: [...] }";
const network = z
  .custom<'none' | 'host' | EgressOptions>((value) => typeof value === 'string' || isPlainObject(value), {
    error: NETWORK_EXPECTED,
    abort: true,
    params: { wrongType: true },
  })
  .refine((value) => typeof value !== 'string' || value === 'none' || value === 'host', NETWORK_EXPECTED);

/** Messages are what was expected; `firstProblem` adds the field and what came. */
export const optionsSchema = z.strictObject(
  {
    command,
    args: z.array(text('must be a string'), 'must be an array of strings'),
    cwd: absolutePath.optional().transform((value) => value ?? null),
    cwdReadOnly: z.boolean('must be a boolean').default(false),
    env,
    timeoutMs: positiveInteger(MAX_TIMER_MS),
    shutdownSignal,
    gracePeriodMs: wholeNumber('must be a finite integer >= 0', 0, MAX_TIMER_MS).optional(),
    stdin,
    maxStdoutBytes: positiveInteger(Number.MAX_SAFE_INTEGER).default(8 * MIB),
    maxStderrBytes: positiveInteger(Number.MAX_SAFE_INTEGER).default(MIB),
    nodeHeapMb: optionalInteger(MAX_MIB),
    signal,
    onStdout: callback,
    onStderr: callback,
    keepOutput: z.boolean('must be a boolean').default(true),
    network: network.default('none'),
    seccomp: plain(z.strictObject({ profile: absolutePath }, 'must be an object'))
      .optional()
      .transform((value) => value ?? null),
    filesystem: plain(filesystem).prefault({}),
    limits: plain(limits).prefault({}),
    isolation: z.enum(['strict', 'best-effort'], "must be 'strict' or 'best-effort'").default('strict'),
  },
  'must be an object',
);

function optionalInteger(max: number) {
  return positiveInteger(max)
    .optional()
    .transform((value) => value ?? null);
}

/** What `firstProblem` has to know of them. */
export const optionNames: OptionNames = {
  own: Object.keys(optionsSchema.shape),
  sections: { filesystem: Object.keys(filesystem.shape), limits: Object.keys(limits.shape) },
};

/** False as well for what cannot be looked at: a getter that throws, a Proxy of what has private fields. */
function holds(check: (value: unknown) => boolean, value: unknown): boolean {
  try {
    return check(value);
  } catch {
    return false;
  }
}

function isStdin(value: unknown): boolean {
  // A Proxy of one passes instanceof, and its bytes cannot be read.
  if (typeof value === 'string' || types.isUint8Array(value)) return true;
  // By shape, so that a Readable of another copy of the stream library is one as well.
  const stream = value as { pipe?: unknown; on?: unknown; destroy?: unknown; [Symbol.asyncIterator]?: unknown } | null;
  return (
    typeof stream === 'object' &&
    stream !== null &&
    typeof stream.pipe === 'function' &&
    typeof stream.on === 'function' &&
    typeof stream.destroy === 'function' &&
    typeof stream[Symbol.asyncIterator] === 'function'
  );
}

function isAbortSignal(value: unknown): boolean {
  const candidate = value as { aborted?: unknown; addEventListener?: unknown; removeEventListener?: unknown } | null;
  return (
    typeof candidate === 'object' &&
    candidate !== null &&
    typeof candidate.aborted === 'boolean' &&
    typeof candidate.addEventListener === 'function' &&
    typeof candidate.removeEventListener === 'function'
  );
}

function environmentProblem(name: string, value: unknown): string | null {
  if (name === '' || name.includes('=') || UNSENDABLE.test(name)) {
    return 'must have a name that is not empty and has no "=", NUL character or lone surrogate';
  }
  if (typeof value !== 'string') return 'must be a string';
  return UNSENDABLE.test(value) ? 'must not contain a NUL character or a lone surrogate' : null;
}
