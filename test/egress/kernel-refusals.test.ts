import { beforeEach, describe, expect, it } from 'vitest';

import { KernelRefusals } from '../../src/egress/kernel-refusals.js';
import { datagram, segment } from './support/packets.js';

let told: string[];
let repeated: number;
let refusals: KernelRefusals;
beforeEach(() => {
  told = [];
  repeated = 0;
  refusals = new KernelRefusals(({ protocol, address, port }) => told.push(`${protocol} ${address} ${port}`), () => repeated++);
});

describe('KernelRefusals', () => {
  it('tells what is sent again once, counts the datagrams of that, and tells a new connection from the same port anew', () => {
    for (const sequence of [1, 1, 1, 2]) refusals.see(segment({ to: '9.9.9.9', port: 22, sequence }));
    for (const sourcePort of [5, 5, 6]) refusals.see(datagram({ to: '9.9.9.9', port: 53, sourcePort }));
    expect(told).toEqual(['tcp 9.9.9.9 22', 'tcp 9.9.9.9 22', 'udp 9.9.9.9 53', 'udp 9.9.9.9 53']);
    expect(repeated).toBe(1);
  });

  it('leaves out what is no packet that opens something', () => {
    refusals.see(new Uint8Array(60));
    expect(told).toEqual([]);
  });

  it('remembers a bounded number', () => {
    for (let sequence = 0; sequence < 3000; sequence++) refusals.see(segment({ to: '9.9.9.9', port: 22, sequence }));
    refusals.see(segment({ to: '9.9.9.9', port: 22, sequence: 2999 }));
    expect(told.length).toBe(3000);
    refusals.see(segment({ to: '9.9.9.9', port: 22, sequence: 0 }));
    expect(told.length).toBe(3001);
  });
});
