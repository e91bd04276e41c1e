/** One line of /proc/self/cgroup: the host's place in one hierarchy. */
export interface Membership {
  /** v1: the hierarchy's controllers (or `name=…`); empty for the v2 hierarchy. */
  controllers: string[];
  /** Relative to the root of the host's cgroup namespace; `/..` at the start means outside of it. */
  path: string;
}

/** One mount of a cgroup hierarchy, from /proc/self/mountinfo. */
export interface CgroupMount {
  version: 1 | 2;
  /** The cgroup at the mount point, relative to the root of the cgroup namespace. */
  root: string;
  mountPoint: string;
  readOnly: boolean;
  /** v1: the hierarchy's controllers, as the superblock tells. */
  controllers: string[];
}

const SUPERBLOCK_FLAGS = new Set(['rw', 'ro', 'xattr', 'noprefix', 'clone_children', 'nsdelegate', 'memory_recursiveprot']);

export function parseMemberships(text: string): Membership[] {
  const found: Membership[] = [];
  for (const line of text.split('\n')) {
    // The path is the rest of the line: it may hold colons.
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line);
    if (match === null) continue;
    const [, controllers = '', path = '/'] = match;
    found.push({ controllers: controllers === '' ? [] : controllers.split(','), path });
  }
  return found;
}

/** See proc_pid_mountinfo(5): optional fields end with a lone dash, spaces are octal escapes. */
export function parseCgroupMounts(text: string): CgroupMount[] {
  const found: CgroupMount[] = [];
  for (const line of text.split('\n')) {
    const separator = line.indexOf(' - ');
    if (separator < 0) continue;
    const [, , , root, mountPoint, options] = line.slice(0, separator).split(' ');
    const [type, , superOptions = ''] = line.slice(separator + 3).split(' ');
    if (root === undefined || mountPoint === undefined || options === undefined) continue;
    if (type !== 'cgroup' && type !== 'cgroup2') continue;
    const superFlags = superOptions.split(',');
    found.push({
      version: type === 'cgroup2' ? 2 : 1,
      root: unescape(root),
      mountPoint: unescape(mountPoint),
      readOnly: options.split(',').includes('ro') || superFlags.includes('ro'),
      controllers: type === 'cgroup2' ? [] : superFlags.filter((flag) => !SUPERBLOCK_FLAGS.has(flag)),
    });
  }
  return found;
}

function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** The directory at which a mount shows a cgroup, or null when the cgroup lies outside of what the mount shows. */
export function directoryOf(mount: CgroupMount, path: string): string | null {
  if (path === '/..' || path.startsWith('/../') || mount.root.startsWith('/..')) return null;
  const base = mount.mountPoint === '/' ? '' : mount.mountPoint;
  if (mount.root === '/') return path === '/' ? mount.mountPoint : base + path;
  if (path === mount.root) return mount.mountPoint;
  return path.startsWith(`${mount.root}/`) ? base + path.slice(mount.root.length) : null;
}
