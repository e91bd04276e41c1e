import { closeAll } from '../launcher/descriptors.js';
import type { Native } from '../launcher/native.js';
import type { EgressLog, SandboxGateway } from '../egress/serve-sandbox.js';
import type { Policy } from '../egress/policy.js';
import type { RunOptions } from './options.js';

interface Listeners {
  /** `policy.onConnection` threw. */
  onThrow(error: unknown): void;
  /** The sandbox's sockets cannot be served. */
  onBroken(error: Error): void;
}

export interface RunEgressInput extends Listeners {
  policy: Policy;
  native: Native;
}

/** What one run needs to serve its allowlist; null where it has none, or shares the host's network. */
export function egressOf(
  { options, hasAllowlist, native }: { options: Pick<RunOptions, 'network'>; hasAllowlist?: boolean; native: Native },
  listeners: Listeners,
): RunEgress | null {
  const { network: policy } = options;
  return typeof policy === 'string' || hasAllowlist !== true ? null : new RunEgress({ policy, native, ...listeners });
}

/** The allowlisted network of one run, from the launcher's sockets to the log. */
export class RunEgress {
  readonly #input: RunEgressInput;
  #gateway: Promise<SandboxGateway | null> | null = null;

  constructor(input: RunEgressInput) {
    this.#input = input;
  }

  /** True once the launcher's sockets have come. What the guest sends before they are served waits in them. */
  get hasSockets(): boolean {
    return this.#gateway !== null;
  }

  /** Takes the descriptors over. */
  serve(descriptors: readonly number[], hasIpv6: boolean): void {
    if (this.hasSockets) return closeAll(descriptors);
    this.#gateway = this.#open(descriptors, hasIpv6).catch((error: Error) => {
      this.#input.onBroken(error);
      return null;
    });
  }

  /** Nothing runs in the sandbox any more; `close` follows. */
  guestGone(): void {
    void this.#gateway?.then((gateway) => gateway?.guestGone());
  }

  /** The sandbox is about to be ended; before the signal is sent, as the kernel resets its connections at once. */
  runEnding(): void {
    void this.#gateway?.then((gateway) => gateway?.runEnding());
  }

  /** Once the sandbox is gone, as `SandboxGateway.close`. Never rejects. */
  async close(quietMs: number, mostMs = quietMs): Promise<EgressLog> {
    const gateway = await this.#gateway;
    return gateway?.close(quietMs, mostMs) ?? { connections: [], omitted: 0 };
  }

  /** Nobody waits any more for what `close` is still delivering. */
  cut(): void {
    void this.#gateway?.then((gateway) => gateway?.cut());
  }

  async #open(descriptors: readonly number[], hasIpv6: boolean): Promise<SandboxGateway> {
    const { policy, native, onThrow } = this.#input;
    // Loaded already by whoever compiled the policy.
    const { serveSandbox } = await import('../egress/serve-sandbox.js');
    return serveSandbox({ descriptors, hasIpv6 }, { policy, native, onThrow });
  }
}
