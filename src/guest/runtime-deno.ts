import { harnessFile } from './harness-files.js';
import { GUEST_ENVIRONMENT, GUEST_PIDS, harnessArgs } from './runtime.js';
import type { Runtime, Setting } from './runtime.js';

/** Where Deno imports from when no flag says otherwise; `--deny-import` without hosts would deny nothing. */
const DEFAULT_IMPORT_HOSTS = [
  'deno.land:443',
  'jsr.io:443',
  'esm.sh:443',
  'raw.esm.sh:443',
  'cdn.jsdelivr.net:443',
  'raw.githubusercontent.com:443',
  'gist.githubusercontent.com:443',
];

/** A list of its own replaces the default; a name that cannot exist (RFC 6761) makes it an empty one. */
const NO_HOST = 'none.invalid:443';

export function denoRuntime(command: string): Runtime {
  const harness = harnessFile('deno');
  return {
    name: 'deno',
    command,
    files: [harness],
    env: ({ import: imports }) => ({
      ...GUEST_ENVIRONMENT,
      DENO_NO_UPDATE_CHECK: '1',
      DENO_NO_PROMPT: '1',
      // Deno would write what it makes of a source, and by what name it got it, which holds the source. Only what is imported
      // from elsewhere has to lie somewhere: in the sandbox's own memory.
      DENO_EMIT_CACHE_MODE: 'disable',
      DENO_DIR: imports.length === 0 ? '/dev/null' : '/tmp/deno',
    }),
    pids: GUEST_PIDS,
    overheadMb: (memoryMb) => 112 + Math.ceil(memoryMb / 24),
    args: (setting) => [
      'run',
      '--quiet',
      '--no-prompt',
      '--no-config',
      '--no-lock',
      '--no-check',
      '--no-npm',
      '--no-code-cache',
      // By the second one no realm has SharedArrayBuffer, neither a worker's nor a context's.
      `--v8-flags=--max-old-space-size=${setting.memoryMb},--enable-sharedarraybuffer-per-context`,
      ...permissionFlags(setting),
      harness.path,
      ...harnessArgs(setting),
    ],
  };
}

/** The guest's, and the channel's, which the harness gives up before there is a guest. */
function permissionFlags({ net, import: imports, port }: Setting): string[] {
  return [
    `--allow-net=${[`127.0.0.1:${port}`, ...net].join(',')}`,
    ...(imports.length === 0
      ? ['--no-remote', '--cached-only', `--deny-import=${DEFAULT_IMPORT_HOSTS.join(',')}`, `--allow-import=${NO_HOST}`]
      : [`--allow-import=${imports.join(',')}`]),
  ];
}
