import { describe, expect, it } from 'vitest';

import { patience } from '../../support/lane.js';
import { useLab } from '../support/lab.js';

const lab = useLab({ everywhere: true });

describe('the log', { timeout: patience(60_000) }, () => {
  it('has every attempt that was refused, whoever refused it', async () => {
    const targets = ['93.184.1.2:80', '93.184.1.2:81', '10.66.0.5:80', '10.66.0.5:22', '169.254.169.254:80', '127.0.0.1:80', '198.18.77.77:443', '198.18.77.77:22', '2600:beef::1:80', '2600:beef::1:22', 'api.test:22', 'second.test:80'];
    const { said, result, live } = await lab.client(['many', ...targets], { allow: ['api.test', '8.8.4.4:53'] });
    expect(Object.values(said as object).filter((word) => word === 'reached')).toEqual([]);
    const told = result.connections.map(({ host, port, verdict }) => `${host}:${port} ${verdict}`).sort();
    expect(told).toEqual([...targets.filter((target) => target !== 'second.test:80'), 'second.test:0'].map((target) => `${target} refused`).sort());
    expect(live).toEqual(result.connections);
    expect(result.connectionsOmitted).toBe(0);
  });

  it('has datagrams to anywhere, once for each socket and target', async () => {
    const { result } = await lab.client(['datagrams', '8.8.8.8:53', '93.184.0.53:53', '198.18.0.1:443', '2600:beef::1:443', '127.0.0.1:9', '127.0.0.53:53'], { allow: ['api.test'] });
    expect(result.connections.map(({ host, port, verdict, reason }) => `${host}:${port} ${verdict}: ${reason}`).sort()).toEqual(
      ['198.18.0.1:443', '2600:beef::1:443', '8.8.8.8:53', '93.184.0.53:53'].map((target) => `${target} refused: UDP is not relayed`),
    );
    // Three from each socket.
    expect(result.connectionsOmitted).toBe(4 * 2);
    expect((await lab.servers()).questions.filter((question) => question.includes('x'))).toEqual([]);
  });

  it('the kinds of socket that could leave unseen cannot be made', async () => {
    const { said } = await lab.client(['sockets'], { allow: ['api.test'] });
    expect(said).toMatchObject({ tcp: 'made' });
    const { tcp, ...others } = said as Record<string, string>;
    expect(tcp).toBe('made');
    for (const [kind, word] of Object.entries(others)) expect(word, kind).toMatch(/^E/);
  });

  it('counts what it has no room for', async () => {
    const { result } = await lab.sh(`/usr/bin/python3 -c "
import socket
for port in range(20000, 22500):
    sock = socket.socket()
    sock.setblocking(False)
    try: sock.connect(('93.184.1.2', port))
    except OSError: pass
    sock.close()
"`, { allow: ['api.test'] });
    // How many the kernel's buffer holds is the machine's choice; none goes uncounted.
    expect(result.connections.length).toBeLessThanOrEqual(1000);
    expect(result.connections.length + result.connectionsOmitted).toBe(2500);
  });

  it('a wrong allowlist is an error before anything starts', async () => {
    const { run } = lab;
    await expect(run({ command: 'true', args: [], timeoutMs: 5000, network: { allow: ['*.com'] } })).rejects.toThrow('RangeError: network.allow[0] ("*.com") would allow everything under the top-level name "com"');
    await expect(run({ command: 'true', args: [], timeoutMs: 5000, network: { allow: ['93.184.9.9'] } })).rejects.toThrow(/^RangeError: network\.allow\[0\] \("93\.184\.9\.9"\) may not be reached: address of the host itself$/);
  });

  it('an empty allowlist is no network, and loads and logs nothing', async () => {
    const { result } = await lab.sh('cat /etc/resolv.conf; ls /proc/net/ >/dev/null; true', { allow: [] });
    expect(result.enforcement.network).toEqual({ status: 'enforced', by: 'netns' });
    expect(result.connections).toEqual([]);
    expect(result.stdout).toBe('');
  });
});
