// A script that nobody should trust: it looks around, and takes what it can get. Port of a service of this machine: argv[2].
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';

const [port, home] = process.argv.slice(2);

console.log(`Hello from ${userInfo().username}, uid ${process.getuid()}, in ${process.cwd()}.`);
attempt('read the password hashes of this machine', () => readFileSync('/etc/shadow'));
attempt(`look for keys in ${home}`, () => readdirSync(`${home}/.ssh`));
attempt('write beside itself', () => writeFileSync(new URL('planted.txt', import.meta.url), 'hello'));
attempt('find a token in the environment', () => process.env.API_TOKEN ?? refused('not there'));
attempt('see the processes of this machine', () => {
  const seen = readdirSync('/proc').filter((name) => Number(name) > 0).length;
  return seen > 2 ? `${seen} of them` : refused('only its own');
});
await attempt(`talk to the service at 127.0.0.1:${port}`, () => dial('127.0.0.1', Number(port)));
await attempt('ask the cloud for its credentials at 169.254.169.254', () => dial('169.254.169.254', 80));
await attempt('start a thousand processes', startProcesses);

function attempt(what, action) {
  const say = (mark, how) => console.log(`  ${mark} ${what}${how}`);
  const failed = (error) => say('refused ', `: ${error.code ?? error.message}`);
  const worked = (value) => {
    say('WORKED  ', typeof value === 'string' ? `: ${value}` : '');
    process.exitCode = 1;
  };
  try {
    const value = action();
    return value instanceof Promise ? value.then(worked, failed) : worked(value);
  } catch (error) {
    return failed(error);
  }
}

function refused(how) {
  throw new Error(how);
}

function dial(host, to) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: to, timeout: 2000 }, () => resolve('connected'));
    socket.on('timeout', () => reject(new Error('no answer'))).on('error', reject).on('close', () => socket.destroy());
  });
}

async function startProcesses() {
  for (let count = 0; count < 1000; count += 1) {
    const child = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
    const error = await new Promise((resolve) => child.on('error', resolve).on('spawn', () => resolve(null)));
    if (error !== null) refused(`${error.code} after ${count}; those go when this script goes`);
    child.unref();
  }
}
