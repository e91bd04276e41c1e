import { AUTHORITATIVE_ANSWER, decode, encode, RECURSION_AVAILABLE, TRUNCATED_RESPONSE } from 'dns-packet';
import type { Answer, DecodedPacket, Question } from 'dns-packet';

/** What the responder says to one message. */
export interface DnsReply {
  /** Null: no answer is due (a response, or too short to be a query). */
  reply: Buffer | null;
  /** The question that got NXDOMAIN. */
  refused?: { name: string; type: string };
  /** What is no query that can be answered: its name as far as it can be read, which may hold any character. */
  malformed?: { name: string; reason: string };
}

/** Who may be looked up: the address that the guest gets for a name, `refused`, or `full` when none is left. */
export type Lookup = (name: string) => { address: string } | 'refused' | 'full';

const HEADER = 12;
const RCODE = { none: 0, malformed: 1, failed: 2, noSuchName: 3, notImplemented: 4 } as const;
const KEPT_FLAGS = 0x0110; // recursion desired, checking disabled: echoed
// An address stands for its name for the whole run.
const TTL_SECONDS = 300;
const LARGEST_UDP_REPLY = 1232;
const SMALLEST_UDP_REPLY = 512;
const LONGEST_LABEL = 63;
const MOST_LABELS = 127;
const NO_NAME = 'unknown';

/**
 * Answers one DNS message of the guest; never throws. An allowed name has an A record and nothing else, every other
 * name does not exist, and nothing is asked of anyone.
 */
export function answer(query: Buffer, lookup: Lookup, transport: 'udp' | 'tcp'): DnsReply {
  if (query.length < HEADER || (query.readUInt8(2) & 0x80) !== 0) return { reply: null, malformed: { name: NO_NAME, reason: 'no DNS query' } };
  const name = readableName(query);
  const opcode = (query.readUInt8(2) & 0x78) >> 3;
  if (opcode !== 0) return { reply: header(query, RCODE.notImplemented), malformed: { name, reason: `DNS opcode ${opcode}` } };
  const packet = parse(query);
  const question = packet?.questions?.[0];
  if (!packet || !question) return { reply: header(query, RCODE.malformed), malformed: { name, reason: 'malformed DNS query' } };
  const { answers, rcode, refused } = decide(question, lookup);
  const reply = build(query, packet, question, answers, rcode);
  const truncated = transport === 'udp' && reply.length > udpLimit(packet);
  return {
    reply: truncated ? build(query, packet, question, [], rcode, TRUNCATED_RESPONSE) : reply,
    ...(refused && { refused: { name: question.name, type: question.type } }),
    ...(question.class !== 'IN' && { malformed: { name, reason: `DNS query of class ${question.class}: only IN is answered` } }),
  };
}

function decide(question: Question, lookup: Lookup): { answers: Answer[]; rcode: number; refused: boolean } {
  if (question.class !== 'IN') return { answers: [], rcode: RCODE.noSuchName, refused: false };
  const found = lookup(question.name);
  if (found === 'refused') return { answers: [], rcode: RCODE.noSuchName, refused: true };
  if (found === 'full') return { answers: [], rcode: RCODE.failed, refused: false };
  const wanted = ['A', 'ANY'].includes(question.type);
  const record: Answer = { type: 'A', name: question.name, ttl: TTL_SECONDS, data: found.address };
  return { answers: wanted ? [record] : [], rcode: RCODE.none, refused: false };
}

/** Null for what is no query with exactly one question in its only possible spelling. */
function parse(query: Buffer): DecodedPacket | null {
  const counts = [4, 6, 8, 10].map((offset) => query.readUInt16BE(offset));
  // Before decoding: counts are the sender's word, and records that no query has would be decoded by the thousand.
  if (counts[0] !== 1 || counts[1] !== 0 || counts[2] !== 0 || (counts[3] ?? 0) > 2) return null;
  try {
    const packet = decode(query);
    // Dots inside labels, pointers and broken UTF-8 are lost in the decoded name; it would not be the one that was asked for.
    const question = encode({ questions: packet.questions ?? [] }).subarray(HEADER);
    return question.equals(query.subarray(HEADER, HEADER + question.length)) ? packet : null;
  } catch {
    // dns-packet throws plain and range errors for every kind of malformed message.
    return null;
  }
}

/** For the log alone: the labels of a question that may be anything, up to where they stop to be some. */
function readableName(query: Buffer): string {
  const labels: string[] = [];
  for (let at = HEADER; labels.length < MOST_LABELS; ) {
    const length = query[at] ?? 0;
    if (length === 0 || length > LONGEST_LABEL) break;
    labels.push(query.subarray(at + 1, at + 1 + length).toString('latin1').replace(/[.\\]/g, '\\$&'));
    at += 1 + length;
  }
  return labels.length === 0 ? NO_NAME : labels.join('.');
}

function build(query: Buffer, packet: DecodedPacket, question: Question, answers: Answer[], rcode: number, flags = 0): Buffer {
  const edns = packet.additionals?.some((record) => record.type === 'OPT') ?? false;
  return encode({
    type: 'response',
    id: query.readUInt16BE(0),
    flags: (query.readUInt16BE(2) & KEPT_FLAGS) | AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | flags | rcode,
    questions: [question],
    answers,
    additionals: edns
      ? [{ type: 'OPT', name: '.', udpPayloadSize: LARGEST_UDP_REPLY, extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] }]
      : [],
  });
}

function header(query: Buffer, rcode: number): Buffer {
  const flags = (query.readUInt16BE(2) & (KEPT_FLAGS | 0x7800)) | RECURSION_AVAILABLE | rcode;
  return encode({ type: 'response', id: query.readUInt16BE(0), flags });
}

function udpLimit(packet: DecodedPacket): number {
  const option = packet.additionals?.find((record) => record.type === 'OPT');
  const offered = option?.type === 'OPT' ? option.udpPayloadSize : SMALLEST_UDP_REPLY;
  return Math.min(LARGEST_UDP_REPLY, Math.max(SMALLEST_UDP_REPLY, offered));
}
