import { Command } from 'commander';
import { expect, it } from 'vitest';

import { flagByField, inEvalFlags, inFlags } from '../../src/cli/flag-names.js';
import { defineRunFlags } from '../../src/cli/run-flags.js';
import { optionsOf } from '../../src/cli/run-options.js';
import type { RunFlags } from '../../src/cli/run-flags.js';
import { optionNames } from '../../src/run/option-schema.js';

const HERE = { name: '/here', real: '/real/here' };
const flagsOf = () => defineRunFlags(new Command(), {}).options.map(({ long }) => long);

/** Options that a command line has in another shape: its arguments, streams and signals, and flags without a value. */
const ELSEWHERE: Record<string, string | null> = {
  command: null,
  args: null,
  signal: null,
  onStdout: null,
  onStderr: null,
  stdin: '--no-stdin',
  cwd: '--cwd',
  cwdReadOnly: '--write',
  env: '--env',
  network: '--network',
  seccomp: null,
  isolation: '--best-effort',
  keepOutput: null,
};

it('every option of the library has a flag', () => {
  const { own, sections } = optionNames;
  const fields = [
    ...own.filter((name) => !Object.hasOwn(sections, name)),
    ...Object.entries(sections).flatMap(([section, names]) => names.map((name) => `${section}.${name}`)),
  ];
  const known = new Map<string, string | null>([...Object.entries(flagByField), ...Object.entries(ELSEWHERE)]);
  for (const field of fields) {
    expect(known.has(field), `${field} has no flag`).toBe(true);
    const flag = known.get(field);
    if (typeof flag === 'string') expect(flagsOf(), field).toContain(flag);
  }
});

it('flags that are given become the options they stand for', () => {
  const command = defineRunFlags(new Command(), { TOKEN: 'secret' });
  command.parse(
    '--timeout 2s --grace 100ms --shutdown-signal int --memory 1G --pids 5 --cpus 0.5 --cpu-time 3s --open-files 10 --file-size 2M --tmp 8M --read a --read /b --write c --cwd d --env TOKEN --env A=b=c --network host --best-effort --max-stdout 1K --max-stderr 2K --node-heap 64M'.split(' '),
    { from: 'user' },
  );
  expect(optionsOf(command.opts<RunFlags>(), './x', ['y'], HERE)).toEqual({
    command: '/here/x',
    args: ['y'],
    cwd: '/here/d',
    cwdReadOnly: true,
    env: { TOKEN: 'secret', A: 'b=c' },
    timeoutMs: 2000,
    gracePeriodMs: 100,
    shutdownSignal: 'SIGINT',
    maxStdoutBytes: 1024,
    maxStderrBytes: 2048,
    nodeHeapMb: 64,
    network: 'host',
    filesystem: { read: ['/here/a', '/b'], write: ['/here/c'], tmpMb: 8 },
    limits: { memoryMb: 1024, pids: 5, cpus: 0.5, cpuTimeMs: 3000, openFiles: 10, fileSizeMb: 2 },
    isolation: 'best-effort',
  });
});

it('an allowlist is made of its three flags', () => {
  const optionsFor = (words: string) => {
    const command = defineRunFlags(new Command(), {});
    command.parse(words.split(' '), { from: 'user' });
    return optionsOf(command.opts<RunFlags>(), './x', [], HERE).network;
  };
  expect(optionsFor('--allow a.test --allow *.b.test:8443 --allow-private 10.0.0.0/8 --host a.test=10.0.0.5')).toEqual({
    allow: ['a.test', '*.b.test:8443'],
    allowPrivate: ['10.0.0.0/8'],
    hosts: { 'a.test': '10.0.0.5' },
  });
  expect(optionsFor('--no-stdin')).toBeUndefined();
  expect(() => optionsFor('--allow a.test --network host')).toThrow(/--allow and --network host contradict/);
  expect(() => optionsFor('--allow a.test --network none')).toThrow(/contradict/);
  expect(() => optionsFor('--allow-private 10.0.0.0/8')).toThrow(/add --allow HOST/);
  expect(() => optionsFor('--host a.test=10.0.0.5')).toThrow(/add --allow HOST/);
});

it('messages of the library name flags', () => {
  expect(inFlags('network.allow[2] ("*.com") would allow everything')).toBe('--allow ("*.com") would allow everything');
  expect(inFlags('network.hosts["a\\"b.test"] is not in network.allow')).toBe('--host ("a\\"b.test") is not in --allow');
  expect(inFlags('network.allowPrivate[0] ("x") must')).toBe('--allow-private ("x") must');
  expect(inFlags('filesystem.read[0] (/nowhere) must exist')).toBe('--read (/nowhere) must exist');
  expect(inFlags('cwd (/nowhere) must exist')).toBe('--cwd (/nowhere) must exist');
  expect(inFlags('lower limits.openFiles or limits.fileSizeMb')).toBe('lower --open-files or --file-size');
  expect(inFlags('name them, or use network: "host"')).toBe('name them, or use --network host');
  expect(inFlags('maxStdoutBytes must be at most 5 unless keepOutput is false, got 6')).toBe('--max-stdout must be at most 5 with --json, got 6');
  expect(inFlags('filesystem.write[0] (/tmp) must not contain os.tmpdir() (/tmp) unless cwd is given')).toBe('--write (/tmp) must not contain os.tmpdir() (/tmp) with --no-cwd');
  expect(inEvalFlags('capabilities.import must be empty')).toBe('--import must be empty');
});
