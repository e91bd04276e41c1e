import { describe, expect, it } from 'vitest';

import { allowedName, allowsLiteral, compilePolicy, listenPorts, ruleForName } from '../../src/egress/policy.js';
import type { EgressOptions } from '../../src/egress/policy.js';

const compile = (...allow: EgressOptions['allow']) => compilePolicy({ allow });

describe('compilePolicy', () => {
  it('gives a host without a port 443 and 80', () => {
    const policy = compile('example.com');
    expect([443, 80, 8443, 0].map((port) => ruleForName(policy, 'example.com', port))).toEqual(['match', 'match', null, null]);
  });

  it('unites the ports of entries with the same host', () => {
    const policy = compile('Example.com.', 'example.com:8443');
    expect([443, 80, 8443].map((port) => ruleForName(policy, 'example.com', port))).toEqual(['match', 'match', 'match']);
  });

  it('matches a wildcard at label boundaries, at any depth, never its apex', () => {
    const policy = compile('*.example.com');
    for (const name of ['a.example.com', 'A.B.c.EXAMPLE.com.']) expect(allowedName(policy, name), name).not.toBeNull();
    for (const name of ['example.com', 'evilexample.com', 'a.example.com.evil.com', 'example.com.evil.com', '.example.com']) expect(allowedName(policy, name), name).toBeNull();
  });

  it('takes the exact name before a wildcard, and the longer wildcard before the shorter', () => {
    const policy = compile('*.example.com', { host: '*.b.example.com', sni: 'any' }, 'a.b.example.com', { host: 'c.example.com:443', sni: 'any' });
    expect(ruleForName(policy, 'a.b.example.com', 443)).toBe('match');
    expect(ruleForName(policy, 'x.b.example.com', 443)).toBe('any');
    expect(ruleForName(policy, 'x.example.com', 443)).toBe('match');
    expect(ruleForName(policy, 'c.example.com', 443)).toBe('any');
    expect(ruleForName(policy, 'c.example.com', 80)).toBe('match');
  });

  it('allows a literal with its ports only', () => {
    const policy = compile('8.8.4.4:853', '[2606:4700:4700::1111]:443');
    expect(allowsLiteral(policy, '8.8.4.4', 853)).toBe(true);
    expect(allowsLiteral(policy, '8.8.4.4', 443)).toBe(false);
    expect(allowsLiteral(policy, '8.8.8.8', 853)).toBe(false);
    expect(allowsLiteral(policy, '2606:4700:4700::1111', 443)).toBe(true);
  });

  it('keeps metadata names shut below a wildcard', () => {
    const policy = compile('*.google.internal');
    expect(allowedName(policy, 'metadata.google.internal')).toBeNull();
    expect(allowedName(policy, 'other.google.internal')).toBe('other.google.internal');
    expect(ruleForName(policy, 'metadata.google.internal', 80)).toBeNull();
  });

  it('allows nothing with an empty list', () => {
    const policy = compile();
    expect(allowedName(policy, 'example.com')).toBeNull();
    expect(listenPorts(policy)).toEqual({ ipv4: [], ipv6: [] });
  });

  it('lists the ports that need a listener, by family', () => {
    expect(listenPorts(compile('b.test:9', '*.a.test', '1.1.1.1:53', '[2606:4700:4700::1111]:853'))).toEqual({ ipv4: [9, 53, 80, 443], ipv6: [853] });
  });

  it('compares international names after IDNA', () => {
    const policy = compile('BÜCHER.example');
    expect(allowedName(policy, 'xn--bcher-kva.example')).toBe('xn--bcher-kva.example');
    const homograph = compile('аpple.com');
    expect(allowedName(homograph, 'apple.com')).toBeNull();
    expect(allowedName(homograph, 'xn--pple-43d.com')).not.toBeNull();
  });

  it('has defaults for every limit', () => {
    expect(compile().limits).toEqual({ maxConnections: 64, idleTimeoutMs: 120_000, connectTimeoutMs: 10_000, maxBytes: Number.POSITIVE_INFINITY });
  });

  it('pins names to addresses that the ranges allow', () => {
    const policy = compilePolicy({ allow: ['*.wild.test', 'api.test'], allowPrivate: ['10.20.0.0/16'], hosts: { 'API.test.': '10.20.0.5', 'a.wild.test': '8.8.8.8' } });
    expect([...policy.pins]).toEqual([['api.test', '10.20.0.5'], ['a.wild.test', '8.8.8.8']]);
  });

  it('refuses literals and pins among the addresses of the host, where they are told', () => {
    const own = new Set(['9.9.9.9']);
    expect(() => compilePolicy({ allow: ['9.9.9.9'] }, own)).toThrow('network.allow[0] ("9.9.9.9") may not be reached: address of the host itself');
    expect(() => compilePolicy({ allow: ['a.test'], hosts: { 'a.test': '9.9.9.9' } }, own)).toThrow('address of the host itself');
    expect(() => compilePolicy({ allow: ['9.9.9.9'], allowPrivate: ['9.9.9.9/32'] }, own)).not.toThrow();
  });

  it('opens a private literal with allowPrivate, and metadata only by its own name', () => {
    expect(() => compilePolicy({ allow: ['10.0.0.1'] })).toThrow('may not be reached: private');
    expect(allowsLiteral(compilePolicy({ allow: ['10.0.0.1'], allowPrivate: ['10.0.0.0/8'] }), '10.0.0.1', 443)).toBe(true);
    expect(() => compilePolicy({ allow: ['169.254.169.254'], allowPrivate: ['169.254.0.0/16'] })).toThrow('metadata service');
    expect(allowsLiteral(compilePolicy({ allow: ['169.254.169.254:80'], allowPrivate: ['169.254.169.254/32'] }), '169.254.169.254', 80)).toBe(true);
  });
});

