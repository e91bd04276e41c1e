import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  pid: number;
  parent: number;
  session: number;
  /** As of proc(5): R, S, D, T, Z, … */
  state: string;
  name: string;
  /** The content of /proc/<pid>/cgroup; empty for a zombie on its way out. */
  cgroups: string;
}

/** All processes that this one can see. One that ends meanwhile is left out. */
export function readProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        // The name may hold spaces and brackets.
        const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
        const [state = '?', parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const cgroups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
        return [{ pid: Number(pid), parent: Number(parent), session: Number(session), state, name, cgroups }];
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOENT' || code === 'ESRCH') return [];
        throw error;
      }
    });
}

/** Whether the process exists and is no zombie. */
export function isRunning(pid: number): boolean {
  return readProcesses().some((each) => each.pid === pid && each.state !== 'Z' && each.state !== 'X');
}
