import { parsePacket } from './packet.js';
import type { Opener } from './packet.js';

const REMEMBERED = 1024;

/**
 * What the launcher's packet socket shows: attempts to leave that the kernel refuses itself, as no listener of the host takes
 * them. A segment that is sent again is none. A datagram like one before, from the same port to the same, may be sent again by
 * its socket or be another one's: it is told apart, to be counted.
 */
export class KernelRefusals {
  readonly #tell: (attempt: Opener) => void;
  readonly #repeated: () => void;
  readonly #seen = new Set<string>();

  constructor(tell: (attempt: Opener) => void, repeated: () => void) {
    this.#tell = tell;
    this.#repeated = repeated;
  }

  see(packet: Uint8Array): void {
    const attempt = parsePacket(packet);
    if (attempt === null) return;
    if (attempt.identity !== null) {
      if (this.#seen.has(attempt.identity)) return attempt.protocol === 'udp' ? this.#repeated() : undefined;
      this.#seen.add(attempt.identity);
      const [oldest] = this.#seen;
      if (this.#seen.size > REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
    }
    this.#tell(attempt);
  }
}
