import { availableParallelism } from 'node:os';

import type { Rehearsal } from './runtime.js';
import type { GuestSandbox, Profile } from './sandbox.js';

export interface PoolOptions {
  /** Sandboxes to keep for each profile. */
  size: number;
  start(profile: Profile, rehearsal: Rehearsal): GuestSandbox;
  /** Processors that sandboxes may be started on while guests run. Default: those of this machine. */
  processors?: number;
}

/** Sandboxes of one profile that nobody has used. */
interface Shelf {
  profile: Profile;
  rehearsal: Rehearsal;
  waiting: Set<GuestSandbox>;
}

/** The profiles used last; others are started when they are asked for. */
const MAX_SHELVES = 2;
/** Between attempts, where sandboxes die before they are ready. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** Keeps sandboxes that were started and limited before there is a function for them. Each is for one function. */
export class WarmPool {
  readonly #options: PoolOptions;
  /** In the order of their last use. */
  readonly #shelves = new Map<string, Shelf>();
  readonly #processors: number;
  #starting: GuestSandbox | null = null;
  #running = 0;
  #pauseMs = 0;
  #pause: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#processors = options.processors ?? availableParallelism();
  }

  /** Sandboxes that wait, started or not. */
  get size(): number {
    return [...this.#shelves.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  }

  /** Keeps sandboxes of this profile from now on; new ones rehearse so. */
  keep(profile: Profile, rehearsal: Rehearsal): void {
    if (this.#closed || this.#options.size === 0) return;
    const key = keyOf(profile);
    const shelf = { profile, rehearsal, waiting: this.#shelves.get(key)?.waiting ?? new Set() };
    this.#shelves.delete(key);
    this.#shelves.set(key, shelf);
    for (const [oldest, { waiting }] of this.#shelves) {
      if (this.#shelves.size <= MAX_SHELVES) break;
      this.#shelves.delete(oldest);
      for (const sandbox of waiting) sandbox.finish();
    }
    // A guest that begins has the machine to itself first.
    if (this.#running === 0) this.#refill();
  }

  /** A sandbox of this profile, the one that has waited longest; null when there is none. It is the caller's. */
  take(profile: Profile): GuestSandbox | null {
    const waiting = this.#shelves.get(keyOf(profile))?.waiting;
    const [sandbox] = waiting ?? [];
    if (waiting === undefined || sandbox === undefined) return null;
    waiting.delete(sandbox);
    // One that is not ready is further than one that would be started now.
    if (sandbox === this.#starting) this.#starting = null;
    return sandbox;
  }

  /** Guests that run have the machine before those that may come: to be told when one begins and when it has ended. */
  guestRuns(change: 1 | -1): void {
    this.#running += change;
    // The answer goes out first.
    if (change < 0) setImmediate(() => this.#refill());
  }

  /** Resolves when nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    const all = [...this.#shelves.values()].flatMap(({ waiting }) => [...waiting]);
    this.#shelves.clear();
    for (const sandbox of all) sandbox.finish();
    await Promise.all(all.map(({ result }) => result));
  }

  #refill(): void {
    if (this.#closed || this.#starting !== null || this.#pause !== null) return;
    if (this.#running >= this.#processors) return;
    // The profile used last comes first.
    const shelf = [...this.#shelves.values()].reverse().find(({ waiting }) => waiting.size < this.#options.size);
    if (shelf !== undefined) this.#start(shelf);
  }

  #start({ profile, rehearsal, waiting }: Shelf): void {
    const sandbox = this.#options.start(profile, rehearsal);
    this.#starting = sandbox;
    waiting.add(sandbox);
    void sandbox.ready.then(() => {
      this.#pauseMs = 0;
      if (this.#starting === sandbox) this.#starting = null;
      this.#refill();
    });
    void sandbox.result.then(() => {
      // Taken, and at its natural end; or given up.
      if (!waiting.delete(sandbox)) return;
      this.#died(sandbox);
    });
  }

  /** One that nobody used has ended: a new one, but not over and over where none can live. */
  #died(sandbox: GuestSandbox): void {
    const neverReady = sandbox === this.#starting;
    if (neverReady) this.#starting = null;
    if (this.#closed) return;
    if (!neverReady) return this.#refill();
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs));
    this.#pause = setTimeout(() => {
      this.#pause = null;
      this.#refill();
    }, this.#pauseMs).unref();
  }
}

function keyOf({ memoryMb, sharesNetwork, net, import: imports }: Profile): string {
  return JSON.stringify([memoryMb, sharesNetwork, net, imports]);
}
