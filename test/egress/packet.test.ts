import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { parsePacket } from '../../src/egress/packet.js';
import { datagram, segment } from './support/packets.js';

describe('parsePacket', () => {
  it('reads where a TCP segment and a datagram go, of either family', () => {
    expect(parsePacket(segment({ to: '93.184.1.1', port: 8443 }))).toMatchObject({ protocol: 'tcp', address: '93.184.1.1', port: 8443 });
    expect(parsePacket(segment({ from: '::1', to: '2606:4700::1111', port: 443 }))).toMatchObject({ protocol: 'tcp', address: '2606:4700::1111', port: 443 });
    expect(parsePacket(datagram({ to: '8.8.8.8', port: 53 }))).toMatchObject({ protocol: 'udp', address: '8.8.8.8', port: 53 });
    expect(parsePacket(datagram({ from: '::1', to: '2001:4860:4860::8888', port: 53 }))).toMatchObject({ protocol: 'udp', address: '2001:4860:4860::8888', port: 53 });
  });

  it('reads past the options of an IPv4 header', () => {
    expect(parsePacket(segment({ to: '1.2.3.4', port: 99, options: 40 }))).toMatchObject({ address: '1.2.3.4', port: 99 });
  });

  it('reads past a routing header and that of a first fragment', () => {
    const to = '2606:4700::1111';
    const behind = (packet: Uint8Array, kind: number, header: number[]) => {
      const bytes = Uint8Array.from([...packet.subarray(0, 40), packet[6] ?? 0, ...header.slice(1), ...packet.subarray(40)]);
      bytes[6] = kind;
      return bytes;
    };
    const routing = (hops: number, via: number[]) => [0, 2 * hops, 4, hops - 1, hops - 1, 0, 0, 0, ...Array.from({ length: hops }, () => via).flat()];
    const elsewhere = [0x26, 0, 0xbe, 0xef, ...new Array<number>(11).fill(0), 1];
    expect(parsePacket(behind(segment({ from: '::1', to, port: 443 }), 43, routing(1, elsewhere)))).toMatchObject({ protocol: 'tcp', address: to, port: 443 });
    expect(parsePacket(behind(datagram({ from: '::1', to, port: 53 }), 43, routing(2, elsewhere)))).toMatchObject({ protocol: 'udp', address: '2600:beef::1', port: 53 });
    expect(parsePacket(behind(datagram({ from: '::1', to, port: 53 }), 44, [0, 0, 0, 1, 0, 0, 0, 7]))).toMatchObject({ protocol: 'udp', address: to, port: 53 });
    expect(parsePacket(behind(datagram({ from: '::1', to, port: 53 }), 44, [0, 0, 0, 9, 0, 0, 0, 7]))).toBeNull();
    expect(parsePacket(behind(datagram({ from: '::1', to, port: 53 }), 43, routing(8, elsewhere)).subarray(0, 128))).toMatchObject({ protocol: 'other', address: '2600:beef::1', port: 0, identity: null });
    const answer = behind(segment({ from: '::1', to, port: 443 }), 43, routing(1, elsewhere));
    answer[40 + 24 + 13] = 0x12;
    expect(parsePacket(answer)).toBeNull();
  });

  it('tells a segment that is sent again from another connection of the same ports', () => {
    const identity = (change: { sequence?: number; sourcePort?: number }) => parsePacket(segment({ to: '1.2.3.4', port: 99, ...change }))?.identity;
    expect(identity({ sequence: 5 })).toBe(identity({ sequence: 5 }));
    expect(identity({ sequence: 6 })).not.toBe(identity({ sequence: 5 }));
    expect(identity({ sourcePort: 1025 })).not.toBe(identity({ sourcePort: 1026 }));
  });

  it('gives null for whatever is cut short or something else', () => {
    for (const packet of [segment({ to: '1.2.3.4', port: 99 }), segment({ from: '::1', to: '::2', port: 99 })]) {
      for (let length = 0; length < packet.length - 12; length++) expect(parsePacket(packet.subarray(0, length))).toBeNull();
    }
    const lite = datagram({ to: '8.8.8.8', port: 53 });
    lite[9] = 136;
    expect(parsePacket(lite)).toMatchObject({ protocol: 'udp', address: '8.8.8.8', port: 53 });
    const icmp = segment({ to: '1.2.3.4', port: 99 });
    icmp[9] = 1;
    expect(parsePacket(icmp)).toBeNull();
    expect(parsePacket(Uint8Array.from([0x41, ...new Array<number>(60).fill(6)]))).toBeNull();
  });

  it('never throws', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 130 }), fc.constantFrom(0x45, 0x4f, 0x60, 0x6f, 0), (bytes, first) => {
      if (bytes.length > 0) bytes[0] = first;
      parsePacket(bytes);
    }));
  });
});
