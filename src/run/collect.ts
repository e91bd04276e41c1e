import type { DescribedFailure } from '../errors.js';
import { describeFailure, describeStageFailure } from '../errors.js';
import type { KernelUsage } from '../launcher/records.js';
import type { PlannedRun } from '../plan/plan-run.js';
import { fenceOf } from './concessions.js';
import type { Dropped } from './enforcement.js';
import { enforcementOf, nothingEnforced } from './enforcement.js';
import type { RunOptions } from './options.js';
import { exitOf, signalName } from './outcome.js';
import type { Enforcement, Fence, Outcome, SandboxResult, Usage } from './result.js';
import { setUpProblem } from './set-up-problem.js';
import type { Ending } from './ending.js';

/** Where a run is or would be, and what was applied to it. */
export type Place = Pick<PlannedRun, 'cwd' | 'cwdOwnedBySandbox' | 'nodeHeapMbApplied'>;

/** The result of a run that was launched. */
export function collect(options: RunOptions, planned: PlannedRun, ending: Ending, dropped: Dropped = new Map()): SandboxResult {
  const { outcome, ended, ready, stdout, stderr, wallMs } = ending;
  const described = outcome === 'spawn-error' ? describeEnding(options, ending) : null;
  const guestRan = ready !== null && ending.failure === null && ending.missing.length === 0;
  return {
    ...emptyResult(
      outcome,
      planned,
      guestRan ? enforcementOf(options, planned.plan, dropped, ready) : nothingEnforced('no guest code ran', failedFence(ending, described)),
    ),
    ...(outcome === 'exit' ? exitOf(ended?.waitStatus ?? null) : {}),
    stdout: stdout.text(),
    stderr: stderr.text(),
    stdoutTruncated: stdout.truncated,
    stderrTruncated: stderr.truncated,
    durationMs: Math.round(wallMs),
    errorMessage: described?.message ?? '',
    error: described?.error ?? null,
    usage: usageOf(wallMs, ended?.usage ?? null),
    connections: [...ending.egress.connections],
    connectionsOmitted: ending.egress.omitted,
  };
}

/** The result of a run in which no process was started. */
export function notStarted(
  place: Place,
  cause: { outcome: 'canceled' | 'timeout' } | { outcome: 'spawn-error'; failure: DescribedFailure; fence?: Fence | null },
): SandboxResult {
  if (cause.outcome !== 'spawn-error') return emptyResult(cause.outcome, place, nothingEnforced('nothing was started'));
  const { failure, fence } = cause;
  const failed = fence === undefined || fence === null ? null : { fence, code: failure.error.code };
  return {
    ...emptyResult('spawn-error', place, nothingEnforced('nothing was started', failed)),
    errorMessage: failure.message,
    error: failure.error,
  };
}

/** Why a launch ended without the guest's own end. */
export function describeEnding({ command }: Pick<RunOptions, 'command'>, ending: Ending): DescribedFailure {
  const { failure, nonsense, missing, unserved, ended, exit } = ending;
  if (failure !== null) return describeStageFailure(failure, command, ended?.usage);
  if (unserved !== null) return setUpProblem(unserved, "cannot serve the sandbox's sockets", 'allowlist-unavailable').failure;
  if (nonsense !== null) return describeFailure('launcher-protocol', `the launcher sent what is no record: ${nonsense.message}`);
  if (missing.length > 0) return describeFailure('fence-not-verified', `the launcher did not verify: ${missing.join(', ')}`, { stage: 'verify' });
  if (ended !== null) return describeFailure('launcher-died', 'process 1 of the sandbox ended without a word');
  const how = exit.signal === null ? `exited with code ${exit.exitCode}` : `was killed from outside by ${signalName(exit.signal)}`;
  return describeFailure('launcher-died', `the launcher ${how} before the run had ended`);
}

function failedFence({ failure }: Ending, described: DescribedFailure | null): { fence: Fence; code: string } | null {
  if (failure === null || described === null) return null;
  const { code } = described.error;
  const fence = fenceOf(failure, code);
  return fence === null ? null : { fence, code };
}

function emptyResult(outcome: Outcome, place: Place, enforcement: Enforcement): SandboxResult {
  return {
    outcome,
    exitCode: null,
    signal: null,
    stdout: '',
    stderr: '',
    stdoutTruncated: false,
    stderrTruncated: false,
    durationMs: 0,
    cwd: place.cwd,
    cwdOwnedBySandbox: place.cwdOwnedBySandbox,
    nodeHeapMbApplied: place.nodeHeapMbApplied,
    errorMessage: '',
    error: null,
    usage: usageOf(0, null),
    enforcement,
    connections: [],
    connectionsOmitted: 0,
  };
}

function usageOf(wallMs: number, kernel: KernelUsage | null): Usage {
  const milliseconds = (us: number | null | undefined): number | null => (us === null || us === undefined ? null : us / 1000);
  return {
    wallMs: Math.round(wallMs * 1000) / 1000,
    cpuUserMs: milliseconds(kernel?.cpuUserUs),
    cpuSystemMs: milliseconds(kernel?.cpuSystemUs),
    peakMemoryBytes: kernel?.peakMemoryBytes ?? null,
    peakPids: kernel?.peakPids ?? null,
    oomKills: kernel?.oomKills ?? null,
    pidsRefused: kernel?.pidsRefused ?? null,
  };
}
