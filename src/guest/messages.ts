import { z } from 'zod';

import { ProtocolError } from './frames.js';
import { parseForeignJson } from './json.js';

export const MAX_METHOD_CHARACTERS = 512;
const LOG_ENTRY = /^(?:log|info|warn|error|debug|trace|dir|table|group|groupCollapsed): /;

/** What a guest may say; anything else ends its run. */
const guestMessage = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('ready') }),
  z.strictObject({ t: z.literal('log'), text: z.string().regex(LOG_ENTRY) }),
  z.strictObject({ t: z.literal('call'), id: z.int().positive(), method: z.string().min(1).max(MAX_METHOD_CHARACTERS), args: z.unknown().optional() }),
  z.strictObject({ t: z.literal('result'), output: z.unknown().optional() }),
  z.strictObject({ t: z.literal('failure'), error: z.string() }),
]);

export type GuestMessage = z.infer<typeof guestMessage>;
export type GuestCall = Extract<GuestMessage, { t: 'call' }>;
export type GuestOutcome = Extract<GuestMessage, { t: 'result' | 'failure' }>;

/** How a call of the guest went. */
export type Reply = { ok: true; value: unknown } | { ok: false; error: { code: string; message: string } };

/** The function and all that it gets. */
export interface Envelope {
  source: string;
  /** As JSON; null where there is none. */
  input: string | null;
  secrets: Record<string, string>;
  bindings: 'none' | 'broker' | string[];
}

/** @throws ProtocolError for what is none of the messages. */
export function parseGuestMessage(text: string): GuestMessage {
  const parsed = guestMessage.safeParse(parseForeignJson(text));
  if (!parsed.success) throw new ProtocolError('a message of no known form');
  return parsed.data;
}

export function startMessage({ input, ...envelope }: Envelope): string {
  const rest = JSON.stringify({ t: 'start', ...envelope });
  return input === null ? rest : `${rest.slice(0, -1)},"input":${input}}`;
}

/** @throws TypeError when the value is not JSON. */
export function replyMessage(id: number, reply: Reply): string {
  return JSON.stringify({ t: 'reply', id, ...reply });
}
