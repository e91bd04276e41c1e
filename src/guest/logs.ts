import { cutText } from './cut-text.js';

const MAX_LINES = 1000;
const MAX_CHARACTERS = 4000;

/** What a guest says to its console, capped whatever its own side did about that. */
export class Logs {
  readonly lines: string[] = [];
  readonly #onLine: ((line: string) => void) | null;

  /** `onLine` must not throw. */
  constructor(onLine: ((line: string) => void) | null = null) {
    this.#onLine = onLine;
  }

  add(text: string): void {
    if (this.lines.length >= MAX_LINES) return;
    const line = cutText(text, MAX_CHARACTERS);
    this.lines.push(line);
    this.#onLine?.(line);
  }
}
