import ipaddr from 'ipaddr.js';

import { parseRange } from './addresses.js';
import type { Range } from './addresses.js';

/** Where the guest finds the names it may reach: a range that no host on the Internet has (RFC 2544). */
export const GUEST_RANGE: Range = parseRange('198.18.0.0/15');

// The first addresses are for the sandbox's own interface and resolver.
const FIRST = 256;

/** Gives each name one address of the guest's range, for as long as the run lasts. */
export class NameTable {
  readonly #addresses = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #base: number;
  readonly #capacity: number;

  /** `capacity`: names at most; a guest can ask for any number of names below a wildcard. */
  constructor(capacity = 4096, range: Range = GUEST_RANGE) {
    this.#base = range.network.toByteArray().reduce((value, byte) => value * 256 + byte, 0) + FIRST;
    this.#capacity = Math.min(capacity, 2 ** (32 - range.prefix) - FIRST - 1);
  }

  /** The name's address, or null when all are given out. */
  addressOf(name: string): string | null {
    const known = this.#addresses.get(name);
    if (known !== undefined) return known;
    if (this.#addresses.size >= this.#capacity) return null;
    const value = this.#base + this.#addresses.size;
    const address = new ipaddr.IPv4([24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff)).toString();
    this.#addresses.set(name, address);
    this.#names.set(address, name);
    return address;
  }

  nameOf(address: string): string | undefined {
    return this.#names.get(address);
  }
}
