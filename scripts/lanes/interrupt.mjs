/** Ctrl-C and its kin end a lane through one AbortSignal, so that every lane can undo what it set up. */
import { constants } from 'node:os';

/** The signal aborts at the first SIGINT, SIGTERM or SIGHUP; the process then ends with 128 + n once its work is undone. */
export function abortOnSignals() {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    // Not `once`: execa ends the process itself where it finds no other listener any more.
    process.on(name, () => {
      process.exitCode = 128 + constants.signals[name];
      controller.abort(new Error(`stopped by ${name}`));
    });
  }
  return controller.signal;
}
