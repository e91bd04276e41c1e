import { afterAll } from 'vitest';

import type { GuestAnswer } from '../../../src/guest/answer.js';
import { createExecutor } from '../../../src/guest/executor.js';
import type { Executor, ExecutorOptions } from '../../../src/guest/executor.js';
import type { GuestRequest } from '../../../src/guest/request.js';
import { patience } from '../../support/lane.js';

export const runtimes = ['deno', 'node'] as const;
export type RuntimeName = (typeof runtimes)[number];

/** An executor for the tests of one file, closed after them. */
export function executorFor(runtime: RuntimeName, options: Partial<ExecutorOptions> = {}): Executor {
  const executor = createExecutor({ runtime, ...options });
  afterAll(() => executor.close());
  return executor;
}

/** Runs a function with time enough for a slow machine, unless the request says otherwise. */
export function run(executor: Executor, source: string, request: Partial<GuestRequest> = {}): Promise<GuestAnswer> {
  const { capabilities, ...rest } = request;
  return executor.run({ source, capabilities: { timeoutMs: patience(15_000), ...capabilities }, ...rest });
}

/** What the function returned; fails the test with the whole answer when it did not. */
export async function outputOf(answer: Promise<GuestAnswer>): Promise<unknown> {
  const { ok, output, error, code, logs } = await answer;
  if (!ok) throw new Error(`the run failed: ${code}: ${error}; ${logs.join(' | ')}`);
  return output;
}
