import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';

/** An error whose message is all that a reader needs: uncaught, it prints nothing else. */
export class BuildError extends Error {
  constructor(message) {
    super(message);
    this.stack = message;
  }
}

/** Runs a command; `onLine` sees each line of its standard output. Rejects with a BuildError that carries what it printed. */
export function run(command, args, { cwd, env = process.env, onLine = () => {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = [];
    const keep = (line) => {
      printed.push(line);
      onLine(line);
    };
    createInterface({ input: child.stdout }).on('line', keep);
    createInterface({ input: child.stderr }).on('line', keep);
    child.once('error', (error) => reject(new BuildError(`${command} cannot be started: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) return resolve();
      const how = signal === null ? `ended with ${code}` : `was ended by ${signal}`;
      reject(new BuildError(`${printed.join('\n')}\n${[command, ...args].join(' ')} ${how}`));
    });
  });
}

/** True when the command can be started at all. */
export function canRun(command, args = ['--version']) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}
