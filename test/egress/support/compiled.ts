import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The sources as JavaScript, for tests that run them in a process of their own. */
export function compileSources(): { directory: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'egress-test-'));
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  const tsc = join(root, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', root, '--noCheck', '--declaration', 'false', '--outDir', join(directory, 'src')]);
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}
