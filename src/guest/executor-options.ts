import { z } from 'zod';

import { firstProblem } from '../run/option-problem.js';
import type { OptionNames } from '../run/option-problem.js';
import { command, plain, positiveInteger, record, shaped, wholeNumber } from '../run/option-schema.js';
import { brokerProblem } from './broker.js';
import type { ExecutorOptions } from './executor.js';

/** As many as `ringfence serve` may keep. */
const MAX_WARM = 1000;

const count = positiveInteger(Number.MAX_SAFE_INTEGER).optional();

/** What is no list of hosts of it; ranges and addresses are looked at with the hosts of each request. */
const network = z.strictObject(
  {
    allowPrivate: z.array(z.string('must be a string'), 'must be an array of ranges').optional(),
    hosts: record('must be an object of addresses by name').optional(),
    maxConnections: count,
    idleTimeoutMs: count,
    connectTimeoutMs: count,
    maxBytes: count,
    onConnection: shaped<(connection: never) => void>((value) => typeof value === 'function', 'must be a function').optional(),
  },
  'must be an object',
);

const RUNTIME = "must be 'deno' or 'node'";
const BROKER = 'must be an http or https URL without user, password and fragment';

const schema = z.strictObject(
  {
    runtime: z.enum(['deno', 'node'], RUNTIME),
    command: command.optional(),
    isolation: z.enum(['strict', 'best-effort'], "must be 'strict' or 'best-effort'").optional(),
    brokerUrl: z.string(BROKER).refine((url) => brokerProblem(url, undefined) === null, BROKER).optional(),
    warm: wholeNumber('must be a finite integer >= 0', 0, MAX_WARM).optional(),
    network: plain(network).optional(),
  },
  'must be an object',
);

const names: OptionNames = { own: Object.keys(schema.shape), sections: { network: Object.keys(network.shape) } };

/**
 * Checks the options of an executor: one that is misspelt must not be another runtime, with a weaker channel.
 *
 * @throws TypeError when a field has the wrong type, is missing or is not known; RangeError when its value is wrong. The
 *   message names the field, what was expected and what came.
 */
export function checkExecutorOptions(options: unknown): ExecutorOptions {
  const parsed = schema.safeParse(options);
  if (!parsed.success) throw firstProblem(parsed.error.issues, options, names);
  return parsed.data as ExecutorOptions;
}
