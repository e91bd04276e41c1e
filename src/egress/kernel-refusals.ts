import { isLoopback } from './addresses.js';
import { parsePacket } from './packet.js';
import type { Opener } from './packet.js';
import type { ListenPorts } from './policy.js';

const REMEMBERED = 1024;

/**
 * Finds, among the packets that open something inside the sandbox, the attempts to leave that the kernel refuses itself:
 * no listener of the host has the port. What is sent again counts once.
 */
export class KernelRefusals {
  readonly #ports: { ipv4: ReadonlySet<number>; ipv6: ReadonlySet<number> };
  readonly #tell: (attempt: Opener) => void;
  readonly #seen = new Set<string>();

  /** `ports`: what the host listens on. */
  constructor(ports: ListenPorts, tell: (attempt: Opener) => void) {
    this.#ports = { ipv4: new Set(ports.ipv4), ipv6: new Set(ports.ipv6) };
    this.#tell = tell;
  }

  see(packet: Uint8Array): void {
    const attempt = parsePacket(packet);
    // The guest's own loopback is nobody else's, and the resolver is there.
    if (attempt === null || isLoopback(attempt.address) || this.#isAnswered(attempt)) return;
    if (this.#seen.has(attempt.identity)) return;
    this.#seen.add(attempt.identity);
    const [oldest] = this.#seen;
    if (this.#seen.size > REMEMBERED && oldest !== undefined) this.#seen.delete(oldest);
    this.#tell(attempt);
  }

  #isAnswered({ protocol, address, port }: Opener): boolean {
    return protocol === 'tcp' && this.#ports[address.includes(':') ? 'ipv6' : 'ipv4'].has(port);
  }
}
