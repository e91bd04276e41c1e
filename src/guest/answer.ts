import type { Connection, Enforcement, Usage } from '../run/result.js';

/**
 * What went wrong with a run, to branch on. `guest-error`: the function threw; `guest-exit`: its process ended before it
 * answered; `invalid-request`, `egress-blocked`, `bindings-rejected`: nothing was started. Any other code is one of
 * `src/errors.ts`: the sandbox could not be set up.
 */
export type AnswerCode =
  | 'guest-error'
  | 'guest-exit'
  | 'timeout'
  | 'out-of-memory'
  | 'process-limit'
  | 'output-limit'
  | 'canceled'
  | 'protocol'
  | 'invalid-request'
  | 'egress-blocked'
  | 'bindings-rejected'
  | 'closed'
  | (string & {});

/** The answer of one run: always this shape, whatever guest or machine did. */
export interface GuestAnswer {
  ok: boolean;
  /** What the function returned, as JSON; absent when that was undefined or the run failed. */
  output?: unknown;
  /** Absent when ok. The guest's own message, or what ended it: never a path, an environment or a source of the host. */
  error?: string;
  /** What went to the console, `"level: text"`. */
  logs: string[];
  /** Milliseconds from the request to the answer. */
  ms: number;
  /** True when the deadline ended the run. */
  timedOut?: boolean;
  /** Absent when ok. */
  code?: AnswerCode;
  usage: Usage;
  enforcement: Enforcement;
  connections: Connection[];
}
