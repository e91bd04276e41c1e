/** A bucket of `burst` tokens that fills up at `rate` a second. */
export class Pace {
  #tokens: number;
  #filledAt: number;
  readonly #rate: number;
  readonly #burst: number;
  readonly #now: () => number;

  constructor(rate: number, now: () => number = () => performance.now(), burst = rate) {
    this.#rate = rate;
    this.#burst = burst;
    this.#tokens = burst;
    this.#now = now;
    this.#filledAt = now();
  }

  /** False when there is none left. */
  take(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Takes the next one there will be: milliseconds until then. */
  reserve(): number {
    this.#fill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate) * 1000;
  }

  #fill(): void {
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#rate);
    this.#filledAt = now;
  }
}
