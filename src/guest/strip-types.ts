import { StripLane } from './strip-lane.js';
import type { StripTask } from './strip-lane.js';

export type Stripped = { code: string } | { problem: string };

/** A source on its way to JavaScript. */
export interface Stripping {
  /** Never rejects; may never settle once it was canceled. */
  readonly done: Promise<Stripped>;
  /** Nobody waits for it any more: its run has ended. */
  cancel(): void;
}

/** What a sandbox can be sent, and what the compiler is given at all. */
const MAX_CHARACTERS = 2 * 1024 * 1024;
/** The compiler takes a few milliseconds for an honest source of this length. */
const LIGHT_CHARACTERS = 64 * 1024;
const LIGHT_MS = 100;
/** An honest source of two MiB takes about a quarter of a second. */
const HEAVY_MS = 500;
const HEAVY_CHARACTERS_PER_MS = 4096;
const TOO_SLOW = { problem: 'the source cannot be parsed in time: make it shorter, or nest it less' };

/**
 * Takes the types out of TypeScript, for a Node that cannot. In threads of its own, and not in the sandbox, where loading
 * the compiler would double the time that a function takes to start.
 *
 * This is the host's time and no run's, and sources are made by adversaries: three thousand characters can take as long as
 * two million honest ones. So whatever is short has a thread where nothing is worked on for long; what turns out to be slow
 * there is begun anew on the other thread, behind those that are not known to be slow; and what is slow there is refused.
 */
export class TypeStripper {
  readonly #heavy = new StripLane({
    patienceMs: ({ source }) => HEAVY_MS + source.length / HEAVY_CHARACTERS_PER_MS,
    onSlow: ({ settle }) => settle(TOO_SLOW),
  });
  readonly #light = new StripLane({
    patienceMs: () => LIGHT_MS,
    onSlow: (task) => {
      task.wasSlow = true;
      this.#heavy.add(task);
    },
  });

  /** JavaScript comes back as it is. */
  strip(source: string): Stripping {
    if (source.length > MAX_CHARACTERS) {
      return { done: Promise.resolve({ problem: `the source has more than ${MAX_CHARACTERS} characters` }), cancel: () => undefined };
    }
    let settle: StripTask['settle'] = () => undefined;
    const done = new Promise<Stripped>((resolve) => (settle = resolve));
    const task: StripTask = { source, wasSlow: false, settle };
    (source.length > LIGHT_CHARACTERS ? this.#heavy : this.#light).add(task);
    return {
      done,
      cancel: () => {
        this.#light.cancel(task);
        this.#heavy.cancel(task);
      },
    };
  }

  /** Loads the compiler, so that the first source need not wait for it. */
  prepare(): void {
    this.strip('');
  }

  async close(): Promise<void> {
    await Promise.all([this.#light.close(), this.#heavy.close()]);
  }
}
