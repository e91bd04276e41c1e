import { readFileSync } from 'node:fs';

import { builtFile } from './built.js';

/** Where the harness lies inside a sandbox. */
const DIRECTORY = '/ringfence';

export interface HarnessFile {
  path: string;
  content: string;
}

/**
 * The built harness of one runtime as a file of a sandbox. One file: each further module would cost a start of Deno about a
 * millisecond. @throws when the package was not built.
 */
export function harnessFile(entry: string, before: string[] = []): HarnessFile {
  const modules = [...before, 'frames', 'threads', 'bindings', 'realm'].map((name) => closed(textOf(name)));
  return { path: `${DIRECTORY}/${entry}.mjs`, content: [...modules, textOf(entry)].join('\n') };
}

/** The same as a script, which Node starts two milliseconds sooner than a module. */
export function harnessScript(entry: string): HarnessFile {
  const { path, content } = harnessFile(entry, ['code-cache']);
  return { path: path.replace(/mjs$/, 'cjs'), content: `'use strict';\n${content.replaceAll(NODE_IMPORT, "const $1 = require('$2');")}` };
}

const NODE_IMPORT = /^import (\{.*\}) from '(node:[\w/]+)';$/gm;

const COMMENT = /^\s*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)\n/gm;
const OWN_IMPORT = /^import .* from '\.\/\w+\.mjs';$/gm;
const EXPORT = /^export (?=(?:async )?(?:function|class|const) (\w+))/gm;

/** A module as a statement that declares what it exports, and nothing else; its imports are in scope by then. */
function closed(text: string): string {
  const names = [...text.matchAll(EXPORT)].map(([, name]) => name).join(', ');
  return `const { ${names} } = (() => {\n${text.replaceAll(EXPORT, '').replace(/^export \{\};$/m, '')}\nreturn { ${names} };\n})();`;
}

function textOf(name: string): string {
  return readFileSync(builtFile(`harness/${name}.mjs`), 'utf8').replaceAll(COMMENT, '').replaceAll(OWN_IMPORT, '');
}