describe('compilePolicy refuses', () => {
  const bad: [string, unknown, typeof TypeError | typeof RangeError, string][] = [
    ['no object', null, TypeError, 'network must be { allow: [...] }, got null'],
    ['no list', {}, TypeError, 'network.allow must be an array of strings, got undefined'],
    ['a string for a list', { allow: 'example.com' }, TypeError, 'network.allow must be an array of strings, got "example.com"'],
    ['an object for a list', { allow: { 'example.com': true } }, TypeError, 'network.allow must be an array of strings, got an object'],
    ['a misspelt option', { allow: [], allowHosts: [] }, TypeError, 'network.allowHosts is not a known option; known are network.allow, network.allowPrivate, '],
    ['an option that is nearly one', { allow: [], maxConnection: 5 }, TypeError, 'network.maxConnection is not a known option; did you mean network.maxConnections?'],
    ['a number as an entry', { allow: [5] }, TypeError, 'network.allow[0] must be a string or { host, sni }, got 5'],
    ['null as an entry', { allow: ['a.test', null] }, TypeError, 'network.allow[1] must be a string or { host, sni }, got null'],
    ['a list as an entry', { allow: [['a.test']] }, TypeError, 'network.allow[0] must be a string or { host, sni }, got an array'],
    ['a hole', { allow: ['a.test', , 'b.test'] }, TypeError, 'network.allow[1] must be a string or { host, sni }, got undefined'],
    ['an entry without a host', { allow: [{ sni: 'any' }] }, TypeError, 'network.allow[0].host must be a string, got undefined'],
    ['an entry with another sni', { allow: [{ host: 'a.test', sni: 'b.test' }] }, TypeError, 'network.allow[0].sni must be "any" or absent, got "b.test"'],
    ['an entry with a stray field', { allow: [{ host: 'a.test', port: 5 }] }, TypeError, 'network.allow[0].port is not a known option; known are network.allow[0].host, network.allow[0].sni'],
    ['a public suffix', { allow: ['a.test', 'b.test', '*.com'] }, RangeError, 'network.allow[2] ("*.com") would allow everything under the top-level name "com"'],
    ['everything', { allow: ['*'] }, RangeError, 'network.allow[0] ("*") would allow every host; name them, or use network: "host"'],
    ['a malformed address', { allow: ['127.1'] }, TypeError, 'network.allow[0] ("127.1") is not a canonical IP address (dotted decimal, or RFC 5952: lower case, shortest form, no zone id)'],
    ['a password', { allow: ['https://me:secret@api.test/path?key=secret'] }, TypeError, 'network.allow[0] ("https://…@api.test/path?…") is a URL; give the host alone'],
    ['userinfo', { allow: ['me:secret@api.test'] }, TypeError, 'network.allow[0] ("…@api.test") contains userinfo; give the host alone'],
    ['a name that never ends', { allow: ['a.'.repeat(5000)] }, TypeError, `network.allow[0] ("${'a.'.repeat(40)}"…) is longer than 253 characters`],
    ['a port that never ends', { allow: [`a.test:${'9'.repeat(5000)}x`] }, TypeError, `network.allow[0] ("a.test:${'9'.repeat(73)}"…) has a malformed port "${'9'.repeat(80)}"…`],
    ['two rules for one port', { allow: ['a.test', { host: 'a.test:443', sni: 'any' }] }, RangeError, 'network.allow[1] ("a.test:443") gives port 443 another "sni" than an earlier entry'],
    ['too many ports of both families', { allow: Array.from({ length: 101 }, (_, index) => (index % 2 === 0 ? `8.8.4.4:${index + 1}` : `[2606:4700:4700::1111]:${index + 1}`)) }, RangeError, 'network.allow must name at most 100 different ports, got 101'],
    ['too many ports', { allow: Array.from({ length: 121 }, (_, index) => `a.test:${index + 1}`) }, RangeError, 'network.allow must name at most 100 different ports, got 121'],
    ['a range that is none', { allow: [], allowPrivate: ['10.0.0.0/8', '10.1'] }, TypeError, 'network.allowPrivate[1] ("10.1") must be a range like "10.20.0.0/16" or "fd12:3456::/48"; a single address ends in /32 or /128'],
    ['a range that is no text', { allow: [], allowPrivate: [10] }, TypeError, 'network.allowPrivate[0] must be a string, got 10'],
    ['too wide a range', { allow: [], allowPrivate: ['::/0'] }, RangeError, 'network.allowPrivate[0] ("::/0") is wider than /7'],
    ['null for the ranges', { allow: [], allowPrivate: null }, TypeError, 'network.allowPrivate must be an array of ranges, got null'],
    ['ranges that are no list', { allow: [], allowPrivate: '10.0.0.0/8' }, TypeError, 'network.allowPrivate must be an array of ranges, got "10.0.0.0/8"'],
    ['pins that are a list', { allow: [], hosts: [] }, TypeError, 'network.hosts must be an object of addresses by name, got an array'],
    ['pins that are a Map', { allow: ['a.test'], hosts: new Map([['a.test', '8.8.8.8']]) }, TypeError, 'network.hosts must be an object of addresses by name, got a Map'],
    ['a pin to a private address', { allow: ['a.test'], hosts: { 'a.test': '10.0.0.1' } }, RangeError, 'network.hosts["a.test"] may not be pinned to 10.0.0.1: private'],
    ['a pin to a name', { allow: ['a.test'], hosts: { 'a.test': 'b.test' } }, TypeError, 'network.hosts["a.test"] must be a canonical IP address, got "b.test"'],
    ['a pin to a short address', { allow: ['a.test'], hosts: { 'a.test': '127.1' } }, TypeError, 'network.hosts["a.test"] must be a canonical IP address, got "127.1"'],
    ['a pin to no text', { allow: ['a.test'], hosts: { 'a.test': 1 } }, TypeError, 'network.hosts["a.test"] must be a string, got 1'],
    ['a pin of a name that is not allowed', { allow: ['a.test'], hosts: { 'b.test': '8.8.8.8' } }, RangeError, 'network.hosts["b.test"] is not in network.allow'],
    ['a pin with a port', { allow: ['a.test'], hosts: { 'a.test:80': '8.8.8.8' } }, TypeError, 'network.hosts["a.test:80"] contains ":", which is no part of a host name'],
    ['a pin twice', { allow: ['a.test'], hosts: { 'a.test': '8.8.8.8', 'A.test': '8.8.8.8' } }, RangeError, 'network.hosts["A.test"] is pinned twice'],
    ['a negative limit', { allow: [], maxConnections: -1 }, RangeError, 'network.maxConnections must be a positive integer, got -1'],
    ['a limit that is too high', { allow: [], maxConnections: 65537 }, RangeError, 'network.maxConnections must be at most 65536, got 65537'],
    ['a limit of zero', { allow: [], idleTimeoutMs: 0 }, RangeError, 'network.idleTimeoutMs must be a positive integer, got 0'],
    ['a fraction', { allow: [], connectTimeoutMs: 1.5 }, RangeError, 'network.connectTimeoutMs must be a positive integer, got 1.5'],
    ['a timer that would fire at once', { allow: [], idleTimeoutMs: 2 ** 31 }, RangeError, 'network.idleTimeoutMs must be at most 2147483647, got 2147483648'],
    ['a limit as text', { allow: [], maxBytes: '5' }, TypeError, 'network.maxBytes must be a positive integer, got "5"'],
    ['a limit that is null', { allow: [], maxBytes: null }, TypeError, 'network.maxBytes must be a positive integer, got null'],
    ['no number', { allow: [], maxBytes: Number.NaN }, RangeError, 'network.maxBytes must be a positive integer, got NaN'],
    ['a callback that is none', { allow: [], onConnection: {} }, TypeError, 'network.onConnection must be a function, got an object'],
  ];

  it.each(bad)('%s', (_, options, type, message) => {
    const act = () => compilePolicy(options as EgressOptions);
    expect(act).toThrow(type);
    expect(act).toThrow(message);
    expect(act).not.toThrow(/secret/);
  });
});
