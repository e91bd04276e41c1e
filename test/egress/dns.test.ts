import fc from 'fast-check';
import { decode, encode } from 'dns-packet';
import type { DecodedPacket, Packet, RecordType } from 'dns-packet';
import { describe, expect, it } from 'vitest';

import { answer } from '../../src/egress/dns.js';
import type { Lookup } from '../../src/egress/dns.js';

const ADDRESS = '198.18.1.0';
const lookup: Lookup = (name) => {
  const lower = name.toLowerCase();
  if (lower === 'full.test') return 'full';
  return lower === 'example.com' || lower.endsWith('.wild.test') ? { address: ADDRESS } : 'refused';
};
const opt = (udpPayloadSize: number) => ({ type: 'OPT' as const, name: '.', udpPayloadSize, extendedRcode: 0, ednsVersion: 0, flags: 0, flag_do: false, options: [] });

function query(name: string, type = 'A', more: Partial<Packet> = {}): Buffer {
  return encode({ type: 'query', id: 0x1234, flags: 0x0100, questions: [{ name, type: type as RecordType, class: 'IN' }], ...more });
}

function ask(message: Buffer, transport: 'udp' | 'tcp' = 'udp'): { packet: DecodedPacket & { rcode?: string }; refused?: { name: string; type: string }; malformed?: { name: string; reason: string } } {
  const { reply, refused, malformed } = answer(message, lookup, transport);
  if (!reply) throw new Error('no reply');
  return { packet: decode(reply), ...(refused && { refused }), ...(malformed && { malformed }) };
}

