/**
 * Whether a source may use what Deno has from Node, which takes Deno 9 ms to load: its timers among them, and globals like
 * Buffer. What the host expects of functions to come.
 */
export function mayUseNode(source: string): boolean {
  return apply(test, words, [source]) as boolean;
}

const words = /\b(?:import|require|process|Buffer|global|(?:set|clear)(?:Timeout|Interval|Immediate))\b/;
const { apply } = Reflect;
const { test } = RegExp.prototype;
