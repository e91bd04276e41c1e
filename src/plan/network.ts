import { readFile } from 'node:fs/promises';

import type { RunOptions } from '../run/options.js';
import type { Fence } from '../run/result.js';
import type { EgressPort, Mount } from './plan.js';

/** The sandbox's own host name. */
export const HOSTNAME = 'ringfence';

const OWN_HOSTS = `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 ${HOSTNAME}\n`;

/** The host answers there, through a socket of the sandbox's network. */
const OWN_RESOLVER = 'nameserver 127.0.0.1\n';

type Environment = Readonly<Record<string, string | undefined>>;

/** False when the guest is to share the host's network: asked for, given up in best-effort, or switched off on this host. */
export function hasOwnNetwork(network: RunOptions['network'], dropped: ReadonlySet<Fence>, hostEnv: Environment): boolean {
  return network !== 'host' && !dropped.has('network') && !isNetworkFenceOff(hostEnv);
}

/** Whoever set up this machine has switched the network fence off. Any other value than `1` leaves it up. */
export function isNetworkFenceOff(hostEnv: Environment): boolean {
  return hostEnv['SANDBOX_DISABLE_NETNS_FIREWALL'] === '1';
}

/** Ports that the launcher listens on, for an allowlist and for the run's attendant. */
export function planEgressPorts(network: RunOptions['network'], ownNetwork: boolean, attended: number | null = null): EgressPort[] {
  if (!ownNetwork) return [];
  const allowed = typeof network === 'string' ? { ipv4: [], ipv6: [] } : network.ports;
  const ipv4 = attended === null ? allowed.ipv4 : [...allowed.ipv4, attended];
  const { ipv6 } = allowed;
  return [...new Set([...ipv4, ...ipv6])]
    .sort((a, b) => a - b)
    .map((port) => ({ port, ipv4: ipv4.includes(port), ipv6: ipv6.includes(port) }));
}

/**
 * What name look-ups read. In the host's network the guest gets the content of the host's files, as it is now: they are
 * often links into /run, which the guest does not see.
 */
export async function planNameFiles(ownNetwork: boolean, hasAllowlist = false): Promise<Mount[]> {
  if (ownNetwork) {
    const files = [nameFile('/etc/hosts', OWN_HOSTS)];
    if (hasAllowlist) files.push(nameFile('/etc/resolv.conf', OWN_RESOLVER));
    return files;
  }
  const [hosts, resolv] = await Promise.all([readText('/etc/hosts'), readText('/etc/resolv.conf')]);
  const files = [nameFile('/etc/hosts', hosts ?? OWN_HOSTS)];
  if (resolv !== null) files.push(nameFile('/etc/resolv.conf', resolv));
  return files;
}

function nameFile(path: string, content: string): Mount {
  return { kind: 'file', path, mode: 0o644, content };
}

/** These files end up in a root of 1 MiB; nobody's resolver configuration is larger than this. */
const MAX_FILE_CHARACTERS = 256 * 1024;

async function readText(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(() => null);
  return text === null ? null : text.slice(0, MAX_FILE_CHARACTERS).replaceAll('\0', '');
}
