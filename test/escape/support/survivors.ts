import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Guest } from './attack.js';

/** The processes of this machine that have the token in their command line. */
export function survivors(token: string, looks = 3): number[] {
  // One that ends while another takes its place can be missed by a single look.
  const found = numbersIn('/proc').filter((pid) => isOf(pid, token));
  return found.length > 0 || looks === 1 ? found : survivors(token, looks - 1);
}

/** A process whose first thread has ended has a command line only in the others. */
function isOf(pid: number, token: string): boolean {
  try {
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    if (commandLine !== '') return commandLine.includes(token);
    return numbersIn(`/proc/${pid}/task`).some((thread) => readFileSync(`/proc/${pid}/task/${thread}/cmdline`, 'utf8').includes(token));
  } catch {
    return false; // ENOENT or ESRCH: gone meanwhile
  }
}

function numbersIn(directory: string): number[] {
  return readdirSync(directory).filter((entry) => /^\d+$/.test(entry)).map(Number);
}

/** How many there are of a program that was started without a sandbox and whose first process is gone. Ends them. */
export async function survivorsOutside({ command, args }: Guest, token: string, killFirst: boolean): Promise<number> {
  const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  await Promise.race([ended, once(child.stdout, 'data'), sleep(1000)]);
  if (killFirst) child.kill('SIGKILL');
  await Promise.race([ended, sleep(500)]);
  const found = survivors(token, 30);
  child.stdout.destroy();
  child.stderr.destroy();
  // The group at once, for what never stays the same process; then each that left it.
  endQuietly(-(child.pid ?? 0));
  for (let tries = 0; survivors(token).length > 0 && tries < 200; tries++) {
    for (const pid of [-(child.pid ?? 0), ...survivors(token)]) endQuietly(pid);
    await sleep(10);
  }
  return found.length;
}

export function endQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
