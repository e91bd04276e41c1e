import { quietly } from './quietly.js';

type Listener = () => void;

interface Fan {
  listeners: Set<Listener>;
  onAbort: Listener;
}

/**
 * Lets any number of runs listen to one AbortSignal through a single listener: Node warns of a leak from the eleventh on,
 * and a signal shared by many runs is ordinary. A signal is told by its shape: one whose methods throw is one that never aborts.
 */
export class AbortFan {
  readonly #fans = new WeakMap<AbortSignal, Fan>();

  /** Calls `listener` once when `signal` aborts. Returns the function that takes it away again. */
  subscribe(signal: AbortSignal, listener: Listener): () => void {
    const known = this.#fans.get(signal);
    const fan = known ?? this.#fanOf(signal);
    fan.listeners.add(listener);
    // It may call back at once.
    if (known === undefined) void quietly(() => signal.addEventListener('abort', fan.onAbort, { once: true }));
    return () => this.#leave(signal, fan, listener);
  }

  #fanOf(signal: AbortSignal): Fan {
    const listeners = new Set<Listener>();
    // Not by the event's target, which is another object where the signal is a wrapper of one.
    const onAbort = () => {
      this.#forget(signal, fan);
      for (const listener of listeners) listener();
      listeners.clear();
    };
    const fan = { listeners, onAbort };
    this.#fans.set(signal, fan);
    return fan;
  }

  #leave(signal: AbortSignal, fan: Fan, listener: Listener): void {
    fan.listeners.delete(listener);
    if (fan.listeners.size > 0 || !this.#forget(signal, fan)) return;
    void quietly(() => signal.removeEventListener('abort', fan.onAbort));
  }

  /** True when it was known. */
  #forget(signal: AbortSignal, fan: Fan): boolean {
    return this.#fans.get(signal) === fan && this.#fans.delete(signal);
  }
}
