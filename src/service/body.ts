import type { IncomingMessage } from 'node:http';

import { Refusal } from './refusal.js';

/** Whatever a client sends after its request was found too big is read, up to this many times the limit, and dropped. */
const DISCARDED_LIMITS = 32;

/**
 * Reads a body of JSON, whatever its content type says.
 * @throws Refusal for more than `maxBytes`, and for what is no JSON.
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(request, maxBytes);
  const bytes = await read(request, maxBytes);
  if (bytes === null) throw tooLarge(request, maxBytes);
  return parsed(bytes);
}

/** Null for more than `maxBytes`. */
async function read(request: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) return null;
      chunks.push(chunk);
    }
  } catch {
    // The connection broke: there is nobody to tell.
    throw new Refusal('hung-up', 'the client has gone');
  }
  return Buffer.concat(chunks, length);
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // Not the parser's message: it quotes the text.
    throw new Refusal('invalid-json', 'invalid JSON body');
  }
}

/**
 * A client that still sends would never read its answer, if the connection were cut: what it sends is dropped instead, but
 * not without end.
 */
function tooLarge(request: IncomingMessage, maxBytes: number): Refusal {
  let left = DISCARDED_LIMITS * maxBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.on('error', () => undefined);
  request.resume();
  return new Refusal('body-too-large', `the body has more than ${maxBytes} bytes`);
}
