// The client of the bench, the same for every contender: argv is host, port, what to measure, how much. Prints its figure.
import { lookup } from 'node:dns/promises';
import { Agent, request } from 'node:http';

const [name, port, what, amount] = process.argv.slice(2);
// Once: what is measured is the way, not the resolver.
const { address: host } = await lookup(name);
const one = (agent, path = '/', body = null) =>
  new Promise((resolve, reject) => {
    const sent = request({ host, port, path, agent, method: body === null ? 'GET' : 'POST' }, (response) => {
      response.on('data', () => {}).on('end', resolve).on('error', reject);
    });
    sent.on('error', reject);
    if (body === null) sent.end();
    else body(sent);
  });

async function upload(sent) {
  const chunk = Buffer.alloc(1 << 20);
  for (let left = Number(amount); left > 0; left -= chunk.length) {
    if (!sent.write(chunk)) await new Promise((resolve) => sent.once('drain', resolve));
  }
  sent.end();
}

async function inTurn(agent) {
  for (let count = 0; count < Number(amount); count++) await one(agent);
}

const kept = new Agent({ keepAlive: true, maxSockets: 1 });
const measures = {
  down: () => one(false, `/bytes/${amount}`),
  up: () => one(false, '/', upload),
  kept: () => inTurn(kept),
  fresh: () => inTurn(false),
};
// The name is looked up, and the way warm, before the clock starts.
await one(what === 'kept' ? kept : false);
const start = performance.now();
await measures[what]();
console.log((performance.now() - start) / 1000);
process.exit();
