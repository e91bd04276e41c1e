import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { OpeningReader } from '../../src/egress/sni.js';
import type { Opening } from '../../src/egress/sni.js';
import { clientHello, handshake, records, uint, vector } from './support/hello.js';

function read(...chunks: Uint8Array[]): Opening {
  const reader = new OpeningReader();
  return chunks.reduce<Opening>((_, chunk) => reader.push(chunk), { kind: 'more' });
}

/** Cut at every byte. */
function bytewise(bytes: Buffer): Opening {
  return read(...Array.from(bytes, (byte) => Buffer.from([byte])));
}

const named = (serverName: string | null): Opening => ({ kind: 'tls', serverName });

describe('OpeningReader', () => {
  it('finds the server name and lower-cases it', () => {
    expect(read(records(clientHello()))).toEqual(named('example.com'));
    expect(read(records(clientHello({ names: [[0, 'EXAMPLE.com']] })))).toEqual(named('example.com'));
  });

  it('takes a hello without the extension, without any extension or with an empty list for one without a name', () => {
    expect(read(records(clientHello({ names: null })))).toEqual(named(null));
    expect(read(records(clientHello({ withoutExtensions: true })))).toEqual(named(null));
    expect(read(records(clientHello({ names: [] })))).toEqual(named(null));
  });

  it('passes over GREASE, other extensions and name types that it does not know', () => {
    const grease: [number, Buffer][] = [[0x0a0a, Buffer.alloc(0)], [0x1a1a, Buffer.from([0])]];
    expect(read(records(clientHello({ before: grease, after: [[0xfafa, Buffer.alloc(1)], [16, vector(2, Buffer.from('\x02h2'))]] })))).toEqual(named('example.com'));
    expect(read(records(clientHello({ names: [[7, 'other'], [0, 'example.com'], [8, 'more']] })))).toEqual(named('example.com'));
    expect(read(records(clientHello({ names: [[7, 'other']] })))).toEqual(named(null));
  });

  it('counts the outer name of an Encrypted Client Hello', () => {
    expect(read(records(clientHello({ names: [[0, 'public.example']], after: [[0xfe0d, Buffer.alloc(200, 1)]] })))).toEqual(named('public.example'));
  });

  it('reads a hello of many records, also of one byte each, in one segment or byte by byte', () => {
    const hello = clientHello({ after: [[21, Buffer.alloc(500)]] });
    for (const sizes of [[1], [3, 1, 200], Array<number>(600).fill(1), [hello.length - 1]]) {
      expect(read(records(hello, sizes))).toEqual(named('example.com'));
      expect(bytewise(records(hello, sizes))).toEqual(named('example.com'));
    }
  });

  it('needs the whole hello, and no byte more', () => {
    const bytes = records(clientHello());
    expect(read(bytes.subarray(0, -1))).toEqual({ kind: 'more' });
    expect(read(Buffer.alloc(0))).toEqual({ kind: 'more' });
    expect(read(Buffer.concat([bytes, Buffer.from('early data')]))).toEqual(named('example.com'));
  });

  it('keeps its verdict', () => {
    const reader = new OpeningReader();
    expect(reader.push(Buffer.from('GET / HTTP/1.1\r\n'))).toEqual({ kind: 'not-tls' });
    expect(reader.push(records(clientHello()))).toEqual({ kind: 'not-tls' });
  });

  it.each<[string, Buffer]>([
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
    ['redis', Buffer.from('*1\r\n$4\r\nPING\r\n')],
    ['PostgreSQL', Buffer.from([0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f])],
    ['MQTT', Buffer.from([0x10, 0x0c, 0, 4])],
    ['HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['telnet', Buffer.from([0xff, 0xfd, 0x01])],
    ['a length of 22 in front', Buffer.from([22, 0, 0, 0, 0, 0])],
    ['a length of 21 in front', Buffer.from([21, 0, 0, 0, 1, 9])],
    ['a length of 20 in front', Buffer.from([20, 0])],
    ['a control character and text', Buffer.from('\x16hello')],
    ['high bytes', Buffer.from([0x80, 0x10, 0x02])],
    ['high bytes that begin like SSLv2', Buffer.from([0x80, 0x10, 0x01, 0x09, 0x09])],
  ])('knows at once that %s is not TLS', (_, bytes) => {
    expect(read(bytes)).toEqual({ kind: 'not-tls' });
  });

  it('takes a ClientHello in the format of SSLv2 for TLS without a name', () => {
    expect(read(Buffer.from([0x80, 0x2e, 0x01, 0x03, 0x01]))).toEqual(named(null));
    expect(read(Buffer.from([0x80, 0x2e, 0x01, 0x00, 0x02]))).toEqual(named(null));
  });

  const hello = clientHello();
  it.each<[string, Buffer]>([
    ['a warning first, which some servers skip', Buffer.concat([Buffer.from([21, 3, 1, 0, 2, 1, 90]), records(hello)])],
    ['a warning first under a version of no TLS', Buffer.concat([Buffer.from([21, 0, 0, 0, 2, 1, 90]), records(hello)])],
    ['a cipher change first', Buffer.concat([Buffer.from([20, 3, 3, 0, 1, 1]), records(hello)])],
    ['application data first', Buffer.from([23, 3, 3, 0, 1, 1])],
    ['a heartbeat first', Buffer.from([24, 3, 3, 0, 1, 1])],
    ['a record of another version, which some servers take', records(hello, [], 22, 0x0100)],
    ['a record of another version, which some servers take', records(hello, [], 22, 0x0fff)],
    ['another record between two parts', Buffer.concat([records(hello.subarray(0, 20)), Buffer.from([23, 3, 3, 0, 1, 1])])],
    ['another version between two parts', Buffer.concat([records(hello.subarray(0, 20)), records(hello.subarray(20), [], 22, 0x0203)])],
    ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
    ['a record that is too long', Buffer.from([22, 3, 1, 0x40, 1])],
    ['another message first', records(Buffer.concat([handshake(Buffer.alloc(0), 0), hello]))],
    ['another message behind it', records(Buffer.concat([hello, handshake(Buffer.alloc(4), 16)]))],
    ['a hello that is too long', records(Buffer.from([1, 1, 0, 0]))],
    ['two server names', records(clientHello({ names: [[0, 'example.com'], [0, 'evil.com']] }))],
    ['the extension twice', records(clientHello({ after: [[0, vector(2, Buffer.concat([Buffer.from([0]), vector(2, Buffer.from('evil.com'))]))]] }))],
    ['another extension twice', records(clientHello({ after: [[16, Buffer.alloc(2)], [16, Buffer.alloc(2)]] }))],
    ['an empty name', records(clientHello({ names: [[0, '']] }))],
    ['a NUL in the name', records(clientHello({ names: [[0, 'example.com\0.evil.com']] }))],
    ['a space in the name', records(clientHello({ names: [[0, 'example.com ']] }))],
    ['a name that is not ASCII', records(clientHello({ names: [[0, 'exämple.com']] }))],
    ['a name of 256 bytes', records(clientHello({ names: [[0, 'a'.repeat(256)]] }))],
    ['a name that is cut short', records(clientHello({ names: null, after: [[0, Buffer.from([0, 9, 0, 0, 9, 1])]] }))],
    ['bytes behind the list', records(clientHello({ names: null, after: [[0, Buffer.from([0, 4, 0, 0, 1, 97, 0])]] }))],
    ['no list at all', records(clientHello({ names: null, after: [[0, Buffer.alloc(0)]] }))],
    ['bytes behind the extensions', records(handshake(Buffer.concat([hello.subarray(4), Buffer.from([0])])))],
    ['extensions that are cut short', records(handshake(hello.subarray(4, -1)))],
    ['a body that is cut short', records(handshake(hello.subarray(4, 30)))],
    ['an empty body', records(handshake(Buffer.alloc(0)))],
  ])('refuses %s', (_, bytes) => {
    expect(read(bytes)).toMatchObject({ kind: 'malformed' });
    expect(bytewise(bytes)).toMatchObject({ kind: 'malformed' });
  });

  it('holds a bounded number of bytes', () => {
    const reader = new OpeningReader();
    let pushed = 0;
    // A hello of the largest size, in records of one byte.
    const start = records(Buffer.concat([Buffer.from([1]), uint(3, 65000), Buffer.alloc(60000)]), Array<number>(60004).fill(1));
    while (reader.push(start.subarray(pushed, pushed + 4096)).kind === 'more') pushed += 4096;
    expect(pushed).toBeGreaterThan(100_000);
    expect(pushed).toBeLessThan(2 ** 17 + 8192);
  });

  it('gives one verdict for one stream, however it is cut', () => {
    const shape = fc.record({
      names: fc.option(fc.array(fc.tuple(fc.nat(2), fc.string({ maxLength: 20 })), { maxLength: 3 })),
      after: fc.array(fc.tuple(fc.nat(65535), fc.uint8Array({ maxLength: 40 }).map((data) => Buffer.from(data))), { maxLength: 5 }),
    });
    const stream = fc.oneof(
      fc.tuple(shape, fc.array(fc.integer({ min: 1, max: 80 }), { maxLength: 8 })).map(([value, sizes]) => records(clientHello(value), sizes)),
      fc.tuple(fc.constantFrom(20, 21, 22, 23, 24, 0x80, 0x16, 0x47), fc.constantFrom(0, 3, 15, 16), fc.uint8Array({ maxLength: 60 })).map(([first, second, rest]) => Buffer.from([first, second, ...rest])),
    );
    fc.assert(
      fc.property(stream, fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 40 }), (bytes, cuts) => {
        const chunks: Buffer[] = [];
        let rest = bytes;
        for (const cut of cuts) {
          chunks.push(rest.subarray(0, cut));
          rest = rest.subarray(cut);
        }
        const whole = read(bytes);
        expect(read(...chunks, rest)).toEqual(whole);
        expect(bytewise(bytes)).toEqual(whole);
      }),
      { numRuns: 2000 },
    );
  });

  it('never throws, whatever comes', () => {
    const valid = records(clientHello({ after: [[16, Buffer.alloc(20)]] }), [40]);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 5 }), fc.uint8Array({ maxLength: 100 }), (changes, tail) => {
        const bytes = Buffer.concat([valid, tail]);
        for (const [index, value] of changes) bytes[index] = value;
        expect(['more', 'not-tls', 'tls', 'malformed']).toContain(read(bytes).kind);
      }),
      { numRuns: 5000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => ['more', 'not-tls', 'tls', 'malformed'].includes(read(bytes).kind)), { numRuns: 5000 });
  });
});
