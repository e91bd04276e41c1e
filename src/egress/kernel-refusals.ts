import { parsePacket } from './packet.js';
import type { Opener } from './packet.js';

const REMEMBERED = 1024;

/**
 * What the launcher's packet socket shows: attempts to leave that the kernel refuses itself, as no listener of the host takes
 * them. What is sent again counts once.
 */
export class KernelRefusals {
  readonly #tell: (attempt: Opener) => void;
  readonly #seen = new Set<string>();

  constructor(tell: (attempt: Opener) => void) {
    this.#tell = tell;
  }

  see(packet: Uint8Array): void {
    const attempt = parsePacket(packet);
    if (attempt === null) return;
    if (attempt.identity === null) return this.#tell(attempt);
    if (this.#seen.has(attempt.identity)) return;
    this.#seen.add(attempt.identity);
    const [oldest] = this.#seen;
    if (this.#seen.size > REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
    this.#tell(attempt);
  }
}
