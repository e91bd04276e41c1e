import { launch } from '../launcher/launch.js';
import type { LauncherExit, RunningLaunch } from '../launcher/launch.js';
import type { Native } from '../launcher/native.js';
import type { EndedRecord, FailureRecord, FenceBit, LauncherRecord, ReadyRecord, RecordError } from '../launcher/records.js';
import type { AbortFan } from './abort.js';
import { Capture } from './capture.js';
import type { OnChunk } from './capture.js';
import { drained } from './drain.js';
import type { RunOptions } from './options.js';
import { outcomeOf } from './outcome.js';
import type { Outcome } from './result.js';
import { feedStdin } from './stdin.js';
import type { Feed } from './stdin.js';

/** How long a launcher may take to do what it was told, before the next harder means. */
const PATIENCE_MS = 5000;

export interface SuperviseInput {
  native: Native;
  launcher: string;
  /** The encoded plan. */
  plan: Uint8Array;
  options: RunOptions;
  aborts: AbortFan;
  /** Fences that this run must not be without, of those that were verified. */
  missing(verified: ReadonlySet<FenceBit>): FenceBit[];
}

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
  exit: LauncherExit;
  wallMs: number;
  stdout: Capture;
  stderr: Capture;
  /** What onStdout or onStderr threw. */
  thrown: { error: unknown } | null;
}

/** Starts one launcher and sees it through to its end. @throws what `launch` throws, before anything runs. */
export function supervise(input: SuperviseInput): Promise<Ending> {
  return new Supervision(input).ending;
}

class Supervision {
  readonly ending: Promise<Ending>;
  readonly #input: SuperviseInput;
  readonly #startedAt = performance.now();
  readonly #launch: RunningLaunch;
  readonly #stdout: Capture;
  readonly #stderr: Capture;
  readonly #unsubscribe: () => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  #settle: (ending: Ending) => void = () => undefined;
  #outcome: Outcome | null = null;
  #ready: ReadyRecord | null = null;
  #failure: FailureRecord | null = null;
  #ended: EndedRecord | null = null;
  #missing: FenceBit[] = [];
  #nonsense: RecordError | null = null;
  #thrown: { error: unknown } | null = null;
  #feed: Feed | null = null;
  #stopping: 'no' | 'soft' | 'hard' = 'no';
  #exited = false;

  constructor(input: SuperviseInput) {
    const { options } = input;
    this.#input = input;
    this.ending = new Promise((resolve) => (this.#settle = resolve));
    this.#launch = launch(
      input.native,
      { launcher: input.launcher, plan: input.plan, withStdin: options.stdin !== null },
      {
        onRecord: (record) => this.#onRecord(record),
        onNonsense: (error) => this.#onNonsense(error),
        onExit: (exit) => void this.#onExit(exit),
      },
    );
    this.#stdout = this.#capture('stdout', options.maxStdoutBytes, options.onStdout);
    this.#stderr = this.#capture('stderr', options.maxStderrBytes, options.onStderr);
    this.#unsubscribe =
      options.signal === null ? () => undefined : input.aborts.subscribe(options.signal, () => this.#stop('canceled'));
    // After a block of the event loop the timers come first: what the launcher said meanwhile must be heard before.
    this.#after(options.timeoutMs, () => setImmediate(() => this.#stop('timeout')));
  }

  #capture(name: 'stdout' | 'stderr', maxBytes: number, onChunk: OnChunk | null): Capture {
    return new Capture(this.#launch[name], {
      maxBytes,
      keep: this.#input.options.keepOutput,
      onChunk,
      onOverflow: () => this.#kill(`overflow-${name}`),
      onThrow: (error) => {
        this.#thrown ??= { error };
        this.#kill('canceled');
      },
    });
  }

  #onRecord(record: LauncherRecord): void {
    switch (record.kind) {
      case 'ready':
        return this.#onReady(record);
      case 'failure':
        this.#failure ??= record;
        this.#outcome ??= 'spawn-error';
        return this.#expectExit();
      case 'ended':
        return this.#onEnded(record);
    }
  }

  #onReady(record: ReadyRecord): void {
    this.#ready = record;
    this.#missing = this.#input.missing(record.fences);
    if (this.#missing.length > 0) return this.#kill('spawn-error');
    const { stdin } = this.#input.options;
    // Not before: a launch that fails may be tried again, and a stream can be read only once.
    if (stdin !== null && this.#launch.stdin !== null) this.#feed = feedStdin(this.#launch.stdin, stdin);
  }

  #onEnded(record: EndedRecord): void {
    this.#ended ??= record;
    const outcome = outcomeOf(record, this.#input.options);
    // An exit is the outcome only if the output that came before it, and may still wait in the pipes, stays inside its caps.
    if (outcome !== 'exit') this.#outcome ??= outcome;
    this.#expectExit();
  }

  #onNonsense(error: RecordError): void {
    this.#nonsense ??= error;
    this.#outcome ??= 'spawn-error';
    this.#expectExit();
  }

  /** The soft signal first, SIGKILL after the grace period. */
  #stop(cause: 'timeout' | 'canceled'): void {
    if (this.#exited || this.#ended !== null || this.#failure !== null) return;
    this.#outcome ??= cause;
    if (this.#stopping !== 'no') return;
    // Nothing of the guest runs yet that could take a signal.
    if (this.#ready === null) return this.#kill(cause);
    this.#stopping = 'soft';
    const { shutdownSignal, gracePeriodMs } = this.#input.options;
    this.#launch.signal(shutdownSignal);
    this.#after(gracePeriodMs, () => this.#kill(cause));
  }

  #kill(cause: Outcome): void {
    this.#outcome ??= cause;
    if (this.#stopping === 'hard' || this.#exited) return;
    this.#stopping = 'hard';
    this.#launch.kill();
    this.#expectExit();
  }

  /** A launcher hangs only with its host's help (a stopped process, a dead disk), but a run must end then too. */
  #expectExit(): void {
    this.#after(PATIENCE_MS, () => this.#launch.hangUp());
    this.#after(2 * PATIENCE_MS, () => this.#launch.killLauncher());
  }

  async #onExit(exit: LauncherExit): Promise<void> {
    this.#exited = true;
    const wallMs = performance.now() - this.#startedAt;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#unsubscribe();
    this.#feed?.stop();
    this.#launch.stdin?.destroy();
    await drained([this.#stdout, this.#stderr]);
    this.#launch.stdout.destroy();
    this.#launch.stderr.destroy();
    this.#settle({
      // A launcher that ends without a word was killed, or is broken.
      outcome: this.#outcome ?? (this.#ended === null ? 'spawn-error' : 'exit'),
      ready: this.#ready,
      failure: this.#failure,
      ended: this.#ended,
      missing: this.#missing,
      nonsense: this.#nonsense,
      exit,
      wallMs,
      stdout: this.#stdout,
      stderr: this.#stderr,
      thrown: this.#thrown,
    });
  }

  #after(milliseconds: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, milliseconds);
    this.#timers.add(timer);
  }
}
