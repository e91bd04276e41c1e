import { readFile } from 'node:fs/promises';

import type { Native, PlaceRequest } from '../launcher/native.js';
import type { CgroupPlacement } from './placement.js';

/** How long the kernel keeps the lock cheap after a migration is at least one grace period; measured: 15 ms and more. */
const TICK_MS = 8;
const WINDOW_MS = 1000;

/**
 * v1 only. A process is moved into its cgroup under a lock of the whole kernel, which costs 10 to 20 ms (a grace period)
 * when nobody has taken it for some 15 ms, and 0.03 ms when somebody has. While runs follow each other within a second,
 * the host therefore moves itself to where it is already, which takes the lock and changes nothing. v2 needs none of
 * this: its guests are born in their cgroup.
 */
export class MigrationPace {
  #until = 0;
  #timer: NodeJS.Timeout | null = null;
  #busy = false;
  #home: PlaceRequest | null = null;
  readonly #native: () => Pick<Native, 'keepPlace'>;

  constructor(native: () => Pick<Native, 'keepPlace'>) {
    this.#native = native;
  }

  /** To be called at each launch. Never throws, never blocks, never keeps the process alive. */
  keep(placement: CgroupPlacement): void {
    if (placement.version !== 1) return;
    const first = this.#until === 0;
    this.#until = performance.now() + WINDOW_MS;
    // The first run of a process may be its only one.
    if (first || this.#timer !== null) return;
    const directory = placement.parents[0]?.directory;
    if (directory === undefined) return;
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    void this.#find(`${directory}/cgroup.procs`);
  }

  /** With RINGFENCE_CGROUP the parent may be one that the host is not in, and must not be moved to. */
  async #find(procs: string): Promise<void> {
    try {
      const [place, members] = await Promise.all([readFile('/proc/self/cgroup', 'utf8'), readFile(procs, 'utf8')]);
      if (members.split('\n').includes(String(process.pid))) this.#home = { procs, place };
      else this.#stop();
    } catch {
      // EACCES, ENOENT, ...: then launches are slower, which is all that this is about.
      this.#stop();
    }
  }

  #tick(): void {
    if (performance.now() > this.#until) return this.#stop();
    if (this.#busy || this.#home === null) return;
    this.#busy = true;
    // False: somebody has moved the host, or it may not be moved.
    void this.#native().keepPlace(this.#home).then((moved) => {
      this.#busy = false;
      if (!moved) this.#stop();
    });
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#home = null;
  }
}
