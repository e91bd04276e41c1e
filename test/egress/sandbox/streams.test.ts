import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';

import { patience } from '../../support/lane.js';
import { useLab } from '../support/lab.js';

const lab = useLab();

const MIB = 1024 * 1024;
const zeros = (size: number) => {
  const hash = createHash('sha256');
  for (let left = size; left > 0; left -= MIB) hash.update(Buffer.alloc(Math.min(MIB, left)));
  return hash.digest('hex');
};
const raw = (port: number, more: object = {}) => ({ allow: [`api.test:${port}`], ...more });

describe('streams through the relay', { timeout: patience(120_000) }, () => {
  it('servers that speak first are heard', async () => {
    expect((await lab.client(['talk', 'api.test', '7001'], raw(7001))).said).toBe('220 welcome\n');
  });

  it('large transfers arrive whole, in both directions, and the host holds little of them', async () => {
    const size = 300 * MIB;
    const before = await lab.client(['talk', 'api.test', '7001'], raw(7001));
    const up = await lab.client(['upload', 'api.test', '7004', String(size)], raw(7004));
    expect(up.said).toBe(String(size));
    expect(up.result.connections).toMatchObject([{ bytesSent: size, verdict: 'allowed' }]);
    const down = await lab.client(['download', 'api.test', String(size)], { allow: ['api.test'] });
    expect(down.said).toEqual({ bytes: size, sha256: zeros(size) });
    expect(down.result.connections[0]?.bytesReceived).toBeGreaterThan(size);
    // What it holds is buffers that are done with, until V8 sees to them.
    expect(Math.max(up.peakRss, down.peakRss) - before.peakRss).toBeLessThan(size / 2);
  });

  it('a slow reader holds the server back, and gets all in the end', async () => {
    const { said } = await lab.client(['download', 'api.test', String(6 * MIB), String(2 * MIB)], { allow: ['api.test'] });
    expect(said).toEqual({ bytes: 6 * MIB, sha256: zeros(6 * MIB) });
  });

  it('a reader that does not read at all makes the server wait, not the host swell', async () => {
    const { said, peakRss } = await lab.client(['stall', 'api.test', '7005', '3'], raw(7005));
    expect(said).toBe('stalled');
    // What the buffers of four sockets and of the relay hold.
    expect((await lab.servers()).counts['endless']).toBeLessThan(64 * MIB);
    expect(peakRss).toBeLessThan(400 * MIB);
  });

  it('a direction that is closed leaves the other one open', async () => {
    const { said, result } = await lab.client(['half_close', 'api.test', '7002'], raw(7002));
    expect(said).toBe('one two|end');
    expect(result.connections).toMatchObject([{ reason: 'closed', bytesSent: 7, bytesReceived: 11 }]);
  });

  it('a reset on one side is a reset on the other', async () => {
    const byServer = await lab.client(['reset_by_server', 'api.test', '7003'], raw(7003));
    expect(byServer.said).toBe('ECONNRESET');
    expect(byServer.result.connections).toMatchObject([{ reason: 'reset by the server' }]);
    const byGuest = await lab.client(['reset_by_guest', 'api.test', '7002'], raw(7002));
    expect(byGuest.said).toBe('reset');
    expect(byGuest.result.connections).toMatchObject([{ reason: 'reset by the guest' }]);
  });

  it('100 connections at one time keep apart', async () => {
    const { said } = await lab.client(['parallel', 'api.test', '7002', '100'], raw(7002, { maxConnections: 100 }), { limits: { pids: 150 } });
    expect(said).toEqual(Array.from({ length: 100 }, (_, index) => `${index}|end`));
  });

  it('more than maxConnections are refused, one by one', async () => {
    const { said, result } = await lab.client(['crowd', 'api.test', '7006', '12'], raw(7006, { maxConnections: 8, idleTimeoutMs: patience(1500) }));
    expect((said as string[]).length).toBe(12);
    expect(result.connections.filter(({ reason }) => reason === 'more than 8 connections at one time').length).toBe(4);
    expect(result.connections.filter(({ reason }) => reason.startsWith('idle for')).length).toBe(8);
  });

  it('maxBytes ends all there is', async () => {
    const { result } = await lab.sh('curl -sS -o /dev/null http://api.test/bytes/9000000; curl -sS http://api.test/', { allow: ['api.test'], maxBytes: MIB });
    expect(result.exitCode).not.toBe(0);
    expect(result.connections.map(({ verdict, reason }) => `${verdict}: ${reason}`)).toEqual(['allowed: byte limit of the run reached', 'refused: byte limit of the run reached']);
    expect(result.connections.reduce((sum, each) => sum + each.bytesSent + each.bytesReceived, 0)).toBeLessThanOrEqual(MIB);
  });

  it('what a guest sent before it ended is delivered, and a run that is killed ends at once', async () => {
    const ended = await lab.client(['talk', 'api.test', '7004', 'last words'], raw(7004));
    expect(ended.said).toBe('10');
    const started = Date.now();
    const killed = await lab.sh(`/usr/bin/python3 ${lab.client_py} stall api.test 7005 60`, raw(7005), { timeoutMs: patience(1500), gracePeriodMs: 0 });
    expect(killed.result.outcome).toBe('timeout');
    expect(killed.result.connections).toMatchObject([{ host: 'api.test', port: 7005, verdict: 'allowed' }]);
    expect(Date.now() - started).toBeLessThan(patience(10_000));
  });
});
