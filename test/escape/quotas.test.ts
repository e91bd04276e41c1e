import { expect } from 'vitest';

import type { SandboxOptions } from '../../src/index.js';
import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { withOptions } from './support/controls.js';
import { openDirectory } from './support/lab.js';
import type { Lab } from './support/lab.js';

const program = { program: 'quotas.c', flags: ['-pthread'], besideFilter: true };
const tmpMb = (size: number) => ({ filesystem: { tmpMb: size } });

const inGrant = {
  ground: (lab: Lab): { directory: string } => ({ directory: openDirectory(lab.directory(), 'open', 0o777) }),
  options: ({ directory }: { directory: string }) => ({ cwd: directory, limits: { fileSizeMb: 1 } }),
  control: withOptions('a limit of 16 MiB', () => ({ limits: { fileSizeMb: 16 } })),
};

attackClass({ name: 'disk limits', ...program }, [
  attack({
    title: 'A scratch directory cannot be filled beyond its size',
    guest: (lab) => lab.attack('fill-file', '/tmp/hog', '12'),
    options: () => tmpMb(8),
    control: withOptions('32 MiB of scratch', () => tmpMb(32)),
  }),
  attack({
    title: 'All scratch directories together have one size',
    guest: (lab) => lab.attack('fill-many', '4', '/tmp', '/dev/shm', process.env['HOME'] ?? '/tmp'),
    options: () => tmpMb(8),
    control: withOptions('32 MiB of scratch', () => tmpMb(32)),
  }),
  attack({
    title: 'A file without a name takes its space as well',
    guest: (lab) => lab.attack('fill-unlinked', '/tmp/hog', '3', '4'),
    options: () => tmpMb(8),
    control: withOptions('32 MiB of scratch', () => tmpMb(32)),
  }),
  attack({
    title: 'Space that is only set aside counts',
    guest: (lab) => lab.attack('allocate', '/tmp/hog', '12'),
    options: () => tmpMb(8),
    control: withOptions('32 MiB of scratch', () => tmpMb(32)),
  }),
  attack({
    title: 'The number of files in scratch directories is limited',
    guest: (lab) => lab.attack('inodes', '/tmp', '6000'),
    options: () => tmpMb(1),
    control: withOptions('8 MiB of scratch', () => tmpMb(8)),
  }),
  ...([
    ['fill-file', 'A file in a granted directory cannot grow beyond the limit for one'],
    ['allocate', 'A file in a granted directory cannot be given more space than the limit for one'],
    ['sparse', 'A file in a granted directory cannot be given a greater size than the limit for one'],
  ] as const).map(([name, title]) => attack({ title, guest: (lab) => lab.attack(name, 'hog', '2'), ...inGrant })),
]);

attackClass({ name: 'descriptor limits', ...program }, [
  attack({
    title: 'No more files can be open than the limit allows, and it cannot be raised',
    guest: (lab) => lab.attack('descriptors', '200'),
    options: () => ({ limits: { openFiles: 64 } }),
    control: withOptions('a limit of 512', () => ({ limits: { openFiles: 512 } })),
  }),
  attack({
    title: 'No more files can be on their way through sockets than the limit allows',
    guest: (lab) => lab.attack('in-flight', '200'),
    options: () => ({ limits: { openFiles: 64 } }),
    control: withOptions('a limit of 512', () => ({ limits: { openFiles: 512 } })),
  }),
]);

/** One stream's bytes, its cap, and how the run ends that goes over it. */
function flood(title: string, args: string[], stream: 'stdout' | 'stderr', cap: number): ReturnType<typeof attack> {
  const limit: Partial<SandboxOptions> = stream === 'stdout' ? { maxStdoutBytes: cap } : { maxStderrBytes: cap };
  const unlimited: Partial<SandboxOptions> = stream === 'stdout' ? { maxStdoutBytes: 2 ** 20 } : { maxStderrBytes: 2 ** 20 };
  const bytes = ({ result }: Attempt): number => Buffer.byteLength(result?.[stream] ?? '');
  return attack({
    title,
    guest: (lab) => lab.attack('flood', ...args),
    options: () => limit,
    outcomes: [`overflow-${stream}`],
    escaped: (attempt) => bytes(attempt) > cap,
    check(attempt) {
      expect(bytes(attempt)).toBe(cap);
      expect(attempt.result?.[`${stream}Truncated`]).toBe(true);
    },
    control: withOptions('a cap that is above it', () => unlimited),
  });
}

attackClass({ name: 'output caps', ...program }, [
  flood('A flood of standard output is cut at exactly its cap', ['200000', '0'], 'stdout', 100),
  flood('A flood of standard error is cut at exactly its cap', ['0', '200000'], 'stderr', 50),
  flood('A flood of both is cut at the cap of the one that overflows', ['200000', '200000'], 'stdout', 65_537),
  flood('Standard output opened again by its name has the same cap', ['200000', '0', '/dev/stdout'], 'stdout', 4095),
  flood('Standard output opened again through /proc has the same cap', ['200000', '0', '/proc/self/fd/1'], 'stdout', 1),
  attack({
    title: 'A flood without end ends with its cap, and the host holds no more than that',
    guest: (lab) => lab.attack('flood', String(2 ** 40), String(2 ** 40)),
    options: () => ({ maxStdoutBytes: 2 ** 20, maxStderrBytes: 2 ** 20 }),
    outcomes: ['overflow-stdout', 'overflow-stderr'],
    async inside(guest, options, _ground, lab) {
      const before = process.memoryUsage().rss;
      const attempt = await lab.sandbox(guest, options);
      expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
      return attempt;
    },
    escaped: ({ result }) => Buffer.byteLength(result?.stdout ?? '') > 2 ** 20,
    control: {
      down: 'a cap of 2 MiB, and a flood of as much',
      run: (_guest, options, _ground, lab) => lab.sandbox(lab.attack('flood', String(2 ** 21), '0'), { ...options, maxStdoutBytes: 2 ** 21 }),
    },
  }),
]);
