// The same command three ways: bare, in bubblewrap with the same view, in ringfence.
import { spawn } from 'node:child_process';
import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { runSandboxed } from '../../dist/index.js';

/** Ends when the child is gone and both its streams are closed, as a caller of child_process would wait. */
function spawned(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: '/usr/bin:/bin', HOME: '/root' } });
    child.stdout.resume();
    child.stderr.resume();
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}`))));
  });
}

const systemDirectories = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].map((name) => `/${name}`).filter(existsSync);
const etc = ['/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/alternatives', '/etc/ssl/certs', '/etc/localtime'].filter(existsSync);

/** bubblewrap's arguments for the base view of README, with every namespace. */
export function bwrapArguments(extra = []) {
  const view = systemDirectories.flatMap((path) =>
    lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path],
  );
  const bits = etc.flatMap((path) => ['--ro-bind', path, path]);
  const tmpfs = ['--tmpfs', '/tmp', '--tmpfs', '/root', '--dir', '/tmp/work', '--chdir', '/tmp/work'];
  return ['--unshare-all', '--die-with-parent', '--new-session', '--ro-bind', '/usr', '/usr', ...view, ...bits, '--proc', '/proc', '--dev', '/dev', ...tmpfs, ...extra];
}

export function bwrap() {
  const found = ['/usr/bin/bwrap', '/usr/local/bin/bwrap'].find(existsSync);
  if (!found) console.error('bench: bwrap is not installed; its column is left out (apt-get install bubblewrap)');
  return found;
}

/** The contenders for one command; `files` is what it needs beyond the base view. */
export function contenders(command, args, files = []) {
  const peer = bwrap();
  const binds = files.flatMap((path) => ['--ro-bind', path, path]);
  return {
    bare: () => spawned(command, args),
    ...(peer && { bwrap: () => spawned(peer, [...bwrapArguments(binds), command, ...args]) }),
    ringfence: async () => {
      const result = await runSandboxed({ command, args, timeoutMs: 30_000, filesystem: { read: files } });
      if (result.exitCode !== 0) throw new Error(`ringfence: ${result.outcome} ${result.errorMessage} ${result.stderr}`);
    },
  };
}
