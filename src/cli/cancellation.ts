import { constants } from 'node:os';

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Turns the signals that ask a command line to end into an AbortSignal, and keeps which one came first. */
export class Cancellation {
  readonly #controller = new AbortController();
  /** Resolves when a signal has come. */
  readonly came: Promise<void>;
  #by: NodeJS.Signals | null = null;
  #tell: () => void = () => undefined;

  constructor() {
    this.came = new Promise((resolve) => (this.#tell = resolve));
    for (const name of SIGNALS) process.on(name, this.#onSignal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The signal that came; null when none did. */
  get by(): NodeJS.Signals | null {
    return this.#by;
  }

  /** Ends the run without a signal. */
  cancel(): void {
    this.#controller.abort();
  }

  stop(): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
  }

  readonly #onSignal = (name: NodeJS.Signals): void => {
    // A second one does not wait for the grace period: this process goes, and by that the launcher ends the sandbox.
    if (this.#by !== null) process.exit(signalExitCode(name));
    this.#by = name;
    this.#tell();
    this.#controller.abort();
  };
}

/** What a shell calls a death by this signal. */
export function signalExitCode(name: NodeJS.Signals): number {
  return 128 + constants.signals[name];
}
