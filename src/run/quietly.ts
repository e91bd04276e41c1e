/** Calls into an object of the caller's that was told by its shape: whatever it throws, now or by a promise, no run ends differently. */
export async function quietly(call: () => unknown): Promise<void> {
  try {
    await call();
  } catch {
    // The caller's own affair.
  }
}
