import { beforeEach, describe, expect, it } from 'vitest';

import { KernelRefusals } from '../../src/egress/kernel-refusals.js';
import { datagram, segment } from './support/packets.js';

let told: string[];
let refusals: KernelRefusals;
beforeEach(() => {
  told = [];
  refusals = new KernelRefusals({ ipv4: [443], ipv6: [853] }, ({ protocol, address, port }) => told.push(`${protocol} ${address} ${port}`));
});

describe('KernelRefusals', () => {
  it('tells of ports that nothing listens on, family by family', () => {
    for (const port of [443, 853, 22]) {
      refusals.see(segment({ to: '93.184.1.1', port }));
      refusals.see(segment({ from: '::1', to: '2606:4700::1', port }));
    }
    expect(told).toEqual(['tcp 2606:4700::1 443', 'tcp 93.184.1.1 853', 'tcp 93.184.1.1 22', 'tcp 2606:4700::1 22']);
  });

  it('tells of datagrams to anywhere but the sandbox itself', () => {
    for (const to of ['127.0.0.1', '127.0.0.53', '8.8.8.8']) refusals.see(datagram({ to, port: 53 }));
    refusals.see(datagram({ from: '::1', to: '::1', port: 53 }));
    refusals.see(datagram({ to: '198.18.1.0', port: 443 }));
    expect(told).toEqual(['udp 8.8.8.8 53', 'udp 198.18.1.0 443']);
  });

  it("leaves the guest's own loopback alone", () => {
    refusals.see(segment({ to: '127.0.0.1', port: 22 }));
    refusals.see(segment({ from: '::1', to: '::1', port: 22 }));
    expect(told).toEqual([]);
  });

  it('counts what is sent again once, and a new connection from the same port anew', () => {
    for (const sequence of [1, 1, 1, 2]) refusals.see(segment({ to: '9.9.9.9', port: 22, sequence }));
    for (const sourcePort of [5, 5, 6]) refusals.see(datagram({ to: '9.9.9.9', port: 53, sourcePort }));
    expect(told.length).toBe(4);
  });

  it('remembers a bounded number', () => {
    for (let sequence = 0; sequence < 3000; sequence++) refusals.see(segment({ to: '9.9.9.9', port: 22, sequence }));
    refusals.see(segment({ to: '9.9.9.9', port: 22, sequence: 2999 }));
    expect(told.length).toBe(3000);
    refusals.see(segment({ to: '9.9.9.9', port: 22, sequence: 0 }));
    expect(told.length).toBe(3001);
  });
});
