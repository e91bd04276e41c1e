import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

/** A new directory (0700) that goes with the running test. Its name is none that Ringfence itself would use. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'test-'));
  onTestFinished(() => remove(directory));
  return directory;
}

/** Called at the top of a file or in a describe: a directory of its own behind os.tmpdir(), undisturbed by other test files. */
export function useOwnTmpdir(): void {
  let directory: string;
  let before: string | undefined;
  beforeAll(() => {
    before = process.env['TMPDIR'];
    directory = mkdtempSync(path.join(tmpdir(), 'test-tmpdir-'));
    process.env['TMPDIR'] = directory;
  });
  afterAll(() => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    remove(directory);
  });
}

function remove(directory: string): void {
  // A guest may have taken its owner's permissions away.
  execFileSync('chmod', ['-R', 'u+rwX', directory]);
  rmSync(directory, { recursive: true, force: true });
}
