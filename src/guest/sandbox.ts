import type { Policy } from '../egress/policy.js';
import type { Host } from '../run/host.js';
import { validateOptions } from '../run/options.js';
import type { SandboxResult } from '../run/result.js';
import { runPlanned } from '../run/run.js';
import type { Attendant, RunControl } from '../run/attendant.js';
import { Channel } from './channel.js';
import type { ChannelEvents } from './channel.js';
import type { Envelope, Reply } from './messages.js';
import type { Runtime } from './runtime.js';

/** What a sandbox is made for, before its function is known. */
export interface Profile {
  memoryMb: number;
  /** What the namespace carries. */
  network: 'none' | Policy;
  /** What the runtime lets through of it, as `host:port`. */
  net: readonly string[];
  import: readonly string[];
}

export interface SandboxSetup {
  host: Host;
  runtime: Runtime;
  profile: Profile;
  isolation: 'strict' | 'best-effort';
  /** Milliseconds after which the launcher ends the sandbox by itself, should this process be stuck. */
  backstopMs: number;
  /** The runtime loads what functions need before it is ready: for a sandbox that has time for that. */
  rehearse: boolean;
}

/** Milliseconds between the soft signal and SIGKILL. */
const GRACE_MS = 250;
const TMP_MB = 64;

/** One sandbox with a runtime in it that waits for its one function. */
export class GuestSandbox implements Attendant {
  /** Resolves when nothing is left of the sandbox. */
  readonly result: Promise<SandboxResult>;
  /** Resolves when the runtime is up and waits. */
  readonly ready: Promise<void>;
  readonly files: Attendant['files'];
  readonly port: number;
  readonly #aborting = new AbortController();
  #channel: Channel | null = null;
  #control: RunControl | null = null;
  #work: { envelope: Envelope; events: ChannelEvents } | null = null;
  #onReady: () => void = () => undefined;

  constructor({ host, runtime, profile, isolation, backstopMs, rehearse }: SandboxSetup) {
    this.files = runtime.files;
    this.port = portBeside(profile.network);
    this.ready = new Promise((resolve) => (this.#onReady = resolve));
    const setting = { ...profile, port: this.port, rehearse };
    const options = validateOptions({
      command: runtime.command,
      args: runtime.args(setting),
      env: runtime.env(setting),
      timeoutMs: backstopMs,
      gracePeriodMs: GRACE_MS,
      signal: this.#aborting.signal,
      filesystem: { tmpMb: TMP_MB },
      limits: { memoryMb: profile.memoryMb + runtime.overheadMb(profile.memoryMb), pids: runtime.pids },
      isolation,
    });
    this.result = runPlanned(host, { ...options, network: profile.network }, this).finally(() => this.#channel?.close());
  }

  /** Hands the function over. To be called once. */
  dispatch(envelope: Envelope, events: ChannelEvents): void {
    this.#work = { envelope, events };
    this.#channel?.start(envelope);
  }

  reply(id: number, reply: Reply): void {
    this.#channel?.reply(id, reply);
  }

  /** Softly at first, then SIGKILL. */
  stop(): void {
    this.#aborting.abort();
  }

  /** At once. */
  finish(): void {
    if (this.#control === null) this.stop();
    else this.#control.finish();
  }

  onLaunch(control: RunControl): void {
    this.#control = control;
    // Of a launch that failed and is tried again.
    this.#channel?.close();
    this.#channel = new Channel({
      onMessage: (message) => this.#work?.events.onMessage(message),
      onBroken: (error) => {
        this.#work?.events.onBroken(error);
        this.finish();
      },
    });
    void this.#channel.ready.then(this.#onReady);
    if (this.#work !== null) this.#channel.start(this.#work.envelope);
  }

  onListener(descriptor: number): void {
    this.#channel?.listen(descriptor);
  }
}

/** A port for the channel that the allowlist leaves free. */
function portBeside(network: Profile['network']): number {
  const taken = network === 'none' ? [] : [...network.ports.ipv4, ...network.ports.ipv6];
  let port = 1;
  while (taken.includes(port)) port++;
  return port;
}
