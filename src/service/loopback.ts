import { isIP } from 'node:net';

/** True for an address or name of this machine that no other one can reach. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}
