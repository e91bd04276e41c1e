import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';

/** A new directory below `parent` for one lane; what a lane that was killed left there goes first. */
export function makeScratch(parent) {
  for (const name of readdirSync(parent)) {
    const [, pid] = /^lane-(\d+)-\w{6}$/.exec(name) ?? [];
    const directory = path.join(parent, name);
    if (pid === undefined || existsSync(`/proc/${pid}`) || statSync(directory).uid !== process.getuid()) continue;
    // Its last child may still be copying into it.
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  }
  return mkdtempSync(path.join(parent, `lane-${process.pid}-`));
}
