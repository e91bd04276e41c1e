import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

import type { Connection } from '../run/result.js';
import { Attempt, dialledAddress } from './attempt.js';
import type { EgressContext } from './attempt.js';
import { dial } from './dial.js';
import { answer } from './dns.js';
import { serveTcp, serveUdp } from './dns-server.js';
import type { DnsDesk, Endpoint } from './dns-server.js';
import { asciiName, isMetadataName } from './host-name.js';
import { Lookups } from './lookups.js';
import { ConnectionLog } from './log.js';
import { NameTable } from './name-table.js';
import { recentOwnAddresses } from './own-addresses.js';
import { Pace } from './pace.js';
import type { Opener } from './packet.js';
import { allowedName } from './policy.js';
import type { Policy } from './policy.js';
import { NOT_TAKEN, RUN_ENDED } from './relay.js';
import { dnsResolver } from './resolve.js';
import { Told } from './told.js';
import { within } from './within.js';

/** The sockets inside the sandbox's network namespace. The gateway owns the descriptors from the call on. */
export interface GatewaySockets {
  /** TCP listeners; `port` is the one that the guest dials. */
  listeners: readonly { port: number; endpoint: Endpoint }[];
  dnsUdp: Endpoint;
  dnsTcp: Endpoint;
}

export interface GatewayOptions {
  policy: Policy;
  sockets: GatewaySockets;
  /** Gets what `policy.onConnection` throws or its promise is rejected with, up to the end of `close`: the caller's own error. */
  onThrow: (error: unknown) => void;
  /** What only the kernel knows of the sockets. Asked once, before they are closed. */
  kernel?: {
    /** Queries that it dropped. */
    droppedQueries: () => number;
    /** Connections that were begun: to the resolver, and to the listeners elsewhere than on loopback. */
    begun: () => number;
  };
  /** In place of the defaults: the system's resolver, the host's own addresses, the range 198.18.0.0/15. */
  replace?: Partial<Pick<EgressContext, 'resolve' | 'dial' | 'ownAddresses' | 'names'>>;
}

// What a guest that is gone has sent is still delivered, but no result waits longer for it.
const DRAIN_MS = 1000;
const QUIET_MS = 1000;
// What the caller does with the log may still fail, but no result waits longer for it either.
const CALLER_MS = 2000;

// Each asks the host's resolver twice and takes a port of the host, which TCP keeps for a minute after the end: a guest that
// does nothing else would use up both for everybody on the machine. What is more waits for its turn.
const CONNECTIONS_PER_SECOND = 200;
const CONNECTIONS_AT_ONCE = 1000;

/** As the launcher's own, which listening once more would cut down. */
const BACKLOG = 1024;

/** The host's side of an allowlisted network: the guest's only way out. */
export class Gateway {
  readonly #context: EgressContext;
  readonly #told: Told;
  readonly #lookups = new Lookups();
  readonly #attempts = new Set<Attempt>();
  /** Told when the guest is gone, before anything is closed. */
  readonly #listening: (() => void)[] = [];
  readonly #closers: (() => Promise<void>)[] = [];
  #closing: Promise<void> | null = null;
  readonly #kernel: NonNullable<GatewayOptions['kernel']> | null;
  #accepted = 0;
  readonly #cut = new AbortController();
  /** Whatever came in counts, connections and queries. */
  #stirs = 0;

  private constructor(options: GatewayOptions) {
    const { policy, replace, onThrow, kernel } = options;
    this.#kernel = kernel ?? null;
    this.#told = new Told((connection) => policy.onConnection?.(connection), onThrow);
    this.#context = {
      policy,
      log: new ConnectionLog((connection) => this.#told.tell(connection)),
      budget: { left: policy.limits.maxBytes },
      run: { ending: false },
      pace: new Pace(CONNECTIONS_PER_SECOND, undefined, CONNECTIONS_AT_ONCE),
      names: replace?.names ?? new NameTable(),
      resolve: replace?.resolve ?? dnsResolver(),
      dial: replace?.dial ?? dial,
      ownAddresses: replace?.ownAddresses ?? recentOwnAddresses(),
    };
  }

  /** Rejects where one of the sockets cannot be served; then all of them are closed. */
  static async open(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options);
    const { listeners, dnsUdp, dnsTcp } = options.sockets;
    // Together, so that each descriptor has an owner that closes it, whichever of them fails.
    const opened = await Promise.allSettled([
      gateway.#openUdp(dnsUdp),
      gateway.#openTcp(dnsTcp),
      ...listeners.map(({ port, endpoint }) => gateway.#listen(port, endpoint)),
    ]);
    const failed = opened.find((result) => result.status === 'rejected');
    if (!failed) return gateway;
    await gateway.close(0);
    throw failed.reason;
  }

  /** Every attempt that is over, in the order of their ends, capped. */
  get connections(): readonly Connection[] {
    return this.#context.log.entries;
  }

  /** Attempts that the cap left out, and those that came faster than they could be looked at. */
  get omitted(): number {
    return this.#context.log.omitted;
  }

  /** For the log: an attempt that the kernel refused because nothing listens there. */
  refusedByKernel({ protocol, address, port }: Pick<Opener, 'protocol' | 'address' | 'port'>): void {
    const name = this.#context.names.nameOf(address);
    const notAllowed = name === undefined ? 'not in the allowlist' : `port ${port} of this host is not in the allowlist`;
    const reason = { tcp: notAllowed, udp: 'UDP is not relayed', other: 'packets of this kind are not relayed' }[protocol];
    this.#context.log.refuse({ host: name ?? address, port, address: name === undefined ? address : null, reason });
  }

  /** For the log: a datagram like one that was refused before. */
  repeated(): void {
    this.#context.log.omit(1);
  }

