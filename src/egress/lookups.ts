const OTHER_FAMILY: Readonly<Record<string, string>> = { A: 'AAAA', AAAA: 'A' };
const REMEMBERED = 64;

/** Tells the two queries of one getaddrinfo call from two attempts. */
export class Lookups {
  readonly #halves = new Map<string, string>();

  /** True when this query is the other half of one seen before. */
  completes(name: string, type: string): boolean {
    const key = name.toLowerCase();
    const other = OTHER_FAMILY[type];
    if (other === undefined) return false;
    if (this.#halves.get(key) === other) return this.#halves.delete(key);
    this.#halves.delete(key);
    this.#halves.set(key, type);
    const [oldest] = this.#halves.keys();
    if (this.#halves.size > REMEMBERED && oldest !== undefined) this.#halves.delete(oldest);
    return false;
  }
}
