import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { refusal } from './addresses.js';
import type { Dial } from './dial.js';
import type { ConnectionLog } from './log.js';
import type { NameTable } from './name-table.js';
import { isOwnConnection } from './own-addresses.js';
import type { Pace } from './pace.js';
import { allowsLiteral, ruleForName } from './policy.js';
import type { Policy } from './policy.js';
import { Relay, reset } from './relay.js';
import type { ByteBudget, RunState } from './relay.js';
import type { Resolve } from './resolve.js';
import { sniGate } from './sni-gate.js';

/** What all attempts of a run share. */
export interface EgressContext {
  policy: Policy;
  names: NameTable;
  log: ConnectionLog;
  budget: ByteBudget;
  run: RunState;
  /** Of what is resolved and connected for the guest. */
  pace: Pace;
  resolve: Resolve;
  dial: Dial;
  /** Addresses of the host's own interfaces, at this moment. */
  ownAddresses: () => Promise<ReadonlySet<string>>;
}

/** Where the guest wants to go. `checkSni`: the name that a TLS hello must carry. */
interface Target {
  host: string;
  addresses: string[] | null;
  checkSni: boolean;
}

/** Not allowed: by the policy, by what DNS said, or because DNS said nothing. */
class Refused extends Error {
  readonly address: string | null;

  constructor(reason: string, address: string | null = null) {
    super(reason);
    this.address = address;
  }
}

/** One connection of the guest, from its arrival to its entry in the log. */
export class Attempt {
  /** Resolves when nothing of it is left; never rejects. */
  readonly done: Promise<void>;
  readonly #context: EgressContext;
  readonly #guest: Socket;
  readonly #port: number;
  readonly #dialled: string;
  readonly #at = Date.now();
  readonly #ending = new AbortController();
  #relay: Relay | null = null;
  /** Where it was to be connected to, once that was checked. */
  #checked: readonly string[] = [];
  #guestGone = false;

  /** `guest` is paused and was accepted on the listener for `port`. */
  constructor(context: EgressContext, guest: Socket, port: number) {
    this.#context = context;
    this.#guest = guest;
    this.#port = port;
    this.#dialled = dialledAddress(guest);
    // Until a relay watches it; a reset meanwhile shows there.
    guest.on('error', () => {});
    this.done = this.#run();
  }

  stop(reason: string): void {
    this.#ending.abort(new Error(reason));
    this.#relay?.stop(reason);
  }

  /** Bytes of the guest's that are on their way to the server, and those that wait. */
  get delivered(): number {
    return this.#relay?.delivered ?? 0;
  }

  get waiting(): number {
    return this.#relay?.waiting ?? 0;
  }

  guestGone(): void {
    this.#guestGone = true;
    this.#relay?.guestGone();
  }

  /** Ends it before anything was looked up. */
  static refuse(context: EgressContext, guest: Socket, port: number, reason: string): void {
    const address = dialledAddress(guest);
    const name = context.names.nameOf(address);
    guest.on('error', () => {});
    reset(guest);
    context.log.refuse({ host: name ?? address, port, address: name === undefined ? address : null, reason });
  }

  async #run(): Promise<void> {
    const { log } = this.#context;
    let host = this.#context.names.nameOf(this.#dialled) ?? this.#dialled;
    try {
      const target = this.#target();
      host = target.host;
      await this.#wait();
      const server = await this.#connect(target);
      const address = server.remoteAddress ?? null;
      const result = await this.#join(server, target);
      const { reason, refused, bytesSent, bytesReceived } = result;
      const verdict = refused ? 'refused' : 'allowed';
      log.add({ at: this.#at, host, port: this.#port, address, verdict, reason, bytesSent, bytesReceived, durationMs: Date.now() - this.#at });
    } catch (error) {
      reset(this.#guest);
      this.#logFailure(host, error as Error);
    }
  }

  #target(): Target {
    const { names, policy } = this.#context;
    const name = names.nameOf(this.#dialled);
    if (name === undefined) {
      if (!allowsLiteral(policy, this.#dialled, this.#port)) throw new Refused('not in the allowlist', this.#dialled);
      return { host: this.#dialled, addresses: [this.#dialled], checkSni: false };
    }
    const rule = ruleForName(policy, name, this.#port);
    if (rule === null) throw new Refused(`port ${this.#port} of this host is not in the allowlist`);
    const pin = policy.pins.get(name);
    return { host: name, addresses: pin === undefined ? null : [pin], checkSni: rule === 'match' };
  }

  async #wait(): Promise<void> {
    const { signal } = this.#ending;
    const wait = this.#context.pace.reserve();
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
  }

  async #connect(target: Target): Promise<Socket> {
    const { connectTimeoutMs } = this.#context.policy.limits;
    const timer = setTimeout(() => this.#ending.abort(new Error(`not connected within ${connectTimeoutMs} ms`)), connectTimeoutMs);
    try {
      this.#checked = await this.#checkedAddresses(target);
      const server = await this.#context.dial(this.#checked, this.#port, this.#ending.signal);
      this.#refuseOwn(server);
      return server;
    } finally {
      clearTimeout(timer);
    }
  }

  /** An address may have become the host's own since they were listed. No byte has passed yet. */
  #refuseOwn(server: Socket): void {
    if (!isOwnConnection(server)) return;
    const address = server.remoteAddress ?? '';
    const reason = refusal(address, { open: this.#context.policy.open, own: new Set([address]) });
    if (reason === null) return;
    server.on('error', () => {});
    reset(server);
    throw new Refused(`${address} may not be reached: ${reason}`, address);
  }

  /** One bad address among good ones refuses them all: whoever answers like that is not to be trusted with the rest. */
  async #checkedAddresses({ host, addresses }: Target): Promise<string[]> {
    const { resolve, ownAddresses, policy } = this.#context;
    const resolved = addresses ?? resolve(host, this.#ending.signal);
    // Side by side, as both take their time. Where either fails, nothing is known that could be allowed.
    const [found, own] = await Promise.all([resolved, ownAddresses()]).catch((error: Error) => {
      throw new Refused(error.message);
    });
    for (const address of found) {
      const reason = refusal(address, { open: policy.open, own });
      if (reason !== null) throw new Refused(`${address} may not be reached: ${reason}`, address);
    }
    return found;
  }

  #join(server: Socket, target: Target): Relay['done'] {
    const { budget, run, policy } = this.#context;
    const gate = target.checkSni ? sniGate(target.host) : null;
    this.#relay = new Relay(this.#guest, server, { gate, budget, run, idleTimeoutMs: policy.limits.idleTimeoutMs });
    if (this.#guestGone) this.#relay.guestGone();
    if (this.#ending.signal.aborted) this.#relay.stop((this.#ending.signal.reason as Error).message);
    return this.#relay.done;
  }

  #logFailure(host: string, error: Error): void {
    const { log } = this.#context;
    if (error instanceof Refused) {
      log.refuse({ at: this.#at, host, port: this.#port, address: error.address, reason: error.message });
      return;
    }
    // The rules let it through, but there was nobody to talk to. The time that ran out is no one address's, unless there is one only.
    const [only = null, ...others] = this.#checked;
    const address = (error as { address?: string }).address ?? (others.length === 0 ? only : null);
    log.add({ at: this.#at, host, port: this.#port, address, verdict: 'allowed', reason: error.message, bytesSent: 0, bytesReceived: 0, durationMs: Date.now() - this.#at });
  }
}

/** A listener of both families shows IPv4 as mapped; of a socket that is closed already nothing is known. */
export function dialledAddress(guest: Socket): string {
  return (guest.localAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
}