  /** For the log: the guest is about to be killed, and with it its connections. `close` follows. */
  runEnding(): void {
    this.#context.run.ending = true;
  }

  /**
   * Ends everything, once the guest is gone: bytes that it has sent are delivered as long as servers take some within `quietMs`,
   * for `mostMs` at most, then connections are reset. Afterwards no socket, timer or query of the run is left and the log is complete. Promises of `onConnection` that are
   * open then are waited for, two seconds at most. Idempotent; never rejects.
   */
  close(quietMs = DRAIN_MS, mostMs = quietMs): Promise<void> {
    this.#closing ??= this.#close(quietMs, mostMs);
    return this.#closing;
  }

  /** Nobody waits any more for what `close` is still delivering. */
  cut(): void {
    this.#cut.abort();
  }

  async #close(quietMs: number, mostMs: number): Promise<void> {
    for (const tell of this.#listening) tell();
    // What a guest that is gone by now has sent still waits in the sockets: connections, queries. A few are read in each turn.
    // Not for ever, should somebody still be there to send.
    const latest = performance.now() + QUIET_MS;
    for (let quiet = 0, before = this.#stirs; quiet < 2 && performance.now() < latest; before = this.#stirs) {
      await turn();
      quiet = this.#stirs === before ? quiet + 1 : 0;
    }
    if (this.#kernel !== null) {
      // Those that found the queue full, once for each try; and those that libuv closes where the host has no descriptor left.
      const lost = this.#kernel.begun() - this.#accepted;
      this.#context.log.omit(this.#kernel.droppedQueries() + Math.max(0, lost));
    }
    const closed = Promise.all(this.#closers.map((close) => close()));
    for (const attempt of this.#attempts) attempt.guestGone();
    const all = () => Promise.all([...this.#attempts].map((attempt) => attempt.done));
    await within(mostMs, Promise.race([all(), this.#stalled(quietMs)]));
    const wasWaitedFor = quietMs > 0 && !this.#cut.signal.aborted;
    this.cut();
    for (const attempt of this.#attempts) attempt.stop(wasWaitedFor && attempt.waiting > 0 ? NOT_TAKEN : RUN_ENDED);
    await Promise.all([closed, all()]);
    await this.#told.settled(CALLER_MS);
  }

  /** Resolves when no server has taken a byte for so long, or it is cut. */
  async #stalled(quietMs: number): Promise<void> {
    const { signal } = this.#cut;
    const delivered = (): number => [...this.#attempts].reduce((sum, attempt) => sum + attempt.delivered, 0);
    for (let before = -1, now = delivered(); now !== before && !signal.aborted; now = delivered()) {
      before = now;
      await sleep(quietMs, undefined, { signal }).catch(() => {});
    }
  }

  async #listen(port: number, endpoint: Endpoint): Promise<void> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (guest) => this.#accept(guest, port));
    server.listen({ ...endpoint, backlog: BACKLOG });
    await once(server, 'listening');
    // Only accept(2) fails from here on.
    server.on('error', (error) => this.#context.log.refuse({ host: 'unknown', port, address: null, reason: `not accepted: ${error.message}` }));
    this.#closers.push(() => closeServer(server));
  }

  #accept(guest: Socket, port: number): void {
    this.#stirs++;
    if (!dialledAddress(guest).startsWith('127.')) this.#accepted++;
    const { policy, budget } = this.#context;
    if (this.#attempts.size >= policy.limits.maxConnections) {
      return Attempt.refuse(this.#context, guest, port, `more than ${policy.limits.maxConnections} connections at one time`);
    }
    if (budget.left <= 0) return Attempt.refuse(this.#context, guest, port, 'byte limit of the run reached');
    const attempt = new Attempt(this.#context, guest, port);
    this.#attempts.add(attempt);
    void attempt.done.then(() => this.#attempts.delete(attempt));
  }

  async #openUdp(endpoint: Endpoint): Promise<void> {
    const socket = await serveUdp(endpoint, this.#desk());
    this.#closers.push(async () => {
      socket.close();
      await once(socket, 'close');
    });
  }

  async #openTcp(endpoint: Endpoint): Promise<void> {
    const { server, clients, guestGone } = await serveTcp(endpoint, this.#desk());
    this.#listening.push(guestGone);
    this.#closers.push(async () => {
      const closed = closeServer(server);
      for (const client of clients) client.destroy();
      await closed;
    });
  }

  #desk(): DnsDesk {
    const { log } = this.#context;
    const refuse = (host: string, reason: string) => log.refuse({ host, port: 0, address: null, reason });
    return {
      respond: (query, transport) => {
        const { reply, refused, malformed } = answer(query, (name) => this.#lookUp(name), transport);
        if (malformed) refuse(malformed.name, malformed.reason);
        if (refused && !this.#lookups.completes(refused.name, refused.type)) refuse(refused.name, whyRefused(refused.name));
        return reply;
      },
      refuse: (reason) => refuse('unknown', reason),
      omit: (count) => log.omit(count),
      stir: () => void this.#stirs++,
      accept: () => void this.#accepted++,
    };
  }

  #lookUp(text: string): { address: string } | 'refused' | 'full' {
    const { policy, names, log } = this.#context;
    const name = allowedName(policy, text);
    if (name === null) return 'refused';
    const address = names.addressOf(name);
    if (address !== null) return { address };
    log.refuse({ host: name, port: 0, address: null, reason: 'too many names in one run' });
    return 'full';
  }
}

/** A wildcard over a metadata service's name does not open it, and no entry would. */
function whyRefused(name: string): string {
  return isMetadataName(asciiName(name) ?? '') ? 'may not be reached: metadata service' : 'not in the allowlist';
}

async function closeServer(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
