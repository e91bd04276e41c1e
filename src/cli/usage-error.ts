/** What was typed cannot be done. The message says what to type instead; the exit code is `exitCodeByOutcome['spawn-error']`. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
