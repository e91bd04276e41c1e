import { describe, expect, it } from 'vitest';

import { patience } from '../../support/lane.js';
import { useLab } from '../support/lab.js';

const lab = useLab();

/** What must never be reached: the private servers, the metadata service, the host itself. */
async function innocent(): Promise<void> {
  const { counts } = await lab.servers();
  expect(Object.keys(counts).filter((at) => /^(10\.66|169\.254)\./.test(at))).toEqual([]);
}

describe('a resolver that lies', { timeout: patience(60_000) }, () => {
  it('can rebind as often as it likes: the private server is never connected to', async () => {
    const targets = Array.from({ length: 20 }, (_, index) => `rebind.test:${index % 2 === 0 ? 80 : 8080}`);
    const { result } = await lab.sh(
      `for n in 1 2 3 4 5 6 7 8 9 10; do /usr/bin/python3 ${lab.client_py} reached rebind.test 80; echo; done`,
      { allow: ['rebind.test', 'rebind.test:8080'] },
    );
    const said = result.stdout.trim().split(/\s+/).map((word) => JSON.parse(word) as string);
    expect(targets.length).toBe(20);
    expect(said.filter((word) => word === 'reached').length).toBe(5);
    expect(said.filter((word) => word === 'ECONNRESET').length).toBe(5);
    expect(result.connections.filter(({ reason }) => reason === '10.66.0.5 may not be reached: private').length).toBe(5);
    expect((await lab.servers()).questions.filter((question) => question === 'A rebind.test').length).toBe(10);
    await innocent();
  });

  it.each([
    ['mixed.test', 'one private address among several', /^10\.66\.0\.5 may not be reached: private$/],
    ['private.test', 'a private address', /^10\.66\.0\.5 may not be reached: private$/],
    ['alias.test', 'a CNAME to a private name', /^10\.66\.0\.5 may not be reached: private$/],
    ['metadata.test', "the cloud's metadata service", /^169\.254\.169\.254 may not be reached: metadata service$/],
    ['own.test', 'a public address of the host itself', /^93\.184\.9\.9 may not be reached: address of the host itself$/],
    ['mapped.test', 'an IPv4-mapped address', /may not be reached: IPv4-mapped/],
    ['broken.test', 'SERVFAIL', /^DNS failed: ESERVFAIL$/],
    ['half.test', 'an answer for one family and a failure for the other', /^DNS failed: ESERVFAIL$/],
    ['empty.test', 'no address', /^the name has no address$/],
    ['nowhere.test', 'NXDOMAIN', /^the name has no address$/],
    ['searched.test', 'nothing, unless somebody tries the search domain', /^the name has no address$/],
  ])('%s: %s is refused', async (name, _, reason) => {
    const { said, result } = await lab.client(['reached', name], { allow: [name] });
    expect(said).toBe('ECONNRESET');
    expect(result.connections).toMatchObject([{ host: name, port: 80, verdict: 'refused', reason: expect.stringMatching(reason) as string, bytesSent: 0 }]);
    await innocent();
  });

  it('foreign.test: an address of another name is not used for this one', async () => {
    const { said } = await lab.client(['reached', 'foreign.test'], { allow: ['foreign.test'] });
    expect(said).toBe('ECONNRESET');
    await innocent();
  });

  it.each([
    ['case.test', 'another case in question and answer'],
    ['additional.test', 'a private address in the additional section'],
    ['six.test', 'an upstream with IPv6 only'],
  ])('%s: %s does no harm', async (name) => {
    const { said, result } = await lab.client(['reached', name], { allow: [name] });
    expect(said).toBe('reached');
    expect(result.connections).toMatchObject([{ host: name, verdict: 'allowed', address: name === 'six.test' ? '2600:beef::1' : '93.184.1.1' }]);
    await innocent();
  });

  it('silent.test and late.test: what does not answer in time is not connected, and what does is', async () => {
    const { said, result } = await lab.client(['many', 'silent.test:80', 'late.test:80'], { allow: ['silent.test', 'late.test'], connectTimeoutMs: 1500 });
    expect(said).toEqual({ 'silent.test:80': 'ECONNRESET', 'late.test:80': 'ECONNRESET' });
    for (const { reason } of result.connections) expect(reason).toMatch(/^(not connected within|DNS failed: ETIMEOUT)/);
    const patient = await lab.client(['reached', 'late.test'], { allow: ['late.test'], connectTimeoutMs: 20_000 });
    expect(patient.said).toBe('reached');
  });

  it("nothing of the guest's own queries leaves the machine", async () => {
    const before = (await lab.servers()).questions.length;
    await lab.client(['lookup', 'secret-1234.exfiltrate.test', 'api.test'], { allow: ['api.test'] });
    expect((await lab.servers()).questions.slice(before)).toEqual([]);
  });

  it('the host decides what a private range and a pinned name are', async () => {
    const opened = await lab.client(['reached', 'private.test'], { allow: ['private.test'], allowPrivate: ['10.66.0.0/16'] });
    expect(opened.said).toBe('reached');
    const pinned = await lab.client(['reached', 'nowhere.test'], { allow: ['nowhere.test'], hosts: { 'nowhere.test': '93.184.1.2' } });
    expect(pinned.said).toBe('reached');
    expect(pinned.result.connections).toMatchObject([{ host: 'nowhere.test', address: '93.184.1.2' }]);
  });
});

describe('TLS', { timeout: patience(60_000) }, () => {
  it('goes to the name that was dialled and to no other, unless sni is any', async () => {
    const fronting = `curl -sS --cacert ${lab.directory}/ca.pem --connect-to second.test:443:api.test:443 https://second.test/`;
    const before = (await lab.servers()).counts['93.184.1.1:443'] ?? 0;
    const refused = await lab.sh(fronting, { allow: ['api.test'] });
    expect(refused.result.exitCode).toBe(35);
    expect(refused.result.connections).toMatchObject([{ host: 'api.test', port: 443, verdict: 'refused', reason: 'TLS server name "second.test" is not "api.test"', bytesSent: 0 }]);
    const any = await lab.sh(fronting, { allow: [{ host: 'api.test', sni: 'any' }] });
    expect(any.result.exitCode).toBe(0);
    expect(JSON.parse(any.result.stdout)).toMatchObject({ tls: 'second.test' });
    expect((await lab.servers()).counts['93.184.1.1:443']).toBe(before + 2);
  });
});
