import { attack, attackClass } from './support/attack.js';
import type { Attempt } from './support/attack.js';
import { withOptions } from './support/controls.js';
import { denoPath } from './support/deno.js';
import type { Lab } from './support/lab.js';

const script = new URL('../fixtures/escape/break-out.mjs', import.meta.url).pathname;

interface Secret {
  directory: string;
  file: string;
  word: string;
}

const deno = (...permissions: string[]) => [denoPath(), 'run', '--no-prompt', '--no-config', '--allow-env', ...permissions, script];

/** Each with what the runtime's own walls let through, and that is enough. */
const ways: [title: string, way: string, command: () => string[]][] = [
  ['What breaks out of a context of node:vm, as out of vm2, reads no file of the host', 'vm', () => [process.execPath, script]],
  ['What Deno lets call into C reads no file of the host', 'ffi', () => deno('--allow-ffi')],
  ['What Deno lets start programs reads no file of the host', 'command', () => deno('--allow-run=/bin/cat')],
];

attackClass({ name: "past the runtimes' own sandboxes", program: 'files.c' }, [
  ...ways.map(([title, way, command]) =>
    attack({
      title,
      ground: (lab: Lab): Secret => lab.secret(),
      guest: (_lab, { file }) => {
        const [first = '', ...words] = command();
        return { command: first, args: [...words, way, file] };
      },
      options: () => ({ filesystem: { read: [script] } }),
      control: withOptions('its directory granted', ({ directory }: Secret) => ({ filesystem: { read: [script, directory] } })),
      escaped: ({ stdout }: Attempt, { word }) => stdout.includes(word),
    }),
  ),
]);
