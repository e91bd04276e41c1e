import { readFile, writeFile } from 'node:fs/promises';

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
  /** /proc/self/cgroup as it was when the host was seen in the parent; empty when it was not. */
  #home: string | null = null;

  /** To be called at each launch. Never throws, never blocks, never keeps the process alive. */
  keep(placement: CgroupPlacement): void {
    if (placement.version !== 1) return;
    const first = this.#until === 0;
    this.#until = performance.now() + WINDOW_MS;
    // The first run of a process may be its only one.
    if (first || this.#timer !== null) return;
    const directory = placement.parents[0]?.directory;
    if (directory === undefined) return;
    this.#timer = setInterval(() => void this.#tick(`${directory}/cgroup.procs`), TICK_MS).unref();
  }

  async #tick(file: string): Promise<void> {
    if (performance.now() > this.#until) return this.#stop();
    if (this.#busy) return;
    this.#busy = true;
    try {
      // With RINGFENCE_CGROUP the parent may be one that the host is not in, and must not be moved to; and somebody may
      // have moved the host since.
      const place = await readFile('/proc/self/cgroup', 'utf8');
      this.#home ??= (await readFile(file, 'utf8')).split('\n').includes(String(process.pid)) ? place : '';
      if (this.#home === place) await writeFile(file, String(process.pid));
      else this.#stop();
    } catch {
      // EACCES, ENOENT, ...: then launches are slower, which is all that this is about.
      this.#stop();
    } finally {
      this.#busy = false;
    }
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#home = null;
  }
}
