import { readFileSync } from 'node:fs';

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { decodeRecord, fenceBits, killCommand, RECORD_BYTES, RecordError, signalCommand } from '../../src/launcher/records.js';
import { stages } from '../../src/launcher/stages.js';

interface Fields {
  kind: number;
  stage?: number;
  error?: number;
  fences?: number;
  waitStatus?: number;
  cause?: number;
  counters?: bigint[];
  detail?: string | Uint8Array;
}

/** Lays a record out from the struct in protocol.h rather than from the offsets of the decoder. */
function record(fields: Fields): Buffer {
  const header = readFileSync(new URL('../../native/shared/protocol.h', import.meta.url), 'utf8');
  const body = /struct Record \{([^}]*)\}/.exec(header)?.[1] ?? '';
  const bytes = Buffer.alloc(RECORD_BYTES);
  let at = 0;
  let counter = 0;
  for (const [, type, name, size] of body.matchAll(/^\s+(\w+) (\w+)(?:\[(\d+)\])?;/gm)) {
    const value = fields[name as keyof Fields] ?? 0;
    if (type === 'uint64_t') at = bytes.writeBigUInt64LE(fields.counters?.[counter++] ?? 0n, at);
    else if (type === 'int32_t') at = bytes.writeInt32LE(value as number, at);
    else if (type === 'uint32_t') at = bytes.writeUInt32LE(value as number, at);
    else {
      bytes.set(Buffer.from((fields.detail ?? '') as string), at);
      at += Number(size);
    }
  }
  expect(at).toBe(RECORD_BYTES);
  return bytes;
}

describe('records', () => {
  it('reads a failure with its stage, errno and detail', () => {
    const bytes = record({ kind: 1, stage: stages.indexOf('sources'), error: 2, detail: 'openat2 /srv/dätä' });
    expect(decodeRecord(bytes)).toEqual({ kind: 'failure', stage: 'sources', errno: 2, detail: 'openat2 /srv/dätä' });
  });

  it('reads which fences were verified', () => {
    expect(decodeRecord(record({ kind: 2, fences: 0b1000001001, waitStatus: 7 }))).toEqual({
      kind: 'ready',
      fences: new Set(['privileges', 'network', 'user-namespace']),
      landlockAbi: 7,
    });
    expect(decodeRecord(record({ kind: 2, fences: 2 ** fenceBits.length - 1 }))).toEqual({ kind: 'ready', fences: new Set(fenceBits), landlockAbi: 0 });
  });

  it('reads the end with its cause and usage, null where the kernel did not tell', () => {
    const counters = [1500n, 2500n, 2n ** 40n, 7n, 2n ** 64n - 1n, 3n];
    expect(decodeRecord(record({ kind: 3, error: 16, cause: 3, waitStatus: 9, counters }))).toEqual({
      kind: 'ended',
      removalErrno: 16,
      cause: 'out-of-memory',
      waitStatus: 9,
      usage: { cpuUserUs: 1500, cpuSystemUs: 2500, peakMemoryBytes: 2 ** 40, peakPids: 7, oomKills: null, pidsRefused: 3 },
    });
    expect(decodeRecord(record({ kind: 3, waitStatus: -1 }))).toMatchObject({ cause: 'guest-ended', waitStatus: null });
  });

  it('reads whether there are sockets for IPv6', () => {
    expect(decodeRecord(record({ kind: 4, waitStatus: 1 }))).toEqual({ kind: 'sockets', hasIpv6: true });
    expect(decodeRecord(record({ kind: 4, waitStatus: 0 }))).toEqual({ kind: 'sockets', hasIpv6: false });
  });

  it('marks a detail that was cut inside a character', () => {
    const detail = Buffer.concat([Buffer.from('open /ä'), Buffer.from([0xc3])]);
    expect(decodeRecord(record({ kind: 1, detail }))).toMatchObject({ detail: 'open /ä…' });
  });

  it('works on a view into a larger buffer', () => {
    const big = Buffer.alloc(RECORD_BYTES + 7);
    record({ kind: 1, stage: stages.indexOf('exec'), error: 8, detail: 'execve /x' }).copy(big, 7);
    expect(decodeRecord(big.subarray(7))).toMatchObject({ stage: 'exec', errno: 8 });
  });

  it.each([
    ['empty', Buffer.alloc(0)],
    ['short', record({ kind: 2 }).subarray(0, -1)],
    ['long', Buffer.concat([record({ kind: 2 }), Buffer.alloc(1)])],
    ['of kind 0', record({ kind: 0 })],
    ['of an unknown kind', record({ kind: 5 })],
    ['with an unknown stage', record({ kind: 1, stage: stages.length })],
    ['with a negative errno', record({ kind: 1, error: -1 })],
    ['with an unknown fence bit', record({ kind: 2, fences: 1 << fenceBits.length })],
    ['with the highest fence bit', record({ kind: 2, fences: 2 ** 31 })],
    ['with a negative ABI of Landlock', record({ kind: 2, waitStatus: -1 })],
    ['with an unknown cause', record({ kind: 3, cause: 7 })],
    ['with a detail that does not end', record({ kind: 1, detail: 'x'.repeat(160) })],
  ])('refuses a record that is %s', (_, bytes) => {
    expect(() => decodeRecord(bytes)).toThrow(RecordError);
  });

  it('throws nothing but a RecordError, whatever comes', () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: RECORD_BYTES, maxLength: RECORD_BYTES }));
    fc.assert(
      fc.property(bytes, fc.integer({ min: 0, max: 5 }), (message, kind) => {
        if (message.length > 3) new DataView(message.buffer).setUint32(0, kind, true);
        try {
          decodeRecord(message);
        } catch (error) {
          expect(error).toBeInstanceOf(RecordError);
        }
      }),
    );
  });
});

it('writes commands as two little-endian words', () => {
  expect([...signalCommand(15)]).toEqual([1, 0, 0, 0, 15, 0, 0, 0]);
  expect([...killCommand()]).toEqual([2, 0, 0, 0, 0, 0, 0, 0]);
});
