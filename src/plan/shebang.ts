/** Who runs a script: the interpreter its first line names, and through env the command that env looks up. */
export interface Shebang {
  /** Absolute path. */
  interpreter: string;
  /** The name that `env` looks up in PATH, or null. */
  command: string | null;
}

/** env's options that take the next word as their value. */
const OPTIONS_WITH_VALUE = new Set(['-u', '--unset', '-C', '--chdir']);

/** Reads a `#!` line as the kernel does: interpreter, then at most one argument. Null when there is none that could run. */
export function parseShebang(head: string): Shebang | null {
  const match = /^#![ \t]*(\/[^\s\0]*)(?:[ \t]+([^\n\0]*))?/.exec(head);
  const interpreter = match?.[1];
  if (interpreter === undefined) return null;
  const isEnv = interpreter.endsWith('/env');
  return { interpreter, command: isEnv ? commandOfEnv(match?.[2] ?? '') : null };
}

/** env gets its one argument unsplit, unless -S tells it to split. */
function commandOfEnv(argument: string): string | null {
  const text = argument.trimEnd();
  const split = /^(?:-[a-zA-Z]*S|--split-string=?)[ \t]*(.*)$/.exec(text);
  if (split === null) return text !== '' && !text.startsWith('-') && !text.includes('=') ? text : null;
  const words = (split[1] ?? '').split(/[ \t]+/).filter((word) => word !== '');
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (OPTIONS_WITH_VALUE.has(word)) at++;
    else if (!word.startsWith('-') && !word.includes('=')) return word;
  }
  return null;
}
