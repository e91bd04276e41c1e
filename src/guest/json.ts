import { ProtocolError } from './frames.js';

/** Far below what overflows the stack of whoever walks the value; no caller's data nests like this by accident. */
const MAX_DEPTH = 512;
/** What the engine makes of 2 MiB of brackets takes a hundred times the memory, and a second in which nothing else is done. */
const MAX_CONTAINERS = 100_000;
const MAX_NAMES = 200_000;

/** The name, each of its letters as such or as an escape. */
const PROTO = new RegExp([...'__proto__'].map((letter) => `(?:${letter}|\\\\u00${letter.charCodeAt(0).toString(16).replace('f', '[fF]')})`).join(''));

/**
 * Reads JSON that an adversary wrote: bounded in depth and number, and without `__proto__` members, which a later copy of the
 * value (`target[key] = value`) would turn into a prototype.
 *
 * @throws ProtocolError when it is no JSON, nests too deep or holds too much.
 */
export function parseForeignJson(text: string): unknown {
  const problem = problemOf(text);
  if (problem !== null) throw new ProtocolError(problem);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ProtocolError('a frame that is not JSON');
  }
  if (PROTO.test(text)) removeProto(value);
  return value;
}

function problemOf(text: string): string | null {
  let [depth, containers, names] = [0, 0, 0];
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      containers++;
      if (++depth > MAX_DEPTH) return `JSON that nests more than ${MAX_DEPTH} levels deep`;
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x3a) names++;
  }
  if (containers > MAX_CONTAINERS) return `JSON with more than ${MAX_CONTAINERS} arrays and objects`;
  return names > MAX_NAMES ? `JSON with more than ${MAX_NAMES} names` : null;
}

function removeProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) delete (value as Record<string, unknown>)['__proto__'];
  for (const member of Object.values(value)) removeProto(member);
}
