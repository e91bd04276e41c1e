import { chmodSync, copyFileSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError, run } from './command.mjs';

/** The page of the service: for browsers, so with types of its own. */
const page = 'src/service/page';

/** `src` into `<root>/dist`: JavaScript and declarations. */
export async function buildTypeScript({ root, onStep = () => {} }) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  if (!existsSync(compiler)) throw new BuildError('typescript is not installed: type "npm ci --ignore-scripts"');
  onStep('typescript');
  await run(process.execPath, [compiler, '-p', 'tsconfig.json'], { cwd: root });
  await run(process.execPath, [compiler, '-p', join(page, 'tsconfig.json')], { cwd: root });
  for (const name of ['page.html', 'page.css', 'page.svg']) copyFileSync(join(root, page, name), join(root, 'dist/service/page', name));
  removeOrphans(join(root, 'dist'), join(root, 'src'));
  const commandLine = join(root, 'dist/cli/main.js');
  if (existsSync(commandLine)) chmodSync(commandLine, 0o755);
}

// What a removed source left behind would still be packed and imported.
function removeOrphans(output, source) {
  for (const entry of readdirSync(output, { withFileTypes: true })) {
    const path = join(output, entry.name);
    const origin = join(source, entry.name.replace(/(?:\.d)?\.(m?)[jt]s$/, '.$1ts'));
    if (!existsSync(origin)) rmSync(path, { recursive: true });
    else if (entry.isDirectory()) removeOrphans(path, origin);
  }
}
