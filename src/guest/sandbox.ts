import { randomBytes } from 'node:crypto';

import type { Policy } from '../egress/policy.js';
import { notStarted } from '../run/collect.js';
import type { Host } from '../run/host.js';
import type { SandboxResult } from '../run/result.js';
import { ownPlace } from '../run/own-place.js';
import { runPlanned } from '../run/run.js';
import { setUpProblem } from '../run/set-up-problem.js';
import type { Attendant, RunControl } from '../run/attendant.js';
import { Channel } from './channel.js';
import type { ChannelEvents } from './channel.js';
import type { Envelope, Reply } from './messages.js';
import type { RecentSandboxes } from './recent-sandboxes.js';
import type { Rehearsal, Runtime } from './runtime.js';

/** What a sandbox is made for, before its function is known. */
export interface Profile {
  memoryMb: number;
  /** The sandbox has no network of its own, but the machine's. */
  sharesNetwork: boolean;
  /** What the namespace carries. */
  network: 'none' | Policy;
  /** What the runtime lets through of it, as `host:port`. */
  net: readonly string[];
  import: readonly string[];
}

export interface SandboxSetup {
  host: Host;
  recent: RecentSandboxes;
  runtime: Runtime;
  profile: Profile;
  isolation: 'strict' | 'best-effort';
  /** Milliseconds after which the launcher ends the sandbox by itself, should this process be stuck. */
  backstopMs: number;
  /** For a sandbox that has time for that. */
  rehearse: Rehearsal;
}

/** Milliseconds between the soft signal and SIGKILL. */
const GRACE_MS = 250;
const TMP_MB = 64;
const PASSWORD_BYTES = 32;

/** One sandbox with a runtime in it that waits for its one function. */
export class GuestSandbox implements Attendant {
  /** Resolves when nothing is left of the sandbox. Never rejects. */
  readonly result: Promise<SandboxResult>;
  /** Resolves when the runtime is up and waits. */
  readonly ready: Promise<void>;
  readonly files: Attendant['files'];
  readonly port: number;
  readonly #setup: SandboxSetup;
  readonly #aborting = new AbortController();
  #channel: Channel;
  #control: RunControl | null = null;
  #work: { envelope: Envelope; events: ChannelEvents } | null = null;
  #onReady: () => void = () => undefined;
  #finished = false;

  constructor(setup: SandboxSetup) {
    this.#setup = setup;
    this.files = setup.runtime.files;
    this.port = portBeside(setup.profile.network);
    this.ready = new Promise((resolve) => (this.#onReady = resolve));
    this.#channel = this.#openChannel();
    const running = setup.profile.sharesNetwork ? this.#runAmongOthers() : this.#run(this.port, undefined);
    this.result = running.catch(couldNotRun).finally(() => this.#channel.close());
  }

  /** Hands the function over. To be called once. */
  dispatch(envelope: Envelope, events: ChannelEvents): void {
    this.#work = { envelope, events };
    this.#channel.start(envelope);
  }

  reply(id: number, reply: Reply): void {
    this.#channel.reply(id, reply);
  }

  /** Softly at first, then SIGKILL. */
  stop(): void {
    this.#aborting.abort();
  }

  /** At once. */
  finish(): void {
    this.#finished = true;
    if (this.#control === null) this.stop();
    else this.#control.finish();
  }

  onLaunch(control: RunControl): void {
    const again = this.#control !== null;
    this.#control = control;
    // What was told to the launch before, which has failed, holds for this one.
    if (this.#finished) return control.finish();
    if (!again || this.#setup.profile.sharesNetwork) return;
    // The listener of the launch that failed has gone with its sandbox.
    this.#channel.close();
    this.#channel = this.#openChannel();
    if (this.#work !== null) this.#channel.start(this.#work.envelope);
  }

  onListener(descriptor: number): void {
    this.#channel.listen(descriptor);
  }

  /** In the machine's own network: the runtime gets a password by its standard input, before there is guest code to read it. */
  async #runAmongOthers(): Promise<SandboxResult> {
    const password = randomBytes(PASSWORD_BYTES);
    return this.#run(await this.#channel.listenAmongOthers(password), password);
  }

  async #run(port: number, password: Buffer | undefined): Promise<SandboxResult> {
    const { host, recent, runtime, profile, isolation, backstopMs, rehearse } = this.#setup;
    const { network } = profile;
    const setting = { ...profile, port, rehearse, password: password !== undefined };
    const { options, plan } = recent.kindOf(
      {
        command: runtime.command,
        args: runtime.args(setting),
        env: runtime.env(setting),
        timeoutMs: backstopMs,
        gracePeriodMs: GRACE_MS,
        filesystem: { tmpMb: TMP_MB },
        limits: { memoryMb: profile.memoryMb + runtime.overheadMb(profile.memoryMb), pids: runtime.pids },
        isolation,
      },
      network,
    );
    return runPlanned(host, { ...options, network, stdin: password ?? null, signal: this.#aborting.signal }, this, plan);
  }

  #openChannel(): Channel {
    const channel = new Channel({
      onMessage: (message) => this.#work?.events.onMessage(message),
      onBroken: (error) => {
        this.#work?.events.onBroken(error);
        this.finish();
      },
    });
    void channel.ready.then(this.#onReady);
    return channel;
  }
}

/** Our failing is a value, too: an option that planning found wrong, a loopback without a free port. */
function couldNotRun(error: unknown): SandboxResult {
  const problem = setUpProblem(error, 'cannot start a sandbox', 'set-up-failed');
  return notStarted(ownPlace({ cwd: null }), { outcome: 'spawn-error', ...problem });
}

/** A port for the channel that the allowlist leaves free. */
function portBeside(network: Profile['network']): number {
  const taken = network === 'none' ? [] : [...network.ports.ipv4, ...network.ports.ipv6];
  let port = 1;
  while (taken.includes(port)) port++;
  return port;
}
