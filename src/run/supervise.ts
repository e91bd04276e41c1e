import type { EgressLog } from '../egress/serve-sandbox.js';
import { closeAll } from '../launcher/descriptors.js';
import { launch } from '../launcher/launch.js';
import type { LauncherExit, RunningLaunch } from '../launcher/launch.js';
import type { Native } from '../launcher/native.js';
import { RecordError } from '../launcher/records.js';
import type { EndedRecord, FailureRecord, FenceBit, LauncherRecord, ReadyRecord, SocketsRecord } from '../launcher/records.js';
import type { AbortFan } from './abort.js';
import type { Attendant } from './attendant.js';
import { takeListener } from './attendant.js';
import { egressOf } from './egress.js';
import type { RunEgress } from './egress.js';
import type { Ending } from './ending.js';
import { GuestStreams } from './guest-streams.js';
import type { RunOptions } from './options.js';
import { outcomeOf } from './outcome.js';
import type { Outcome } from './result.js';

/** Long enough for a machine under load: a launcher that is killed leaves its cgroup to the host. */
const PATIENCE_MS = 5000;

/** What a guest that ended by itself has sent is still delivered until the deadline, but to nobody who takes nothing for so long. */
const QUIET_MS = 5000;
/** The least, and the most where the deadline is another's. */
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
  /** There from the end of `start` on; no event comes before. */
  #launch!: RunningLaunch;
  #streams!: GuestStreams;
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
    this.#streams = new GuestStreams({
      launch: this.#launch,
      options,
      onOverflow: (outcome) => this.#kill(outcome),
      onThrow: (error) => this.#onThrow(error),
    });
    attendant?.onLaunch({ finish: () => this.#kill('exit') });
    // After a block of the event loop timers come first, and whoever aborts may be the one who blocked it: what the launcher
    // said meanwhile must be heard before. The second turn is the first that is sure to have listened.
    const stop = (cause: 'timeout' | 'canceled') => setImmediate(() => setImmediate(() => this.#stop(cause)));
    if (attendant === null) this.#after(options.timeoutMs - this.#elapsed(), () => stop('timeout'));
    if (options.signal === null) return;
    this.#unsubscribe = aborts.subscribe(options.signal, () => stop('canceled'));
    if (options.signal.aborted) this.#stop('canceled');
  }

  #elapsed(): number {
    return performance.now() - this.#launch.startedAt;
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
    this.#streams.feed();
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
      if (cause !== 'canceled') return;
      this.#release();
      this.#egress?.cut();
      return;
    }
    this.#outcome ??= cause;
    if (this.#stopping !== 'no') return;
    // Nothing of the guest runs yet that could take a signal.
    if (this.#ready === null) return this.#kill(cause);
    this.#stopping = 'soft';
    const { shutdownSignal, gracePeriodMs } = this.#input.options;
    this.#egress?.runEnding();
    this.#launch.signal(shutdownSignal);
    this.#after(gracePeriodMs, () => this.#kill(cause));
  }

  #release(): void {
    if (this.#streams.release()) this.#outcome ??= 'canceled';
  }

  #kill(cause: Outcome): void {
    this.#outcome ??= cause;
    if (this.#stopping === 'hard' || this.#exited) return;
    this.#stopping = 'hard';
    this.#egress?.runEnding();
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
    const opened = this.#streams.open();
    this.#streams.endInput();
    const served = this.#outcome === null ? this.#egress?.close(QUIET_MS, this.#drainMs()) : this.#egress?.close(0);
    if (opened === null) {
      await served;
      this.#unsubscribe();
      return this.#fail(this.#streams.failure);
    }
    if (this.#outcome !== null) this.#release();
    await this.#streams.drain();
    const egress = (await served) ?? NO_EGRESS;
    this.#unsubscribe();
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
      stdout: opened.stdout,
      stderr: opened.stderr,
      thrown: this.#thrown,
    });
  }

  #drainMs(): number {
    const { options, attendant = null } = this.#input;
    return attendant === null ? Math.max(DRAIN_MS, options.timeoutMs - this.#elapsed()) : DRAIN_MS;
  }

  #after(milliseconds: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, milliseconds);
    this.#timers.add(timer);
  }
}
