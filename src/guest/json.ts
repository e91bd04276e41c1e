import { ProtocolError } from './frames.js';

/** Far below what overflows the stack of whoever walks the value; no caller's data nests like this by accident. */
const MAX_DEPTH = 512;

/**
 * Reads JSON that an adversary wrote: bounded depth, and without `__proto__` members, which a later copy of the value
 * (`target[key] = value`) would turn into a prototype.
 *
 * @throws ProtocolError when it is no JSON or nests too deep.
 */
export function parseForeignJson(text: string): unknown {
  if (depthOf(text) > MAX_DEPTH) throw new ProtocolError(`JSON that nests more than ${MAX_DEPTH} levels deep`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ProtocolError('a frame that is not JSON');
  }
  // Its name can be spelled with escapes, so that a search of the text for it proves nothing if there are any.
  if (text.includes('__proto__') || text.includes('\\u')) removeProto(value);
  return value;
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > deepest) deepest = depth;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

function removeProto(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Object.hasOwn(value, '__proto__')) delete (value as Record<string, unknown>)['__proto__'];
  for (const member of Object.values(value)) removeProto(member);
}
