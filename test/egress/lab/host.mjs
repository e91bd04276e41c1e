// The host's side: the built library in a process of its own. A line of JSON { id, options } in, a line { id, result, live } out;
// { id, task: 'memory' } tells what this process holds.
import { createInterface } from 'node:readline';

import { runSandboxed } from '../../../dist/index.js';

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

async function run({ id, options }) {
  const live = [];
  const peak = { rss: 0 };
  const timer = setInterval(() => (peak.rss = Math.max(peak.rss, process.memoryUsage.rss())), 50);
  try {
    const { network } = options;
    const listening = typeof network === 'object' ? { ...network, onConnection: (connection) => live.push(connection) } : network;
    tell({ id, result: await runSandboxed({ ...options, network: listening }), live, peakRss: peak.rss });
  } catch (error) {
    tell({ id, thrown: `${error.name}: ${error.message}` });
  } finally {
    clearInterval(timer);
  }
}

createInterface({ input: process.stdin }).on('line', (line) => void run(JSON.parse(line)));
tell('here');
