import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
// @ts-expect-error scripts have no declarations
import { watchProgress } from '../../scripts/lanes/progress.mjs';
import { temporaryDirectory } from '../support/temporary.js';

interface Watch {
  signal: AbortSignal;
  stop(): void;
}

it('ends a lane whose journal has come to a halt, and no other', async () => {
  const journal = path.join(temporaryDirectory(), 'journal');
  const moving = watchProgress(journal, 4000) as Watch;
  const halted = watchProgress(`${journal}.none`, 1000) as Watch;
  const stopped = watchProgress(`${journal}.none`, 1000) as Watch;
  stopped.stop();
  for (let round = 0; round < 12; round += 1) {
    appendFileSync(journal, '{}\n');
    await sleep(500);
  }
  moving.stop();
  halted.stop();
  expect(moving.signal.aborted).toBe(false);
  expect(stopped.signal.aborted).toBe(false);
  expect(halted.signal.reason).toMatchObject({ message: 'no test began or ended for 1 s' });
});
