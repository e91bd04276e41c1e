// A small Internet in two network namespaces. Started as root of a network and a mount namespace of its own (support/lab.ts):
// this one, at 10.77.0.1, is the host's; a second one behind a veth pair holds the servers, at public-looking addresses.
// argv: JSON { uid, env, servers, addresses, own }. Passes lines of JSON between its own streams and those of the two.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const { asUser, env, servers, addresses, own } = JSON.parse(process.argv[2]);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const ip = (...words) => execFileSync('ip', words, { stdio: ['ignore', 'inherit', 'inherit'] });
const scratch = mkdtempSync(path.join(tmpdir(), 'test-lab-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/** A child that speaks in lines; resolves with what it says once it has said its first word. */
function start(name, command, args, options) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
  const lines = createInterface({ input: child.stdout });
  child.on('exit', (code, signal) => {
    if (!ending) console.error(`lab: ${name} ended early: ${code ?? signal}`);
    finish();
  });
  const ready = new Promise((resolve) => lines.once('line', resolve));
  return { child, lines, ready };
}

let ending = false;
function finish() {
  if (ending) return;
  ending = true;
  for (const { child } of children) child.stdin.end();
}

const children = [];
const inside = start('servers', 'unshare', ['-n', process.execPath, here('servers.mjs')], { env: { PATH: process.env.PATH } });
children.push(inside);
// unshare becomes node, so that this is the process whose namespace it is; its first word comes from inside.
await inside.ready;
ip('link', 'set', 'lo', 'up');
ip('link', 'add', 'host0', 'type', 'veth', 'peer', 'name', 'net0', 'netns', String(inside.child.pid));
for (const address of ['10.77.0.1/24', 'fd77::1/64']) ip('addr', 'add', address, 'dev', 'host0', ...(address.includes(':') ? ['nodad'] : []));
for (const address of own) ip('addr', 'add', `${address}/32`, 'dev', 'lo');
ip('link', 'set', 'host0', 'up');
ip('route', 'add', 'default', 'via', '10.77.0.2');
ip('-6', 'route', 'add', 'default', 'via', 'fd77::2');
writeFileSync(path.join(scratch, 'resolv.conf'), 'nameserver 93.184.0.53\nsearch wrong.test\n', { mode: 0o644 });
execFileSync('mount', ['--bind', path.join(scratch, 'resolv.conf'), '/etc/resolv.conf']);
const up = new Promise((resolve) => inside.lines.once('line', resolve));
inside.child.stdin.write(`${JSON.stringify({ addresses, servers })}\n`);
await up;

// The host is an ordinary account again, as far as this namespace goes, unless it really is root's.
const become = asUser ? ['unshare', '-U', '--map-user=1000', '--map-group=1000'] : [];
const [first, ...rest] = [...become, process.execPath, here('host.mjs')];
const host = start('host', first, rest, { env });
children.push(host);
await host.ready;

for (const { lines } of children) lines.on('line', (line) => process.stdout.write(`${line}\n`));
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const message = JSON.parse(line);
    (message.to === 'servers' ? inside : host).child.stdin.write(`${line}\n`);
  })
  .on('close', finish);
process.stdout.write('"ready"\n');
