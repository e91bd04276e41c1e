import { harnessFiles } from './harness-files.js';
import { GUEST_ENVIRONMENT, GUEST_PIDS } from './runtime.js';
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

export function denoRuntime(command: string): Runtime {
  const { entry, files } = harnessFiles('deno', ['deno-worker', 'frames', 'realm']);
  return {
    name: 'deno',
    command,
    files,
    env: { ...GUEST_ENVIRONMENT, DENO_NO_UPDATE_CHECK: '1', DENO_NO_PROMPT: '1' },
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
      '--unstable-worker-options',
      `--v8-flags=--max-old-space-size=${setting.memoryMb}`,
      ...permissionFlags(setting, files.map(({ path }) => path)),
      entry,
      String(setting.port),
      JSON.stringify(guestPermissions(setting)),
    ],
  };
}

/** For the trusted isolate: its channel, its own files, and all that it has to have to give it to the guest's. */
function permissionFlags({ net, import: imports, port }: Setting, files: readonly string[]): string[] {
  return [
    `--allow-net=${[`127.0.0.1:${port}`, ...net].join(',')}`,
    `--allow-read=${files.join(',')}`,
    ...(imports.length === 0
      ? ['--no-remote', '--cached-only', `--deny-import=${DEFAULT_IMPORT_HOSTS.join(',')}`]
      : [`--allow-import=${imports.join(',')}`]),
  ];
}

/** As `new Worker` takes them: what is not named would be inherited. */
function guestPermissions({ net, import: imports }: Setting): unknown {
  const none = { env: false, ffi: false, read: false, run: false, sys: false, write: false };
  return { ...none, net: net.length === 0 ? false : net, import: imports.length === 0 ? false : imports };
}
