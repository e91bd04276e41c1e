import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Connects to the first of these addresses that answers. */
export type Dial = (addresses: readonly string[], port: number, signal: AbortSignal) => Promise<Socket>;

const STAGGER_MS = 250;
// An answer over TCP may hold thousands of addresses.
const MOST_ATTEMPTS = 16;

/**
 * Happy eyeballs (RFC 8305) over exactly the addresses given: families alternate, IPv6 first, an attempt starts when the one
 * before it failed or took 250 ms. Resolves with a socket that nobody reads yet; rejects with the last
 * failure, or with the signal's reason.
 */
export function dial(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const waiting = alternate(addresses).slice(0, MOST_ATTEMPTS);
    const attempts = new Set<Socket>();
    let timer: NodeJS.Timeout | undefined;
    let failure: unknown = new Error('no address to connect to');

    const settle = (act: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      waiting.length = 0;
      for (const socket of attempts) socket.destroy();
      attempts.clear();
      act();
    };
    const abort = () => settle(() => reject(signal.reason));
    const next = () => {
      clearTimeout(timer);
      const address = waiting.shift();
      if (address === undefined) return attempts.size === 0 ? settle(() => reject(failure)) : undefined;
      timer = setTimeout(next, STAGGER_MS);
      const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, autoSelectFamily: false, lookup: noLookup });
      attempts.add(socket);
      const failed = (error: Error) => {
        // After the race is over this keeps late errors of the losers from being thrown.
        if (!attempts.delete(socket)) return;
        failure = error;
        next();
      };
      socket.on('error', failed);
      socket.once('connect', () => {
        // TCP's simultaneous open: on one host a port where nobody listens can be the very one the kernel picks for our end.
        if (socket.localPort === port && socket.localAddress === address) return void socket.destroy(new Error(`connect ${address}:${port}: only itself was there`));
        attempts.delete(socket);
        socket.off('error', failed);
        settle(() => resolve(socket));
      });
    };
    if (signal.aborted) return void reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    next();
  });
}

// A second resolution would undo every check; a literal address needs none.
function noLookup(hostname: string): never {
  throw new Error(`not an address: ${hostname}`);
}

function alternate(addresses: readonly string[]): string[] {
  const v6 = addresses.filter((address) => address.includes(':'));
  const v4 = addresses.filter((address) => !address.includes(':'));
  return Array.from({ length: Math.max(v6.length, v4.length) }, (_, index) => [v6[index], v4[index]])
    .flat()
    .filter((address) => address !== undefined);
}
