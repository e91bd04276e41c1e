import { describe, expect, it } from 'vitest';

import { patience, whereAmI } from '../../support/lane.js';
import { belongsHere } from '../../support/skip.js';
import { denoPath, useLab } from '../support/lab.js';

const lab = useLab({ tools: ['redis-cli'], everywhere: true });

const verdicts = (connections: readonly { host: string; port: number; verdict: string; reason: string }[]) =>
  connections.map(({ host, port, verdict, reason }) => `${host}:${port} ${verdict}: ${reason}`);

describe('an unmodified client reaches the allowed host and nothing else, without a proxy variable', { timeout: patience(60_000) }, () => {
  it('curl, over HTTP and HTTPS', async () => {
    const { result } = await lab.sh(
      `env | grep -i proxy
       curl -sS http://api.test/a; echo
       curl -sS --cacert ${lab.directory}/ca.pem https://api.test/b; echo
       curl -sS http://second.test/ 2>&1; curl -sS http://93.184.1.2/ 2>&1; curl -sS http://api.test:8080/ 2>&1; true`,
      { allow: ['api.test'] },
    );
    const [plain, secure, ...refused] = result.stdout.trim().split('\n');
    expect(JSON.parse(plain ?? '')).toMatchObject({ host: 'api.test', path: '/a' });
    expect(JSON.parse(secure ?? '')).toMatchObject({ host: 'api.test', path: '/b', tls: 'api.test' });
    expect(refused.map((line) => /^curl: \((\d+)\)/.exec(line)?.[1])).toEqual(['6', expect.stringMatching(/^(7|56)$/), '7']);
    // A client that leaves session tickets unread resets.
    const told = verdicts(result.connections).map((line) => line.replace('reset by the guest', 'closed'));
    expect(told.sort()).toEqual([
      'api.test:80 allowed: closed',
      'api.test:443 allowed: closed',
      'second.test:0 refused: not in the allowlist',
      '93.184.1.2:80 refused: not in the allowlist',
      'api.test:8080 refused: port 8080 of this host is not in the allowlist',
    ].sort());
    expect(result.enforcement.network).toEqual({ status: 'enforced', by: 'netns, allowlist' });
  });

  it('Python urllib', async () => {
    const script = lab.file('get.py', [
      'import ssl, urllib.request',
      'def get(url):',
      `    try: return urllib.request.urlopen(url, timeout=20, context=ssl.create_default_context(cafile="${lab.directory}/ca.pem")).read().decode()`,
      '    except Exception as error: return type(error.reason if hasattr(error, "reason") else error).__name__',
      'for url in ("http://api.test/", "https://api.test/", "http://second.test/", "http://93.184.1.2/"): print(get(url))',
    ].join('\n'));
    const { result } = await lab.sh(`/usr/bin/python3 ${script}`, { allow: ['api.test'] });
    const [plain, secure, ...refused] = result.stdout.trim().split('\n');
    expect(JSON.parse(plain ?? '')).toMatchObject({ host: 'api.test' });
    expect(JSON.parse(secure ?? '')).toMatchObject({ tls: 'api.test' });
    expect(refused).toEqual(['gaierror', expect.stringMatching(/^Connection/)]);
  });

  it("Node's fetch, with keep-alive connections", async (context) => {
    belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux, where runtimes take their time');
    const script = lab.file('fetch.mjs', `
      const get = async (url) => { try { return await (await fetch(url)).text(); } catch (error) { return error.cause?.code ?? error.message; } };
      for (const url of ['http://api.test/1', 'http://api.test/2', 'https://api.test/3', 'http://second.test/', 'http://93.184.1.2/']) console.log(await get(url));`);
    const { result } = await lab.run({
      command: process.execPath,
      args: [script],
      env: { NODE_EXTRA_CA_CERTS: `${lab.directory}/ca.pem` },
      timeoutMs: patience(60_000),
      network: { allow: ['api.test'] },
      filesystem: { read: [lab.directory] },
    });
    const [first, second, secure, ...refused] = result.stdout.trim().split('\n');
    expect([first, second, secure].map((line) => (JSON.parse(line ?? '') as { path: string }).path)).toEqual(['/1', '/2', '/3']);
    expect(refused).toEqual(['ENOTFOUND', expect.stringMatching(/^ECONN/)]);
  });

  it("Deno's fetch, import and WebSocket", async (context) => {
    belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux, where runtimes take their time');
    const script = lab.file('deno.ts', `
      const get = async (url: string) => { try { return await (await fetch(url)).text(); } catch (error) { return 'no: ' + (error as Error).message; } };
      for (const url of ['http://api.test/1', 'https://api.test/2', 'http://second.test/', 'http://93.184.1.2/']) console.log(await get(url));
      const { word } = await import('https://api.test/module.ts');
      console.log(word);
      for (const url of ['ws://api.test/', 'wss://api.test/']) {
        const socket = new WebSocket(url);
        await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
        socket.send('hello ' + url);
        console.log((await new Promise<MessageEvent>((resolve) => (socket.onmessage = resolve))).data);
        socket.close();
        await new Promise((resolve) => (socket.onclose = resolve));
      }
      Deno.exit(0);`);
    const { result } = await lab.run({
      command: denoPath(),
      args: ['run', '--quiet', '--no-prompt', '--allow-net', '--allow-import', '--cert', `${lab.directory}/ca.pem`, script],
      env: { DENO_DIR: '/tmp/deno', DENO_NO_UPDATE_CHECK: '1' },
      timeoutMs: patience(60_000),
      network: { allow: ['api.test'] },
      filesystem: { read: [lab.directory] },
    });
    const lines = result.stdout.trim().split('\n');
    expect(lines.length, result.stderr).toBe(7);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ path: '/1' });
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ path: '/2', tls: 'api.test' });
    expect(lines[2]).toMatch(/^no: /);
    expect(lines[3]).toMatch(/^no: /);
    expect(lines.slice(4)).toEqual(['imported', 'hello ws://api.test/', 'hello wss://api.test/']);
    expect(result.connections.map(({ host, verdict }) => `${host} ${verdict}`)).toContain('second.test refused');
  });

  it('redis-cli, and its pipelines', async (context) => {
    belongsHere(context, !whereAmI().uml, 'outside of User-Mode Linux');
    const { result } = await lab.sh(
      `redis-cli -h redis.test set word fence
       redis-cli -h redis.test get word
       (for n in $(seq 2000); do echo "SET key$n $n"; done) | redis-cli -h redis.test --pipe | tail -1
       redis-cli -h redis.test get key2000
       redis-cli -h api.test ping 2>&1; true`,
      { allow: ['redis.test:6379', 'api.test'] },
    );
    expect(result.stdout.trim().split('\n')).toEqual(['OK', 'fence', 'errors: 0, replies: 2000', '2000', expect.stringMatching(/^(Could not connect|Error: Connection reset)/)]);
  });

  it('getaddrinfo finds allowed names whatever family and flags it is asked with, and no others', async () => {
    const { said, result } = await lab.client(['lookup', 'api.test', 'API.Test', 'api.test.', 'b.a.wild.test', 'wild.test', 'second.test', 'localhost'], { allow: ['api.test', '*.wild.test'] });
    const found = { any: ['198.18.1.0'], v4: ['198.18.1.0'], v6: 'EAI_NONAME' };
    const none = { any: 'EAI_NONAME', v4: 'EAI_NONAME', v6: 'EAI_NONAME' };
    expect(said).toMatchObject({
      'api.test': { any: found.any, v4: found.v4 },
      'API.Test': { any: found.any, v4: found.v4 },
      'api.test.': { any: found.any, v4: found.v4 },
      'b.a.wild.test': { any: ['198.18.1.1'] },
      'wild.test': none,
      'second.test': none,
      localhost: { v4: ['127.0.0.1'] },
    });
    expect(result.connections.map(({ host }) => host)).toEqual(expect.arrayContaining(['wild.test', 'second.test']));
  });
});
