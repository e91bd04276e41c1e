import { describe, expect, it } from 'vitest';

import { parseShebang } from '../../src/plan/shebang.js';

describe('parseShebang', () => {
  it.each([
    ['#!/bin/sh\nexit 0\n', '/bin/sh', null],
    ['#! \t/bin/sh -eu\n', '/bin/sh', null],
    ['#!/usr/bin/env node\n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env node', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env  node \n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env -S node --no-warnings\n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env -S -u NODE_OPTIONS A=1 deno run\n', '/usr/bin/env', 'deno'],
    ['#!/usr/bin/env -Snode --x\n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env --split-string=node --x\n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env -vS node\n', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env /opt/x/bin/python\n', '/usr/bin/env', '/opt/x/bin/python'],
    ['#!/usr/bin/env\n', '/usr/bin/env', null],
    ['#!/usr/bin/env -i\n', '/usr/bin/env', null],
    ['#!/usr/bin/env A=1\n', '/usr/bin/env', null],
    ['#!/opt/tool/environment x\n', '/opt/tool/environment', null],
  ])('reads %j', (head, interpreter, command) => {
    expect(parseShebang(head)).toEqual({ interpreter, command });
  });

  // env gets its argument in one piece: without -S, "node --x" is the name of one program.
  it('keeps the words of an argument together where the kernel does', () => {
    expect(parseShebang('#!/usr/bin/env node --x\n')?.command).toBe('node --x');
  });

  it.each(['', '#!', '#!\n/bin/sh\n', '#!sh\n', '#!./sh\n', '\u007fELF', ' #!/bin/sh\n', '#!\0/bin/sh'])('finds nothing in %j', (head) => {
    expect(parseShebang(head)).toBeNull();
  });
});
