import { describe, expect, it } from 'vitest';

import { patience } from '../../support/lane.js';
import { useLab } from '../support/lab.js';
import type { LabRun } from '../support/lab.js';

const lab = useLab();

const told = ({ result }: LabRun) => result.connections.length + result.connectionsOmitted;
const lines = ({ result }: LabRun) => result.connections.map(({ host, port, verdict, reason }) => `${host}:${port} ${verdict}: ${reason}`);
const query = (name: Buffer, questions = 1) => Buffer.concat([Buffer.from([0, 1, 1, 0, 0, questions, 0, 0, 0, 0, 0, 0]), name, Buffer.from([0, 1, 0, 1])]).toString('hex');
const label = (text: string) => Buffer.concat([Buffer.from([Buffer.byteLength(text, 'latin1')]), Buffer.from(text, 'latin1')]);
const end = Buffer.from([0]);

describe('no attempt is missing from the log', { timeout: patience(90_000) }, () => {
  it('be it a query that is none: its name is shown as text that does no harm', async () => {
    const long = label('x'.repeat(63));
    const sent: [string, string][] = [
      [query(Buffer.concat([label('\u001b[2Ja\n'), label('te.st'), end])), '\\u{1b}[2Ja\\u{a}.te\\.st:0 refused: malformed DNS query'],
      [query(Buffer.concat([label('\u00ff\u00fe'), end])), '\\u{ff}\\u{fe}:0 refused: malformed DNS query'],
      [query(Buffer.concat([label('api'), label('test'), end]), 2), 'api.test:0 refused: malformed DNS query'],
      [query(Buffer.concat([...Array.from({ length: 8 }, () => long), end])), `${Array.from({ length: 8 }, () => 'x'.repeat(63)).join('.').slice(0, 300)}:0 refused: malformed DNS query`],
      [Buffer.from([0, 1, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]).toString('hex'), 'unknown:0 refused: DNS opcode 5'],
      ['0001', 'unknown:0 refused: no DNS query'],
      ['00'.repeat(5000), 'unknown:0 refused: DNS query of 5000 bytes'],
    ];
    const run = await lab.client(['messages', ...sent.map(([bytes]) => bytes)], { allow: ['api.test'] });
    expect((run.said as unknown[]).slice(0, 5)).toEqual([1, 1, 1, 1, 4]);
    expect(lines(run)).toEqual(sent.map(([, line]) => line));
    expect(run.live).toEqual(run.result.connections);
    expect(run.result.connectionsOmitted).toBe(0);
  });

  it('be it asked by one who is gone before anybody looked', async () => {
    const run = await lab.client(['ask_and_go', 'evil.test', '150'], { allow: ['api.test'] });
    expect(run.said).toBe(150);
    expect(run.result.connections.map(({ host }) => host)).toEqual(Array.from({ length: 150 }, (_, index) => `n${index}.evil.test`));
    expect(run.result.connectionsOmitted).toBe(0);
  });

  it('be it faster than anybody looks: dropped by the host or by the kernel, each is counted', async () => {
    const run = await lab.client(['ask_and_go', 'evil.test', '20000'], { allow: ['api.test'] });
    expect(run.said).toBe(20_000);
    expect(run.result.connections.length).toBeLessThanOrEqual(1000);
    expect(told(run)).toBe(20_000);
  });

  it('be it over a stream, faster than anybody looks', async () => {
    const run = await lab.client(['stream', 'evil.test', '5000'], { allow: ['api.test'] });
    expect(run.said).toBeGreaterThan(5000 * 25);
    expect(told(run)).toBe(5000);
  });

  it('be it over a stream that the guest resets: that is told, as what it held is gone with it', async () => {
    const run = await lab.client(['stream', 'evil.test', '5000', 'no'], { allow: ['api.test'] });
    if (told(run) < 5000) expect(run.live.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(/^a DNS connection ended by (ECONNRESET|EPIPE)$/));
    expect(told(run)).toBeGreaterThan(1);
  });

  it('be it one connection too many to the resolver', async () => {
    const run = await lab.client(['resolver_crowd', '70'], { allow: ['api.test'] });
    expect(run.said).toBe(6);
    expect(lines(run)).toEqual(new Array(6).fill('unknown:0 refused: more than 64 DNS connections at one time'));
  });

  it('be it a name for which there is no address left', async () => {
    const run = await lab.client(['stream', 'a.wild.test', '4200'], { allow: ['*.wild.test'] });
    expect(told(run)).toBe(4200 - 4096);
    expect(new Set(run.result.connections.map(({ reason }) => reason))).toEqual(new Set(['too many names in one run']));
  });

  it('be it more connections than anybody takes', async () => {
    const run = await lab.client(['burst', 'api.test', '80', '6000'], { allow: ['api.test'] }, { limits: { openFiles: 8000 } });
    expect(run.said).toBe(6000);
    // One that was not let into the queue may have been tried again.
    expect(told(run)).toBeGreaterThanOrEqual(6000);
    expect(told(run)).toBeLessThan(12_000);
  });

  it('be it by a kind of socket that only a filter of the caller\'s own lets be made', async () => {
    const profile = lab.file('open.json', JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW' }));
    const script = `
import socket
for host, family in (("8.8.8.8", socket.AF_INET), ("2600:beef::1", socket.AF_INET6)):
    try: print(socket.socket(family, socket.SOCK_DGRAM, 136).sendto(b"x", (host, 53)))
    except OSError as error: print(error)
    try: print(socket.socket(family, socket.SOCK_STREAM, 262).connect((host, 22)))
    except OSError as error: print(error)
`;
    const run = await lab.sh(`/usr/bin/python3 ${lab.file('kinds.py', script)}`, { allow: ['api.test'] }, { seccomp: { profile } });
    const said = run.result.stdout.trim().split('\n');
    // A kernel may be without either kind.
    const made = said.filter((word) => word === '1' || word.includes('refused'));
    expect(lines(run).length, run.result.stdout).toBe(made.length);
    for (const line of lines(run)) expect(line).toMatch(/:53 refused: UDP is not relayed$|:22 refused: not in the allowlist$/);
  });

  it('be it in a packet whose payload stands behind another header', async () => {
    const run = await lab.client(['odd_packets', '2600:beef::1', '5000'], { allow: ['api.test'] });
    // The connection is tried again by its own kernel, which cannot be told where its header cannot be read.
    expect([...new Set(lines(run))]).toEqual([
      '2600:beef::1:5000 refused: UDP is not relayed',
      '2600:beef::1:5001 refused: UDP is not relayed',
      '2600:beef::1:5002 refused: not in the allowlist',
      '2600:beef::1:0 refused: packets of this kind are not relayed',
    ]);
    expect(lines(run).filter((line) => line.endsWith('of this kind are not relayed')).length).toBeGreaterThanOrEqual(2);
    expect(Object.keys((await lab.servers()).counts).filter((at) => at.startsWith('2600:beef::1:5'))).toEqual([]);
  });
});

describe('a guest that connects over and over', { timeout: patience(60_000) }, () => {
  it("takes no more of the host's ports and of its resolver than the pace allows, and all of it is told", async () => {
    const before = await lab.servers();
    const run = await lab.client(['hammer', 'second.test', '80', '4'], { allow: ['second.test'] });
    const after = await lab.servers();
    const connected = (after.counts['93.184.1.2:80'] ?? 0) - (before.counts['93.184.1.2:80'] ?? 0);
    const most = 1000 + 200 * (run.result.durationMs / 1000 + 1);
    expect(run.said).toBeGreaterThan(most);
    expect(connected).toBeGreaterThan(0);
    expect(connected).toBeLessThan(most);
    expect(after.questions.length - before.questions.length).toBeLessThan(2 * most);
    expect(told(run)).toBeGreaterThanOrEqual(run.said as number);
  });
});
