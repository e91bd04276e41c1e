import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { broker } from './support/broker.js';
import { listening, until } from './support/service.js';

const marker = (name: string) => `MARK${name}${randomUUID().replaceAll('-', '')}`;

it('logs each run with an id, and nothing of source, input, secrets, tokens, logs or errors', async () => {
  const marks = Object.fromEntries(['source', 'input', 'secret', 'secretName', 'broker', 'bearer', 'log', 'error', 'output', 'host', 'query', 'header'].map((name) => [name, marker(name)])) as Record<string, string>;
  const bearer = marks['bearer'] as string;
  const real = await broker(() => 1);
  const { url, logged, stop } = await listening({ token: bearer, logLevel: 'trace' });
  const source = `// ${marks['source']}
    export default async (input) => {
      console.log('${marks['log']}', input, globalThis.__secrets);
      await questpie.tools.list();
      if (input.fail) throw new Error('${marks['error']} ' + JSON.stringify(globalThis.__secrets) + input.text);
      return '${marks['output']}' + input.text;
    }`;
  const request = {
    source,
    input: { text: marks['input'] },
    secrets: { [marks['secretName'] as string]: marks['secret'] },
    bindings: { url: real.url, token: marks['broker'] },
    capabilities: {},
  };
  const send = (body: string, token = bearer) =>
    fetch(`${url}/run?token=${marks['query']}`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${token}`, 'x-marked': marks['header'] as string, 'content-type': 'application/json' },
    });
  const responses = [
    await send(JSON.stringify(request)),
    await send(JSON.stringify({ ...request, input: { fail: true, text: marks['input'] } })),
    await send(JSON.stringify({ ...request, source: `${source} }{ syntax ${marks['source']}` })),
    await send(JSON.stringify({ ...request, bindings: undefined, capabilities: { net: [`${marks['host']}.invalid.`, '10.0.0.1'] } })),
    await send(JSON.stringify({ ...request, secrets: { a: { b: marks['secret'] } } })),
    await send(`{"source": ${marks['source']}}`),
    await send(JSON.stringify(request), marks['bearer'] + 'x'),
    await send(`"${marks['input']}${'x'.repeat(3 * 1024 * 1024)}"`),
    await fetch(`${url}/${marks['query']}?x=${marks['query']}`),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 400, 401, 413, 404]);
  const runs = responses.slice(0, 4).map(({ headers }) => headers.get('x-ringfence-run'));
  expect(await responses[0]?.json()).toMatchObject({ ok: true });
  await stop();
  await until(() => logged.some((line) => line.includes('"stopped"')));

  const everything = logged.join('\n');
  for (const [name, mark] of Object.entries(marks)) expect(everything.includes(mark), `the log has the ${name}`).toBe(false);
  const lines = logged.map((line) => JSON.parse(line) as { run?: string; msg: string; outcome?: string });
  const ran = lines.filter(({ msg }) => msg === 'run');
  expect(ran.map(({ run }) => run)).toEqual(runs);
  expect(ran.map(({ outcome }) => outcome)).toEqual(['ok', 'guest-error', 'guest-error', 'egress-blocked']);
  expect(new Set(runs).size).toBe(4);
});
