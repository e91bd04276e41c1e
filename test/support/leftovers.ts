/** What a host may have left on this machine: taken before and after, the difference must be empty. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readProcesses } from './processes.js';

/** Each entry is a line for a person to read. */
export interface Leftovers {
  /**
   * Descendants of the hosts, what shares a host's session, and what sits in a cgroup of theirs; zombies are marked `Z`. Not a
   * child of a launcher that has died, unless it is in a cgroup of the run: a test that makes one looks for it by itself.
   */
  processes: string[];
  /** Directories `ringfence-…` of the hosts below any cgroup of this process or RINGFENCE_CGROUP. */
  cgroups: string[];
  mounts: string[];
  /** Open descriptors of this process. */
  descriptors: string[];
  /** Entries `ringfence-…` of os.tmpdir() and /tmp; other test files make such too, see useOwnTmpdir(). */
  temporary: string[];
}

/**
 * @param hosts process ids of the hosts to look after: this process, or children that get killed meanwhile. Start those
 *   in a session of their own (`detached: true`): that is what still tells their launchers when they are dead.
 */
export function leftovers(hosts: number[] = [process.pid]): Leftovers {
  const directories = runDirectories(hosts);
  return {
    processes: processesOf(hosts),
    cgroups: directories,
    mounts: readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n'),
    descriptors: descriptors(),
    // Those that name another host are another test file's.
    temporary: [...new Set([tmpdir(), '/tmp'])].flatMap((directory) => entriesOf(directory, new RegExp(`^ringfence-(?!\\d+-(?!(${hosts.join('|')})-)\\d+-)`))),
  };
}

/** What is in `after` and was not in `before`; the keys without any are left out, so that a clean end is `{}`. */
export function newLeftovers(before: Leftovers, after: Leftovers): Partial<Leftovers> {
  const added: Partial<Leftovers> = {};
  for (const kind of Object.keys(after) as (keyof Leftovers)[]) {
    const known = new Set(before[kind]);
    const more = after[kind].filter((entry) => !known.has(entry));
    if (more.length > 0) added[kind] = more;
  }
  return added;
}

function processesOf(hosts: number[]): string[] {
  const all = readProcesses();
  const family = new Set(hosts);
  const belongs = new RegExp(`/ringfence-\\d+-(${hosts.join('|')})-`);
  // Parents may have higher ids than their children: repeat until nothing is added.
  for (let size = -1; size !== family.size; ) {
    size = family.size;
    for (const each of all) {
      const sameSession = hosts.includes(each.session) && each.session !== ownSession(all);
      if (family.has(each.parent) || sameSession || belongs.test(each.cgroups)) family.add(each.pid);
    }
  }
  return all
    .filter(({ pid }) => family.has(pid) && !hosts.includes(pid))
    .map(({ pid, parent, state, name }) => `${pid} ${name} ${state} (parent ${parent})`);
}

function ownSession(all: { pid: number; session: number }[]): number | undefined {
  return all.find(({ pid }) => pid === process.pid)?.session;
}

function runDirectories(hosts: number[]): string[] {
  const name = new RegExp(`^ringfence-\\d+-(${hosts.join('|')})-`);
  return cgroupDirectories().flatMap((directory) => entriesOf(directory, name));
}

/** Every cgroup directory of this process, and RINGFENCE_CGROUP: where run directories may be made. */
export function cgroupDirectories(): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n').map((line) => line.split(' '));
  const found = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n').flatMap((line) => {
    const [, controllers = '', ...rest] = line.split(':');
    return mounts
      .filter((fields) => {
        const [type, , options = ''] = fields.slice(fields.indexOf('-') + 1);
        if (controllers === '') return type === 'cgroup2';
        return type === 'cgroup' && controllers.split(',').every((each) => options.split(',').includes(each));
      })
      .map((fields) => path.join(fields[4] ?? '/', rest.join(':')));
  });
  const configured = process.env['RINGFENCE_CGROUP'];
  if (configured) found.push(configured);
  return [...new Set(found)].filter((directory) => existsSync(directory));
}

function descriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`];
    } catch (error) {
      // The descriptor that read the directory.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  });
}

function entriesOf(directory: string, name: RegExp): string[] {
  return readdirSync(directory)
    .filter((entry) => name.test(entry))
    .map((entry) => path.join(directory, entry));
}
