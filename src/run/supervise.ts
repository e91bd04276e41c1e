import type { Socket } from 'node:net';

import type { EgressLog } from '../egress/serve-sandbox.js';
import { closeAll } from '../launcher/descriptors.js';
import { launch } from '../launcher/launch.js';
import type { GuestStreams, LauncherExit, RunningLaunch } from '../launcher/launch.js';
import type { Native } from '../launcher/native.js';
import { RecordError } from '../launcher/records.js';
import type { EndedRecord, FailureRecord, FenceBit, LauncherRecord, ReadyRecord, SocketsRecord } from '../launcher/records.js';
import type { AbortFan } from './abort.js';
import { Capture } from './capture.js';
import type { OnChunk } from './capture.js';
import { drained } from './drain.js';
import type { Attendant } from './attendant.js';
import { takeListener } from './attendant.js';
import { egressOf } from './egress.js';
import type { RunEgress } from './egress.js';
import type { Ending } from './ending.js';
import type { RunOptions } from './options.js';
import { outcomeOf } from './outcome.js';
import type { Outcome } from './result.js';
import { feedStdin } from './stdin.js';
import type { Feed } from './stdin.js';

/** Long enough for a machine under load: a launcher that is killed leaves its cgroup to the host. */
const PATIENCE_MS = 5000;

/** What a guest that ended by itself has sent is still delivered, but the result waits no longer for it. */
const DRAIN_MS = 1000;
const NO_EGRESS: EgressLog = { connections: [], omitted: 0 };

export interface SuperviseInput {
  native: Native;
  launcher: string;
  /** The encoded plan. */
  plan: Uint8Array;
  options: RunOptions;
  /** Whether the launcher was asked for the sockets of an allowlist. */
  hasAllowlist?: boolean;
  aborts: AbortFan;
  /** How long the launcher may take to do what it was told, before the next harder means. Default: 5000. */
  patienceMs?: number;
  /** Serves the run from outside, which then has no deadline of its own here. */
  attendant?: Attendant | null;
  /** Fences that this run must not be without and that are not among the verified ones. */
  missing(verified: ReadonlySet<FenceBit>): FenceBit[];
}

/** Starts one launcher and sees it through to its end. Rejects when the machine has no more descriptors or memory for it. */
export async function supervise(input: SuperviseInput): Promise<Ending> {
  const supervision = new Supervision(input);
  await supervision.start();
  return supervision.ending;
}

class Supervision {
  readonly ending: Promise<Ending>;
  readonly #input: SuperviseInput;
  readonly #startedAt = performance.now();
  /** There from the end of `start` on; no event comes before. */
  #launch!: RunningLaunch;
  #streams: GuestStreams | null = null;
  #captures: { stdout: Capture; stderr: Capture } | null = null;
  #unsubscribe: () => void = () => undefined;
  readonly #timers = new Set<NodeJS.Timeout>();
  #settle: (ending: Ending) => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  #outcome: Outcome | null = null;
  #ready: ReadyRecord | null = null;
  #failure: FailureRecord | null = null;
  #ended: EndedRecord | null = null;
  #missing: FenceBit[] = [];
  #nonsense: RecordError | null = null;
  #unserved: Error | null = null;
  readonly #egress: RunEgress | null;
  #thrown: { error: unknown } | null = null;
  /** Why the streams could not be opened. */
  #broken: { error: unknown } | null = null;
  #feed: Feed | null = null;
  #stopping: 'no' | 'soft' | 'hard' = 'no';
  #exited = false;

