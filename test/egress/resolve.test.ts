import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';

import { dnsResolver } from '../../src/egress/resolve.js';
import { compileSources } from './support/compiled.js';
import { a, aaaa, startDns, zone } from './support/dns-fixture.js';
import type { DnsFixture } from './support/dns-fixture.js';

let fixture: DnsFixture | null = null;

afterEach(async () => {
  await fixture?.close();
  fixture = null;
});

async function resolve(script: Parameters<typeof startDns>[0], name = 'api.test', signal = new AbortController().signal): Promise<string[]> {
  fixture = await startDns(script);
  return dnsResolver([fixture.server])(name, signal);
}

describe('dnsResolver', () => {
  it('gives every A and AAAA record once', async () => {
    expect(await resolve(zone({ 'api.test': ['1.1.1.1', '8.8.8.8', '1.1.1.1', '2a00::1'] }))).toEqual(['2a00::1', '1.1.1.1', '8.8.8.8']);
  });

  it('is content with one family', async () => {
    expect(await resolve(zone({ 'api.test': ['2a00::1'] }))).toEqual(['2a00::1']);
  });

  it('follows a CNAME within the answer', async () => {
    const addresses = await resolve(({ name, type }) => ({
      answers: [{ type: 'CNAME', name, data: 'inner.test' }, ...(type === 'A' ? a('inner.test', '10.0.0.1') : [])],
    }));
    expect(addresses).toEqual(['10.0.0.1']);
  });

  it('passes over additional records', async () => {
    const addresses = await resolve(({ name, type }) => ({ answers: type === 'A' ? a(name, '1.1.1.1') : [], additionals: a(name, '6.6.6.6') }));
    expect(addresses).toEqual(['1.1.1.1']);
  });

  it('takes a reply in another case', async () => {
    expect(await resolve(({ type }) => ({ echo: 'API.tesT', answers: type === 'A' ? a('aPi.TEST', '1.1.1.1') : [] }))).toEqual(['1.1.1.1']);
  });

  it('rejects a name that does not exist and one without addresses', async () => {
    await expect(resolve(() => ({ rcode: 3 }))).rejects.toThrow('the name has no address');
    await fixture?.close();
    await expect(resolve(() => ({}))).rejects.toThrow('the name has no address');
  });

  it.each([['SERVFAIL', 2, 'ESERVFAIL'], ['REFUSED', 5, 'EREFUSED'], ['NOTIMP', 4, 'ENOTIMP']])('fails when one family is answered with %s, though the other has addresses', async (_, rcode, code) => {
    await expect(resolve(({ name, type }) => (type === 'A' ? { answers: a(name, '1.1.1.1') } : { rcode }))).rejects.toThrow(`DNS failed: ${code}`);
    await fixture?.close();
    await expect(resolve(({ name, type }) => (type === 'AAAA' ? { answers: aaaa(name, '2a00::1') } : { rcode }))).rejects.toThrow(`DNS failed: ${code}`);
  });

  it('ends with the reason of its signal when the server does not answer', async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('too late')), 50);
    await expect(resolve(({ type, name }) => (type === 'A' ? { answers: a(name, '1.1.1.1') } : null), 'api.test', controller.signal)).rejects.toThrow('too late');
    await expect(dnsResolver()('api.test', controller.signal)).rejects.toThrow('too late');
  });

  it('asks for the name as it is, again for every call', async () => {
    fixture = await startDns(zone({ 'api.test': ['1.1.1.1'] }));
    const resolver = dnsResolver([fixture.server]);
    await resolver('api.test', new AbortController().signal);
    await resolver('api.test', new AbortController().signal);
    expect(fixture.questions.map(({ name }) => name)).toEqual(Array(4).fill('api.test'));
    expect(fixture.questions.map(({ type }) => type).sort()).toEqual(['A', 'A', 'AAAA', 'AAAA']);
  });

  it('uses neither search domains nor /etc/hosts, as configured in the environment and in the namespace', async () => {
    fixture = await startDns(() => ({ rcode: 3 }));
    const compiled = compileSources();
    const program = `
      const { dnsResolver } = await import('./src/egress/resolve.js');
      const outcomes = [];
      for (const name of ['short', 'api.test', 'localhost', 'ip6-localhost', '${execFileSync('hostname', { encoding: 'utf8' }).trim()}']) {
        outcomes.push(await dnsResolver(['${fixture.server}'])(name, new AbortController().signal).catch((error) => error.message));
      }
      console.log(JSON.stringify(outcomes));`;
    const { spawn } = await import('node:child_process');
    const env = { PATH: process.env['PATH'], LOCALDOMAIN: 'corp.test other.test', RES_OPTIONS: 'ndots:15' };
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: compiled.directory, env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    for await (const chunk of child.stdout) output += chunk;
    compiled.remove();
    expect(JSON.parse(output)).toEqual(Array(5).fill('the name has no address'));
    expect(fixture.questions.map(({ name }) => name).filter((name) => /corp|other/.test(name))).toEqual([]);
    expect(fixture.questions.length).toBe(10);
  });
});