describe('answer', () => {
  it('gives an allowed name one A record, and echoes id, flags and the case of the question', () => {
    const { packet, refused } = ask(query('eXaMpLe.CoM'));
    expect(packet).toMatchObject({ id: 0x1234, type: 'response', rcode: 'NOERROR', flag_aa: true, flag_ra: true, flag_rd: true, flag_tc: false });
    expect(packet.questions).toMatchObject([{ name: 'eXaMpLe.CoM', type: 'A', class: 'IN' }]);
    expect(packet.answers).toMatchObject([{ name: 'eXaMpLe.CoM', type: 'A', data: ADDRESS, ttl: 300 }]);
    expect(refused).toBeUndefined();
  });

  it('answers ANY with the A record', () => {
    expect(ask(query('example.com', 'ANY')).packet.answers).toMatchObject([{ type: 'A', data: ADDRESS }]);
  });

  it.each([
    ['evil.com', 'A'], ['example.com.evil.com', 'AAAA'], ['1.0.0.127.in-addr.arpa', 'PTR'], ['.', 'NS'], ['com', 'A'], ['_dns.resolver.arpa', 'UNKNOWN_64'], ['sp ace.com', 'A'], ['bücher.de', 'A'],
  ])('tells that %s (%s) does not exist, and reports it', (name, type) => {
    const { packet, refused } = ask(query(name, type));
    expect(packet).toMatchObject({ rcode: 'NXDOMAIN', answers: [] });
    expect(packet.questions?.[0]?.name).toBe(name);
    expect(refused).toEqual({ name, type });
  });

  it('refuses other classes than IN, and says that it is for the class', () => {
    for (const name of ['example.com', 'version.bind']) {
      const { packet, ...told } = ask(query(name, 'TXT', { questions: [{ name, type: 'TXT', class: 'CH' }] }));
      expect(packet.rcode).toBe('NXDOMAIN');
      expect(told).toEqual({ malformed: { name, reason: 'DNS query of class CH: only IN is answered' } });
    }
  });

  it('fails cleanly when no address is left', () => {
    expect(ask(query('full.test')).packet).toMatchObject({ rcode: 'SERVFAIL', answers: [] });
  });

  it('answers EDNS with EDNS, and its absence with its absence', () => {
    expect(ask(query('example.com', 'A', { additionals: [opt(4096)] })).packet.additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232 }]);
    expect(ask(query('example.com')).packet.additionals).toEqual([]);
  });

  it('truncates what does not fit a datagram of 512 bytes, and only there', () => {
    const label = 'a'.repeat(60);
    const long = query(`${label}.${label}.${label}.${'b'.repeat(59)}.wild.test`);
    const { packet } = ask(long);
    expect(packet).toMatchObject({ flag_tc: true, answers: [], rcode: 'NOERROR' });
    expect(ask(long, 'tcp').packet).toMatchObject({ flag_tc: false, answers: [{ data: ADDRESS }] });
    const edns = encode({ ...decode(long), type: 'query', additionals: [opt(1232)] });
    expect(ask(edns).packet).toMatchObject({ flag_tc: false, answers: [{ data: ADDRESS }] });
  });

  it('drops responses and what is shorter than a header, and tells of them', () => {
    const none = { reply: null, malformed: { name: 'unknown', reason: 'no DNS query' } };
    expect(answer(encode({ type: 'response', questions: [{ name: 'example.com', type: 'A' }] }), lookup, 'udp')).toEqual(none);
    expect(answer(Buffer.alloc(11), lookup, 'udp')).toEqual(none);
    expect(answer(Buffer.alloc(0), lookup, 'udp')).toEqual(none);
  });

  it('implements plain queries only', () => {
    const update = query('example.com');
    update[2] = 5 << 3;
    expect(ask(update).packet.rcode).toBe('NOTIMP');
    expect(answer(update, lookup, 'udp').malformed).toEqual({ name: 'example.com', reason: 'DNS opcode 5' });
  });

  it.each<[string, (message: Buffer) => Buffer]>([
    ['two questions', (message) => changed(message, 5, 2)],
    ['no question', () => encode({ type: 'query', id: 0x1234, questions: [] })],
    ['65535 questions', (message) => changed(changed(message, 4, 255), 5, 255)],
    ['an answer', () => query('example.com', 'A', { answers: [{ type: 'A', name: 'example.com', data: '1.2.3.4' }] })],
    ['a name cut short', (message) => message.subarray(0, 16)],
    ['a type cut short', (message) => message.subarray(0, message.length - 3)],
    ['a pointer for a name', () => Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x04, 0, 1, 0, 1])],
    ['a pointer to itself', () => Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1])],
    ['a dot inside a label', (message) => changed(message.subarray(0, 12 + 1 + 7 + 1 + 3 + 5), 12, 11, 'example.com')],
    ['broken UTF-8', (message) => changed(message, 13, 0xff)],
    ['a reserved label kind', (message) => changed(message, 12, 0x87)],
    ['an option cut short', () => query('example.com', 'A', { additionals: [opt(512)] }).subarray(0, -4)],
  ])('answers %s with FORMERR', (_, change) => {
    const { packet, refused, malformed } = ask(change(query('example.com')));
    expect(packet).toMatchObject({ id: 0x1234, rcode: 'FORMERR', answers: [] });
    expect(refused).toBeUndefined();
    expect(malformed?.reason).toBe('malformed DNS query');
  });

  it.each<[string, number[], string]>([
    ['dots inside labels', [3, 0x61, 0x2e, 0x62, 1, 0x63, 0], 'a\\.b.c'],
    ['bytes that are no text', [2, 0x1b, 0xff, 0], '\u001b\u00ff'],
    ['a name cut short', [9, 0x61, 0x62], 'ab'],
    ['a pointer', [1, 0x61, 0xc0, 12], 'a'],
    ['nothing', [], 'unknown'],
  ])('tells the name of what is malformed by %s, as far as there is one', (_, bytes, name) => {
    const message = Buffer.concat([query('x').subarray(0, 12), Buffer.from(bytes)]);
    expect(answer(message, lookup, 'udp').malformed).toEqual({ name, reason: 'malformed DNS query' });
  });

  it.each(['AAAA', 'TXT', 'MX', 'UNKNOWN_65', 'UNKNOWN_64', 'SRV', 'CNAME', 'NS', 'SOA', 'CAA', 'PTR', 'UNKNOWN_65280'])('gives an allowed name no %s record (65 is HTTPS, 64 SVCB), but says that it exists', (type) => {
    const { packet, refused } = ask(query('example.com', type));
    expect(packet).toMatchObject({ rcode: 'NOERROR', answers: [] });
    expect(packet.questions).toMatchObject([{ name: 'example.com' }]);
    expect(refused).toBeUndefined();
  });

  it('never throws, answers nothing but queries, and stays small, whatever comes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => check(Buffer.from(bytes))),
      { numRuns: 2000 },
    );
    const start = [...query('example.com', 'A', { additionals: [opt(1232)] })];
    const mutation = fc.array(fc.tuple(fc.nat(start.length - 1), fc.nat(255)), { maxLength: 6 });
    fc.assert(
      fc.property(mutation, fc.uint8Array({ maxLength: 40 }), (changes, tail) => {
        const bytes = [...start, ...tail];
        for (const [index, value] of changes) bytes[index] = value;
        check(Buffer.from(bytes));
      }),
      { numRuns: 5000 },
    );
  });

  it('gives no address for any name but the allowed ones, however the question is spelt', () => {
    const label = fc.uint8Array({ minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(label, { maxLength: 5 }), (labels) => {
        const name = Buffer.concat([...labels.flatMap((bytes) => [Buffer.from([bytes.length]), Buffer.from(bytes)]), Buffer.from([0, 0, 1, 0, 1])]);
        const asked: string[] = [];
        const { reply } = answer(Buffer.concat([query('x').subarray(0, 12), name]), (text) => (asked.push(text), 'refused'), 'udp');
        expect(reply).not.toBeNull();
        // Either it was looked up under exactly the labels that it has, or not at all.
        for (const text of asked) expect(text === '.' ? 0 : text.split('.').length).toBe(labels.length);
      }),
      { numRuns: 2000 },
    );
  });
});

function check(message: Buffer): void {
  const { reply } = answer(message, lookup, 'udp');
  if (!reply) return;
  expect(reply.length).toBeLessThanOrEqual(1232);
  expect(message[2]! & 0x80).toBe(0);
  expect(reply[2]! & 0x80).toBe(0x80);
  expect(reply.subarray(0, 2).equals(message.subarray(0, 2))).toBe(true);
}

function changed(message: Buffer, offset: number, value: number, text = ''): Buffer {
  const copy = Buffer.from(message);
  copy[offset] = value;
  copy.write(text, offset + 1);
  return copy;
}
