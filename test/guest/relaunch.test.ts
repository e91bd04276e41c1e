import { expect, it, onTestFinished } from 'vitest';

import { encodePlan } from '../../src/plan/encode.js';
import type { RecentPlan } from '../../src/plan/recent-plan.js';
import { RecentSandboxes } from '../../src/guest/recent-sandboxes.js';
import { nodeRuntime } from '../../src/guest/runtime.js';
import { GuestSandbox } from '../../src/guest/sandbox.js';
import { Host } from '../../src/run/host.js';
import { useOwnTmpdir } from '../support/temporary.js';

useOwnTmpdir();

/** A host that is told of a launch that failed and is about to be made again. */
class RetryingHost extends Host {
  onRetry: () => void = () => undefined;

  override forgetFacts(): void {
    super.forgetFacts();
    this.onRetry();
  }
}

/** Makes its next answer a plan that cannot be launched any more. */
function outdate(plan: RecentPlan): void {
  const again = plan.again.bind(plan);
  plan.again = (...given) => {
    plan.again = again;
    const planned = again(...given);
    return planned && { ...planned, encoded: encodePlan({ ...planned.plan, executable: '/no/such/runtime' }) };
  };
}

class OutdatedSandboxes extends RecentSandboxes {
  outdated = false;

  override kindOf(...given: Parameters<RecentSandboxes['kindOf']>): ReturnType<RecentSandboxes['kindOf']> {
    const kind = super.kindOf(...given);
    if (this.outdated) outdate(kind.plan);
    return kind;
  }
}

function sandboxes() {
  const [host, recent] = [new RetryingHost(), new OutdatedSandboxes()];
  const profile = { memoryMb: 64, sharesNetwork: false, network: 'none' as const, net: [], import: [] };
  const start = () => {
    const sandbox = new GuestSandbox({ host, recent, runtime: nodeRuntime(process.execPath), profile, isolation: 'strict', backstopMs: 2 ** 31 - 1, rehearse: 'none' });
    onTestFinished(() => sandbox.finish());
    return sandbox;
  };
  return { host, recent, start };
}

it('a sandbox whose plan was out of date is started by a new one', async () => {
  const { recent, start } = sandboxes();
  const first = start();
  await first.ready;
  recent.outdated = true;
  const second = start();
  await second.ready;
  first.finish();
  second.finish();
  expect(await Promise.all([first.result, second.result])).toMatchObject([{ outcome: 'exit' }, { outcome: 'exit' }]);
});

it('one that is told to end between two launches does end', async () => {
  const { host, recent, start } = sandboxes();
  const first = start();
  await first.ready;
  recent.outdated = true;
  const second = start();
  let retries = 0;
  host.onRetry = () => {
    retries++;
    second.finish();
  };
  await second.result;
  expect(retries).toBe(1);
  first.finish();
  await first.result;
});