  constructor(input: SuperviseInput) {
    this.#input = input;
    this.ending = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
    this.#egress = egressOf(input, {
      onThrow: (error) => this.#onThrow(error),
      onBroken: (error) => {
        this.#unserved = error;
        this.#kill('spawn-error');
      },
    });
  }

  async start(): Promise<void> {
    const { native, launcher, plan, options, aborts, attendant = null } = this.#input;
    this.#launch = await launch(
      native,
      { launcher, plan, withStdin: options.stdin !== null },
      {
        onRecord: (record) => this.#onRecord(record),
        onSockets: (record, descriptors) => this.#onSockets(record, descriptors),
        onNonsense: (error) => this.#onNonsense(error),
        onExit: (exit) => void this.#onExit(exit),
      },
    );
    setImmediate(() => this.#open());
    attendant?.onLaunch({ finish: () => this.#kill('exit') });
    // After a block of the event loop the timers come first: what the launcher said meanwhile must be heard before.
    if (attendant === null) this.#after(options.timeoutMs - this.#elapsed(), () => setImmediate(() => this.#stop('timeout')));
    if (options.signal === null) return;
    this.#unsubscribe = aborts.subscribe(options.signal, () => this.#stop('canceled'));
    if (options.signal.aborted) this.#stop('canceled');
  }

  #elapsed(): number {
    return performance.now() - this.#startedAt;
  }

  /** The streams, in a turn of the event loop after that of the launch, unless a record comes first. */
  #open(): void {
    if (this.#streams !== null || this.#broken !== null) return;
    const { options } = this.#input;
    try {
      this.#streams = this.#launch.openStreams();
    } catch (error) {
      this.#broken = { error };
      return;
    }
    const { stdout, stderr } = this.#streams;
    this.#captures = {
      stdout: this.#capture(stdout, 'overflow-stdout', options.maxStdoutBytes, options.onStdout),
      stderr: this.#capture(stderr, 'overflow-stderr', options.maxStderrBytes, options.onStderr),
    };
  }

  #capture(stream: Socket, overflow: Outcome, maxBytes: number, onChunk: OnChunk | null): Capture {
    return new Capture(stream, {
      maxBytes,
      keep: this.#input.options.keepOutput,
      onChunk,
      onOverflow: () => this.#kill(overflow),
      onThrow: (error) => this.#onThrow(error),
    });
  }

  #onThrow(error: unknown): void {
    this.#thrown ??= { error };
    this.#kill('canceled');
  }

  #onSockets({ hasIpv6 }: SocketsRecord, all: number[]): void {
    const { options, attendant = null } = this.#input;
    const descriptors = attendant === null ? all : takeListener(all, options.network, attendant);
    if (this.#egress !== null) return this.#egress.serve(descriptors, hasIpv6);
    closeAll(descriptors);
    if (attendant !== null) return;
    this.#launch.hangUp();
    this.#onNonsense(new RecordError('sockets of an allowlist that there is not'));
  }

  #onRecord(record: Exclude<LauncherRecord, SocketsRecord>): void {
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
    if (this.#egress?.hasSockets === false) {
      this.#launch.hangUp();
      return this.#onNonsense(new RecordError('ready, but no sockets of the allowlist'));
    }
    this.#open();
    const { stdin } = this.#input.options;
    const pipe = this.#streams?.stdin ?? null;
    // Not before: a launch that fails may be tried again, and a stream can be read only once.
    if (stdin !== null && pipe !== null) this.#feed = feedStdin(pipe, stdin);
  }

  #onEnded(record: EndedRecord): void {
    this.#ended ??= record;
    this.#egress?.guestGone();
    const outcome = outcomeOf(record, this.#input.options, this.#ready !== null);
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
    if (this.#exited || this.#ended !== null || this.#failure !== null) {
      if (cause === 'canceled') this.#release();
      return;
    }
    this.#outcome ??= cause;
    if (this.#stopping !== 'no') return;
    // Nothing of the guest runs yet that could take a signal.
    if (this.#ready === null) return this.#kill(cause);
    this.#stopping = 'soft';
    const { shutdownSignal, gracePeriodMs } = this.#input.options;
    this.#launch.signal(shutdownSignal);
    this.#after(gracePeriodMs, () => this.#kill(cause));
  }

  /** Ends the wait for promises of onStdout and onStderr that are not settled. */
  #release(): void {
    for (const capture of Object.values(this.#captures ?? {})) {
      if (capture.isHeldUp) this.#outcome ??= 'canceled';
      capture.release();
    }
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
    const { patienceMs = PATIENCE_MS } = this.#input;
    this.#after(patienceMs, () => this.#launch.hangUp());
    this.#after(2 * patienceMs, () => this.#launch.killLauncher());
  }

  async #onExit(exit: LauncherExit): Promise<void> {
    this.#exited = true;
    const wallMs = this.#elapsed();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#open();
    this.#feed?.stop();
    this.#streams?.stdin?.destroy();
    const served = this.#egress?.close(this.#outcome === null ? DRAIN_MS : 0);
    if (this.#streams === null || this.#captures === null) {
      this.#unsubscribe();
      await served;
      return this.#fail(this.#broken?.error);
    }
    if (this.#outcome !== null) this.#release();
    await drained([this.#captures.stdout, this.#captures.stderr]);
    this.#unsubscribe();
    const egress = (await served) ?? NO_EGRESS;
    this.#streams.stdout.destroy();
    this.#streams.stderr.destroy();
    this.#settle({
      // A launcher that ends without a word was killed, or is broken.
      outcome: this.#outcome ?? (this.#ended === null ? 'spawn-error' : 'exit'),
      ready: this.#ready,
      failure: this.#failure,
      ended: this.#ended,
      missing: this.#missing,
      nonsense: this.#nonsense,
      unserved: this.#unserved,
      egress,
      exit,
      wallMs,
      ...this.#captures,
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
