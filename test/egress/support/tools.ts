import { spawnSync } from 'node:child_process';

/** What of these programs is not installed, ready for `needs`; null when all are. */
export function missingTools(...names: string[]): string | null {
  const missing = names.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  return missing.length === 0 ? null : `install ${missing.join(', ')}`;
}

/** Whether this account can make network namespaces, for `needs`. */
export function missingNamespaces(): string | null {
  const tools = missingTools('unshare', 'ip');
  if (tools !== null) return tools;
  return spawnSync('unshare', ['-rnm', 'ip', 'link', 'set', 'lo', 'up']).status === 0 ? null : 'needs user namespaces with a network of their own';
}
