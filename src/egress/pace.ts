/** A bucket of `rate` tokens that fills up at `rate` a second. */
export class Pace {
  #tokens: number;
  #filledAt: number;
  readonly #rate: number;
  readonly #now: () => number;

  constructor(rate: number, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#tokens = rate;
    this.#now = now;
    this.#filledAt = now();
  }

  /** False when there is none left. */
  take(): boolean {
    const now = this.#now();
    this.#tokens = Math.min(this.#rate, this.#tokens + ((now - this.#filledAt) / 1000) * this.#rate);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
