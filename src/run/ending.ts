import type { EgressLog } from '../egress/serve-sandbox.js';
import type { LauncherExit } from '../launcher/launch.js';
import type { EndedRecord, FailureRecord, FenceBit, ReadyRecord, RecordError } from '../launcher/records.js';
import type { Capture } from './capture.js';
import type { Outcome } from './result.js';

/** What is known of one launch after its launcher has exited and the output is read. */
export interface Ending {
  /** The first cause. */
  outcome: Outcome;
  ready: ReadyRecord | null;
  failure: FailureRecord | null;
  ended: EndedRecord | null;
  /** Required fences that the launcher did not verify. */
  missing: FenceBit[];
  nonsense: RecordError | null;
  /** Why the sockets of an allowlist could not be served. */
  unserved: Error | null;
  egress: EgressLog;
  exit: LauncherExit;
  wallMs: number;
  stdout: Capture;
  stderr: Capture;
  /** What onStdout or onStderr threw. */
  thrown: { error: unknown } | null;
}
