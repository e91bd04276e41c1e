import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, beforeEach } from 'vitest';

import type { EgressOptions, SandboxOptions, SandboxResult } from '../../../src/index.js';
import type { Connection } from '../../../src/run/result.js';
import { patience, whereAmI } from '../../support/lane.js';
import { belongsHere, needs } from '../../support/skip.js';
import { signed } from './certificate.js';
import { missingNamespaces, missingTools } from './tools.js';

const script = fileURLToPath(new URL('../lab/lab.mjs', import.meta.url));
const client = fileURLToPath(new URL('../lab/client.py', import.meta.url));
const library = fileURLToPath(new URL('../../../dist/index.js', import.meta.url));

/** Names that the certificate of all servers is for. */
const NAMES = ['api.test', 'second.test', '*.wild.test', 'six.test', 'rebind.test'];
/** Where servers listen: public-looking, private, and a cloud's metadata service. */
const ADDRESSES = ['93.184.0.53/32', '93.184.1.1/32', '93.184.1.2/32', '93.184.1.3/32', '10.66.0.5/32', '169.254.169.254/32', '2600:beef::1/128'];
/** Public addresses that are the host's own. */
const OWN = ['93.184.9.9'];

export interface LabRun {
  result: SandboxResult;
  /** What onConnection got. */
  live: Connection[];
  /** Bytes that the host's process held at most while the run lasted. */
  peakRss: number;
}

export interface LabServers {
  /** Connections by `address:port`. */
  counts: Record<string, number>;
  /** What the DNS server was asked, as `TYPE name`. */
  questions: string[];
}

export interface EgressLab {
  /** Granted to every guest: `ca.pem`, `client.py`, and what `file` adds. */
  directory: string;
  /** Path of client.py, granted to every guest. */
  client_py: string;
  file(name: string, content: string): string;
  /** Runs a shell script in a sandbox of the host in there. */
  sh(script: string, network: EgressOptions | 'none' | 'host', change?: Partial<SandboxOptions>): Promise<LabRun>;
  /** A command of client.py; its output, parsed. */
  client(command: string[], network: EgressOptions, change?: Partial<SandboxOptions>): Promise<LabRun & { said: unknown }>;
  run(options: SandboxOptions): Promise<LabRun>;
  servers(): Promise<LabServers>;
  close(): Promise<void>;
}

/**
 * One lab for all tests of a file, open while they run.
 * @param everywhere in User-Mode Linux too: else a file is left to the other lanes, as there is nothing of a kernel's in it
 */
export function useLab({ tools = [], everywhere = false }: { tools?: string[]; everywhere?: boolean } = {}): EgressLab {
  const missing = missingForLab(...tools);
  const here = everywhere || !whereAmI().uml;
  let open: EgressLab | null = null;
  beforeEach((context) => {
    belongsHere(context, here, 'outside of User-Mode Linux');
    needs(context, missing);
  });
  beforeAll(async () => {
    if (here && missing === null) open = await openLab();
  });
  afterAll(() => open?.close());
  return new Proxy({} as EgressLab, { get: (_, name) => Reflect.get(open ?? {}, name) as unknown });
}

/** What this machine lacks for the lab. */
function missingForLab(...tools: string[]): string | null {
  if (!existsSync(library)) return 'the built library: type "npm run build"';
  return missingTools('openssl', 'python3', 'curl', 'redis-server', ...tools) ?? missingNamespaces();
}

/** The Deno that comes with npm's package. */
export function denoPath(): string {
  const require = createRequire(createRequire(import.meta.url).resolve('deno/package.json'));
  const name = process.arch === 'arm64' ? '@deno/linux-arm64-glibc' : '@deno/linux-x64-glibc';
  return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'deno');
}

/** Two network namespaces of the tests' own: the host in one, servers in the other. Works for an ordinary account too. */
async function openLab(): Promise<EgressLab> {
  const directory = mkdtempSync(path.join(tmpdir(), 'test-egress-'));
  const { ca, ...certificate } = signed(...NAMES);
  const file = (name: string, content: string): string => {
    writeFileSync(path.join(directory, name), content, { mode: 0o644 });
    return path.join(directory, name);
  };
  file('ca.pem', ca);
  const place = process.env['RINGFENCE_CGROUP'];
  const searchPath = [process.env['PATH'] ?? '', '/usr/sbin', '/sbin'].join(':');
  const { root } = whereAmI();
  const set = {
    asUser: !root,
    env: { PATH: searchPath, HOME: '/nonexistent', TMPDIR: tmpdir(), ...(place === undefined ? {} : { RINGFENCE_CGROUP: place }) },
    servers: certificate,
    addresses: ADDRESSES,
    own: OWN,
  };
  // Root's host must be root to the machine, as an ordinary account's must not be.
  const flags = root ? ['-nm'] : ['-Urnm'];
  const child = spawn('unshare', [...flags, process.execPath, script, JSON.stringify(set)], { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: searchPath, TMPDIR: tmpdir() } });
  const answers = new Map<number, (message: unknown) => void>();
  const lines = createInterface({ input: child.stdout });
  const [first] = (await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => ['nothing'])])) as [string];
  if (first !== '"ready"') throw new Error(`the lab did not start: it said ${first}`);
  lines.on('line', (line) => {
    const message = JSON.parse(line) as { id: number };
    answers.get(message.id)?.(message);
    answers.delete(message.id);
  });
  let next = 0;
  const ask = <T>(message: object): Promise<T> =>
    new Promise((resolve) => {
      const id = next++;
      answers.set(id, (answer) => resolve(answer as T));
      child.stdin.write(`${JSON.stringify({ id, ...message })}\n`);
    });

  const run = async (options: SandboxOptions): Promise<LabRun> => {
    const answer = await ask<LabRun & { thrown?: string }>({ to: 'host', options });
    if (answer.thrown !== undefined) throw new Error(answer.thrown);
    return answer;
  };
  const guest = (network: SandboxOptions['network'], change: Partial<SandboxOptions>) => ({
    timeoutMs: patience(60_000),
    network,
    ...change,
    filesystem: { ...change.filesystem, read: [directory, client, ...(change.filesystem?.read ?? [])] },
  });
  return {
    directory,
    client_py: client,
    file,
    run,
    sh: (text, network, change = {}) => run({ command: 'sh', args: ['-c', text], ...guest(network, change) }),
    async client(command, network, change = {}) {
      const answer = await run({ command: '/usr/bin/python3', args: [client, ...command], ...guest(network, change) });
      const { result } = answer;
      if (result.stdout === '') throw new Error(`client.py ${command.join(' ')}: ${result.outcome} ${result.exitCode} ${result.errorMessage} ${result.stderr}`);
      return { ...answer, said: JSON.parse(result.stdout) as unknown };
    },
    servers: () => ask<LabServers>({ to: 'servers' }),
    async close() {
      const gone = once(child, 'exit');
      child.stdin.end();
      await gone;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
