// The host's side in a process of its own: descriptors from 3 on (DNS over UDP, over TCP, the listeners in order), then the
// connection that waits for "ready". argv: directory of the compiled sources, options, ports, address of a DNS server.
import { closeSync, writeSync } from 'node:fs';

const [directory, options, ports, dnsServer] = process.argv.slice(2);
const { Gateway } = await import(`${directory}/src/egress/gateway.js`);
const { compilePolicy } = await import(`${directory}/src/egress/policy.js`);
const { dnsResolver } = await import(`${directory}/src/egress/resolve.js`);

const numbers = JSON.parse(ports);
const gateway = await Gateway.open({
  policy: compilePolicy(JSON.parse(options)),
  sockets: { dnsUdp: { fd: 3 }, dnsTcp: { fd: 4 }, listeners: numbers.map((port, index) => ({ port, endpoint: { fd: 5 + index } })) },
  onThrow: (error) => console.error(error),
  replace: { resolve: dnsResolver([dnsServer]) },
});
writeSync(5 + numbers.length, 'r');
closeSync(5 + numbers.length);
process.stdin.on('end', async () => {
  await gateway.close();
  // No exit here: a handle that is left would keep this process alive.
  console.log(JSON.stringify(gateway.connections));
});
process.stdin.resume();
