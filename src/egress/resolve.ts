import { Resolver } from 'node:dns/promises';

/** All addresses of a name, right now. Rejects when there is none or when that cannot be told for sure. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<string[]>;

// "No such record" and "no such name" are answers; everything else (SERVFAIL, REFUSED, a timeout) leaves open which
// addresses the name has, and then none of them is used.
const NO_ADDRESS: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Asks the servers of /etc/resolv.conf, or `servers` ("address" or "address:port"), for A and AAAA records.
 * c-ares' plain queries take a name as absolute: no search domains, no /etc/hosts, none of getaddrinfo's sources. A resolver
 * of its own for each name reads the configuration as it is now, holds no cache, and can be cancelled alone.
 */
export function dnsResolver(servers: readonly string[] | null = null): Resolve {
  return async (name, signal) => {
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: 2500, tries: 3 });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const families = await Promise.all([records(resolver.resolve6(name)), records(resolver.resolve4(name))]);
      const addresses = [...new Set(families.flat())];
      if (addresses.length === 0) throw new Error('the name has no address');
      return addresses;
    } catch (error) {
      signal.throwIfAborted();
      const code = (error as NodeJS.ErrnoException).code;
      throw code === undefined ? error : new Error(`DNS failed: ${code}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', cancel);
      // One family may have failed while the other still waits.
      resolver.cancel();
    }
  };
}

async function records(query: Promise<string[]>): Promise<string[]> {
  try {
    return await query;
  } catch (error) {
    if (NO_ADDRESS.has((error as NodeJS.ErrnoException).code)) return [];
    throw error;
  }
}
