/** Skips that are seen. The runner prints every reason; it calls a test that no lane ran a failure in CI. */
import type { TestContext } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    skipReason?: string;
  }
}

/**
 * Skips a test for want of something that this host should have (a package, a kernel feature, a device).
 * With RINGFENCE_MUST_RUN=1 the test fails instead.
 * @param missing what is missing and how to get it; null or false where nothing is.
 */
export function needs(context: TestContext, missing: string | null | false): void {
  if (!missing) return;
  if (process.env['RINGFENCE_MUST_RUN'] === '1') {
    throw new Error(`RINGFENCE_MUST_RUN=1, and this test cannot run: ${missing}`);
  }
  skip(context, missing);
}

/** Skips a test that is about another lane (root, a cgroup version): never a failure here, as the other lane runs it. */
export function belongsHere(context: TestContext, here: boolean, where: string): void {
  if (!here) skip(context, `only ${where}`);
}

function skip(context: TestContext, reason: string): never {
  context.task.meta.skipReason = reason;
  context.skip(reason);
}
