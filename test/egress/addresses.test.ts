import { describe, expect, it } from 'vitest';

import { contains, looksLikeAddress, parseLiteral, parseRange, refusal } from '../../src/egress/addresses.js';
import { METADATA_ADDRESSES } from '../../src/egress/ranges.js';

const rules = (open: string[], own: string[] = []) => ({ open: open.map(parseRange), own: new Set(own) });

describe('refusal', () => {
  it('says in a few words what an address is', () => {
    expect(refusal('10.1.2.3', rules([]))).toBe('private');
    expect(refusal('::ffff:10.1.2.3', rules([]))).toBe('IPv4-mapped');
    expect(refusal('4000::1', rules([]))).toBe('outside 2000::/3');
    expect(refusal('168.63.129.16', rules([]))).toBe('metadata service');
    expect(refusal('127.1', rules([]))).toBe('malformed address');
    expect(refusal('8.8.8.8', rules([]))).toBeNull();
  });

  it('opens what allowPrivate names and nothing beside it', () => {
    const open = rules(['10.20.0.0/16', 'fd12:3456::/48']);
    expect(refusal('10.20.255.255', open)).toBeNull();
    expect(refusal('10.21.0.0', open)).toBe('private');
    expect(refusal('10.19.255.255', open)).toBe('private');
    expect(refusal('fd12:3456:0:ffff::1', open)).toBeNull();
    expect(refusal('fd12:3456:1::1', open)).toBe('unique local');
  });

  it.each(METADATA_ADDRESSES)('keeps %s shut in an open range around it, and opens it by its own name', (address) => {
    const [around, alone] = address.includes(':') ? [`${address.split(':')[0]}::/16`, `${address}/128`] : [`${address.split('.')[0]}.0.0.0/8`, `${address}/32`];
    expect(refusal(address, rules([around]))).toBe('metadata service');
    expect(refusal(address, rules([alone]))).toBeNull();
  });

  it('keeps addresses of the host shut in an open range around them, and opens them by their own name', () => {
    expect(refusal('10.20.0.7', rules(['10.20.0.0/16'], ['10.20.0.7']))).toBe('address of the host itself');
    expect(refusal('10.20.0.8', rules(['10.20.0.0/16'], ['10.20.0.7']))).toBeNull();
    expect(refusal('10.20.0.7', rules(['10.20.0.7/32'], ['10.20.0.7']))).toBeNull();
    expect(refusal('9.9.9.9', rules([], ['9.9.9.9']))).toBe('address of the host itself');
    expect(refusal('2a00::9', rules([], ['2a00::9']))).toBe('address of the host itself');
    expect(refusal('2A00:0::9', rules([], ['2a00::9']))).toBe('address of the host itself');
  });

  it('judges what a carrier range carries even when the range is open', () => {
    const nat64 = rules(['64:ff9b::/96']);
    expect(refusal('64:ff9b::808:808', nat64)).toBeNull();
    expect(refusal('64:ff9b::a9fe:a9fe', nat64)).toBe('NAT64 of 169.254.169.254: metadata service');
    expect(refusal('64:ff9b::a00:1', nat64)).toBe('NAT64 of 10.0.0.1: private');
    expect(refusal('64:ff9b::a00:1', rules(['64:ff9b::/96', '10.0.0.0/8']))).toBeNull();
    expect(refusal('2002:7f00:1::1', rules(['2002::/16']))).toBe('6to4 of 127.0.0.1: loopback');
    expect(refusal('::ffff:127.0.0.1', rules(['::ffff:0:0/96']))).toBe('IPv4-mapped of 127.0.0.1: loopback');
    expect(refusal('::1', rules(['::1/128']))).toBeNull();
    expect(refusal('::ffff:9.9.9.9', rules(['::ffff:0:0/96'], ['9.9.9.9']))).toBe('IPv4-mapped of 9.9.9.9: address of the host itself');
  });
});

describe('parseLiteral', () => {
  it('takes canonical text only', () => {
    expect(parseLiteral('8.8.4.4')).toEqual({ address: '8.8.4.4', family: 4 });
    expect(parseLiteral('2606:4700::1')).toEqual({ address: '2606:4700::1', family: 6 });
    for (const text of ['8.8.4.04', '8.8.4', '2606:4700:0::1', '2606:4700::0001', '2606:4700::A', '::ffff:8.8.8.8', 'fe80::1%1', '', ' 8.8.4.4', '8.8.4.4\n']) {
      expect(parseLiteral(text), text).toBeNull();
    }
  });
});

describe('looksLikeAddress', () => {
  it('knows everything that a URL parser makes an address of', () => {
    for (const host of ['127.1', '0x7f.1', '2130706433', '017700000001', '1.2.3', '0x', '1.2.3.4.', 'foo.0x1', '0X7F000001']) {
      expect(looksLikeAddress(host), host).toBe(true);
      let parsed: string | null = null;
      try {
        parsed = new URL(`http://${host}/`).hostname;
      } catch {
        // not a URL at all: no parser dials it
      }
      if (parsed !== null) expect(parsed).toMatch(/^[\d.]+$/);
    }
    for (const host of ['example.com', 'a1.b2', '1.2.3.4.nip.io', '0xg', '1password.com']) expect(looksLikeAddress(host), host).toBe(false);
  });
});

describe('parseRange and contains', () => {
  it('say what is wrong', () => {
    expect(() => parseRange('10.20.0.5')).toThrow(/range like/);
    expect(() => parseRange('10.20.0.5/16')).toThrow('write "10.20.0.0/16"');
    expect(() => parseRange('0.0.0.0/0')).toThrow(RangeError);
  });

  it('keep the families apart', () => {
    expect(contains(parseRange('10.0.0.0/8'), '10.0.0.1')).toBe(true);
    expect(contains(parseRange('10.0.0.0/8'), '::ffff:10.0.0.1')).toBe(false);
    expect(contains(parseRange('fc00::/7'), '252.0.0.1')).toBe(false);
  });
});
