type Listener = () => void;

/**
 * Lets any number of runs listen to one AbortSignal through a single listener: Node warns of a leak from the eleventh on,
 * and a signal shared by many runs is ordinary.
 */
export class AbortFan {
  readonly #fans = new WeakMap<AbortSignal, Set<Listener>>();

  /** Calls `listener` once when `signal` aborts. Returns the function that takes it away again. */
  subscribe(signal: AbortSignal, listener: Listener): () => void {
    const known = this.#fans.get(signal);
    if (known !== undefined) {
      known.add(listener);
      return () => this.#leave(signal, known, listener);
    }
    const listeners = new Set([listener]);
    this.#fans.set(signal, listeners);
    signal.addEventListener('abort', this.#onAbort, { once: true });
    return () => this.#leave(signal, listeners, listener);
  }

  #leave(signal: AbortSignal, listeners: Set<Listener>, listener: Listener): void {
    listeners.delete(listener);
    if (listeners.size > 0 || this.#fans.get(signal) !== listeners) return;
    this.#fans.delete(signal);
    signal.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (event: Event): void => {
    const signal = event.target as AbortSignal;
    const listeners = this.#fans.get(signal) ?? [];
    this.#fans.delete(signal);
    for (const listener of listeners) listener();
  };
}
