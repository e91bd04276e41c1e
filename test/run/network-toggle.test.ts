import { readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

import { patience } from '../support/lane.js';

const library = fileURLToPath(new URL('../../dist/index.js', import.meta.url));

interface Said {
  runs: { enforcement: { network: { status: string; by: string } }; stdout: string; connections: unknown[]; exitCode: number | null }[];
  warnings: { code?: string; message: string }[];
}

/** A host of its own, with this value of the variable: what it is warned of, and what came of one run for each network. */
async function host(value: string | undefined, networks: unknown[]): Promise<Said & { stderr: string }> {
  const script = `
    import { runSandboxed } from ${JSON.stringify(library)};
    const warnings = [], runs = [];
    process.on('warning', ({ code, message }) => warnings.push({ code, message }));
    for (const network of ${JSON.stringify(networks)}) {
      runs.push(await runSandboxed({ command: 'readlink', args: ['/proc/self/ns/net'], timeoutMs: ${patience(20_000)}, network }));
    }
    console.log(JSON.stringify({ runs, warnings }));`;
  const { stdout, stderr } = await execa(process.execPath, ['--input-type=module', '-e', script], {
    env: { SANDBOX_DISABLE_NETNS_FIREWALL: value },
  });
  return { ...(JSON.parse(stdout) as Said), stderr };
}

const allowlist = { allow: ['api.test'] };

describe('SANDBOX_DISABLE_NETNS_FIREWALL', { timeout: patience(60_000) }, () => {
  it('1 shares the network of this machine, tells so in each result, and warns once', async () => {
    const { runs, warnings, stderr } = await host('1', ['none', allowlist, 'none']);
    for (const { enforcement, stdout, connections } of runs) {
      expect(enforcement.network).toEqual({ status: 'disabled', by: 'SANDBOX_DISABLE_NETNS_FIREWALL=1' });
      expect(stdout.trim()).toBe(readlinkSync('/proc/self/ns/net'));
      expect(connections).toEqual([]);
    }
    expect(runs.length).toBe(3);
    expect(warnings).toEqual([{ code: 'RINGFENCE_NETWORK_SHARED', message: expect.stringMatching(/^SANDBOX_DISABLE_NETNS_FIREWALL is 1: .* no network fence and no allowlist/) as string }]);
    expect(stderr.match(/RINGFENCE_NETWORK_SHARED/g)?.length).toBe(1);
  });

  it.each(['0', 'true', 'yes', '', ' 1', '01', undefined])('%o leaves the fence up, and warns of nothing', async (value) => {
    const { runs, warnings, stderr } = await host(value, ['none', allowlist]);
    expect(runs.map(({ enforcement }) => enforcement.network)).toEqual([
      { status: 'enforced', by: 'netns' },
      { status: 'enforced', by: 'netns, allowlist' },
    ]);
    for (const { stdout } of runs) expect(stdout.trim()).not.toBe(readlinkSync('/proc/self/ns/net'));
    expect(warnings).toEqual([]);
    expect(stderr).toBe('');
  });

  it('1 warns of nothing where the network is shared on purpose', async () => {
    const { runs, warnings } = await host('1', ['host']);
    expect(runs[0]?.enforcement.network).toEqual({ status: 'disabled', by: "network: 'host'" });
    expect(warnings).toEqual([]);
  });

  it('1 makes no wrong allowlist right', async () => {
    await expect(host('1', [{ allow: ['*'] }])).rejects.toThrow(/RangeError: network\.allow\[0\]/);
  });
});

it("a run without an allowlist loads nothing of an allowlist's code", async () => {
  const hooks = `data:text/javascript,${encodeURIComponent(`
    export async function load(url, context, next) {
      process._rawDebug('loaded ' + url);
      return next(url, context);
    }`)}`;
  const loaded = async (network: unknown): Promise<string> => {
    const script = `
      import { register } from 'node:module';
      register(${JSON.stringify(hooks)});
      const { runSandboxed } = await import(${JSON.stringify(library)});
      await runSandboxed({ command: 'true', args: [], timeoutMs: ${patience(20_000)}, network: ${JSON.stringify(network)} });`;
    return (await execa(process.execPath, ['--input-type=module', '-e', script])).stderr;
  };
  expect(await loaded(allowlist)).toMatch(/loaded \S*\/dist\/egress\/gateway\.js/);
  for (const network of ['none', 'host']) expect(await loaded(network)).not.toMatch(/loaded \S*(\/dist\/egress\/|tldts|ipaddr|dns-packet)/);
});
