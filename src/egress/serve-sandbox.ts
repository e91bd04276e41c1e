import { closeAll } from '../launcher/descriptors.js';
import type { Native, PacketWatch } from '../launcher/native.js';
import type { Connection } from '../run/result.js';
import { Gateway } from './gateway.js';
import { KernelRefusals } from './kernel-refusals.js';
import type { Policy } from './policy.js';

/** What the launcher hands out, in the order of native/shared/protocol.h. */
export interface SandboxSockets {
  descriptors: readonly number[];
  /** False: there are no listeners for IPv6. */
  hasIpv6: boolean;
}

export interface ServeInput {
  policy: Policy;
  native: Pick<Native, 'watchPackets' | 'socketDrops' | 'packetCount'>;
  /** Gets what `policy.onConnection` throws. */
  onThrow: (error: unknown) => void;
}

/** The log of a run that is over. */
export interface EgressLog {
  connections: readonly Connection[];
  /** Attempts that came after the log was full, or faster than they could be seen. */
  omitted: number;
}

export interface SandboxGateway {
  /** The guest is about to be killed: that its connections end then is none of its own doing, and the log says so. */
  runEnding(): void;
  /** Nothing runs in the sandbox any more: no packet is to come. The sooner this is said, the sooner the kernel is done. */
  guestGone(): void;
  /**
   * Ends everything, once the guest is gone; what it has sent is still delivered, as long as servers take some within `quietMs`,
   * for `mostMs` at most. Never rejects.
   */
  close(quietMs: number, mostMs?: number): Promise<EgressLog>;
  /** Nobody waits any more for what `close` is still delivering. */
  cut(): void;
}

/** Serves the sockets of one sandbox. Takes the descriptors over: rejects with all of them closed. */
export async function serveSandbox(sockets: SandboxSockets, { policy, native, onThrow }: ServeInput): Promise<SandboxGateway> {
  const { dnsUdp, dnsTcp, packets, counter, listeners } = sort(sockets, policy);
  const kernel = { droppedQueries: () => native.socketDrops(dnsUdp), begun: () => native.packetCount(counter) };
  const gateway = await Gateway.open({ policy, onThrow, kernel, sockets: { dnsUdp: { fd: dnsUdp }, dnsTcp: { fd: dnsTcp }, listeners } }).catch((error: unknown) => {
    closeAll([packets, counter]);
    throw error;
  });
  let watch: PacketWatch;
  try {
    const refusals = new KernelRefusals((attempt) => gateway.refusedByKernel(attempt), () => gateway.repeated());
    watch = native.watchPackets({ fd: packets, onPacket: (bytes) => refusals.see(bytes) });
  } catch (error) {
    await gateway.close(0);
    closeAll([packets, counter]);
    throw error;
  }
  let dropped: number | null = null;
  let closed = false;
  const unwatch = (): number => {
    if (dropped !== null) return dropped;
    dropped = watch.close();
    // The kernel lets the last close of a packet socket wait for a grace period of RCU, 10 ms and more. That is left to a thread
    // and not waited for: the descriptor itself is gone as soon as it has begun.
    closeAll([packets]);
    return dropped;
  };
  return {
    runEnding: () => gateway.runEnding(),
    guestGone: () => void unwatch(),
    cut: () => gateway.cut(),
    async close(quietMs, mostMs) {
      // First, as nothing can be added once the gateway's log is handed over.
      const omitted = unwatch();
      await gateway.close(quietMs, mostMs);
      if (!closed) closeAll([counter]);
      closed = true;
      return { connections: gateway.connections, omitted: gateway.omitted + omitted };
    },
  };
}

interface Sorted {
  dnsUdp: number;
  dnsTcp: number;
  packets: number;
  counter: number;
  listeners: { port: number; endpoint: { fd: number } }[];
}

function sort({ descriptors, hasIpv6 }: SandboxSockets, { ports }: Policy): Sorted {
  const [dnsUdp, dnsTcp, packets, counter, ...rest] = descriptors;
  const expected = [...ports.ipv4, ...(hasIpv6 ? ports.ipv6 : [])];
  if (dnsUdp === undefined || dnsTcp === undefined || packets === undefined || counter === undefined || rest.length !== expected.length) {
    closeAll(descriptors);
    // The kernel cuts the list short where this process may have no more of them.
    throw Object.assign(new Error(`${descriptors.length} of the sandbox's sockets came through`), { code: 'EMFILE' });
  }
  return { dnsUdp, dnsTcp, packets, counter, listeners: rest.map((fd, index) => ({ port: expected[index] ?? 0, endpoint: { fd } })) };
}
