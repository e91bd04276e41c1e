/** A part of this process's own cgroups, given to an ordinary user for the time of a lane. */
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const prefix = 'lane-host-user-';
const needed = ['memory', 'pids', 'cpu', 'cpuacct'];

/** @returns {{ version: 1 | 2, directories: string[] }} the own cgroup of this process in each hierarchy that matters */
export function ownCgroups() {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n').map((line) => {
    const fields = line.split(' ');
    const [type, , options] = fields.slice(fields.indexOf('-') + 1);
    return { root: fields[3], point: fields[4], type, options: options.split(',') };
  });
  const own = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n').map((line) => {
    const [, controllers, ...rest] = line.split(':');
    return { controllers: controllers.split(',').filter(Boolean), group: rest.join(':') };
  });
  const directoryOf = ({ controllers, group }) => {
    const mount = mounts.find(({ type, options }) => controllers.length === 0
      ? type === 'cgroup2'
      : type === 'cgroup' && controllers.every((controller) => options.includes(controller)));
    return mount && path.join(mount.point, path.relative(mount.root, group));
  };
  const first = own.filter(({ controllers }) => controllers.some((each) => needed.includes(each)));
  const directories = (list) => list.map(directoryOf).filter(Boolean);
  if (first.length > 0) return { version: 1, directories: directories(first) };
  return { version: 2, directories: directories(own.filter(({ controllers }) => controllers.length === 0)) };
}

/**
 * Makes one child in each hierarchy and gives it to `uid`.
 * @returns {{ join: string[], env: Record<string, string>, remove(): Promise<void> }} `join`: the directories whose
 *   cgroup.procs the user's first process must be written to
 */
export function delegateCgroups(uid) {
  const { version, directories } = ownCgroups();
  for (const directory of directories) sweep(directory);
  const made = [];
  const make = (directory) => {
    mkdirSync(directory);
    made.push(directory);
    for (const name of ['', 'cgroup.procs', 'tasks', 'cgroup.threads', 'cgroup.subtree_control']) {
      if (existsSync(path.join(directory, name))) chownSync(path.join(directory, name), uid, uid);
    }
    return directory;
  };
  const remove = () => removeCgroups(made);
  try {
    const parts = directories.map((directory) => {
      if (version === 2) enableControllers(directory);
      return make(path.join(directory, `${prefix}${process.pid}`));
    });
    if (version === 1) return { join: parts, env: {}, remove };
    // Only a cgroup without processes of its own can hand its controllers on.
    enableControllers(parts[0]);
    const session = make(path.join(parts[0], 'session'));
    return { join: [session], env: { RINGFENCE_CGROUP: make(path.join(parts[0], 'sandboxes')) }, remove };
  } catch (error) {
    for (const directory of made.reverse()) rmdirSync(directory);
    throw new Error(`no cgroup to delegate below ${directories.join(', ')}: ${error.message}`, { cause: error });
  }
}

function enableControllers(directory) {
  const control = path.join(directory, 'cgroup.subtree_control');
  const enabled = readFileSync(control, 'utf8').trim().split(' ');
  for (const controller of ['cpu', 'memory', 'pids']) {
    if (!enabled.includes(controller)) writeFileSync(control, `+${controller}`);
  }
}

/** Ends what is left in them, then removes them, the last made first. */
async function removeCgroups(made) {
  for (const directory of [...made].reverse()) {
    for (let tries = 0; existsSync(directory); tries += 1) {
      for (const pid of processesBelow(directory)) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch (error) {
          if (error.code !== 'ESRCH') throw error;
        }
      }
      try {
        removeBelow(directory);
      } catch (error) {
        if (error.code !== 'EBUSY' || tries === 100) throw error;
        await sleep(50);
      }
    }
  }
}

function processesBelow(directory) {
  const own = readFileSync(path.join(directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
  return [...own, ...children(directory).flatMap(processesBelow)];
}

function removeBelow(directory) {
  children(directory).forEach(removeBelow);
  rmdirSync(directory);
}

const children = (directory) => readdirSync(directory, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => path.join(directory, entry.name));

/** Removes what a lane that was killed left behind; one that still has processes stays. */
function sweep(directory) {
  for (const child of children(directory)) {
    const [name] = path.basename(child).split(prefix).slice(1);
    if (!name || existsSync(`/proc/${name}`)) continue;
    try {
      removeBelow(child);
    } catch (error) {
      if (error.code !== 'EBUSY') throw error;
    }
  }
}
