/** Where this test run is: measured, not told, so that a wrong lane shows. */
import { readFileSync } from 'node:fs';

export interface Lane {
  root: boolean;
  /** The version whose memory controller this process is under; null where there is none. */
  cgroup: 1 | 2 | null;
  /** Inside User-Mode Linux: one slow CPU, and a Node that takes 0.7 s to start. */
  uml: boolean;
}

export function whereAmI(): Lane {
  return {
    root: process.getuid?.() === 0,
    cgroup: cgroupVersion(),
    uml: /^vendor_id\s*:\s*User Mode Linux$/m.test(readFileSync('/proc/cpuinfo', 'utf8')),
  };
}

/** Stretches a time limit that was measured on the host to what User-Mode Linux needs. */
export function patience(milliseconds: number): number {
  return whereAmI().uml ? milliseconds * 8 : milliseconds;
}

function cgroupVersion(): 1 | 2 | null {
  const lines = readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n');
  if (lines.some((line) => line.split(':')[1]?.split(',').includes('memory'))) return 1;
  return lines.some((line) => line.startsWith('0::')) ? 2 : null;
}
