#!/usr/bin/env node
import { runProgram } from './program.js';

// A reader that has gone is no reason for a stack trace.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
// By exit and not by waiting for an empty event loop: a terminal on standard input would keep it alive. Commands see to
// it that what they wrote is out.
process.exit(await runProgram(process.argv));
