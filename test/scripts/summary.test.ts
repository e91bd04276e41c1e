import { expect, it } from 'vitest';
// @ts-expect-error scripts have no declarations
import { summarize } from '../../scripts/lanes/summary.mjs';

interface Test {
  name: string;
  status: 'passed' | 'failed' | 'skipped';
  reason: string;
}

const passed: Test = { name: 'a > one', status: 'passed', reason: '' };
const failed: Test = { name: 'a > two', status: 'failed', reason: '' };
const skipped: Test = { name: 'a > three', status: 'skipped', reason: 'only as root' };

function lane(name: string, tests: Test[], more: { notRun?: string; fault?: string; elsewhere?: string[] } = {}): object {
  return { name, tests, elsewhere: [], notRun: null, fault: null, seconds: 1, ...more };
}

function verdict(results: object[], options: { mustRun?: boolean; complete?: boolean } = {}): { last: string; text: string; failed: boolean } {
  const { lines, failed: bad } = summarize(results, { mustRun: false, complete: false, ...options }) as { lines: string[]; failed: boolean };
  return { last: lines.at(-1) ?? '', text: lines.join('\n'), failed: bad };
}

it('ends with the sum over all lanes, alone on a line', () => {
  expect(verdict([lane('x', [passed, skipped]), lane('y', [passed])])).toMatchObject({ last: '2 passed, 0 failed, 1 skipped', failed: false });
  expect(verdict([lane('x', [passed, failed])])).toMatchObject({ last: '1 passed, 1 failed, 0 skipped', failed: true });
});

it('names what passed only when it was tried again', () => {
  const { text, failed: bad } = verdict([lane('x', [{ ...passed, reason: 'late\nby far', retries: 1 } as Test])]);
  expect(text).toContain('Passed only when tried again:\n  x: a > one: late\n');
  expect(bad).toBe(false);
  expect(verdict([lane('x', [passed])]).text).not.toContain('tried again');
});

it('fails for a lane that broke, and for one in which nothing was run', () => {
  expect(verdict([lane('x', [], { fault: 'stopped at its deadline' })])).toMatchObject({ last: '0 passed, 1 failed, 0 skipped', failed: true });
  expect(verdict([lane('x', [])])).toMatchObject({ last: '0 passed, 1 failed, 0 skipped', failed: true });
});

it('names a lane that this host cannot run, and fails for it only where everything must run', () => {
  const results = [lane('x', [passed]), lane('y', [], { notRun: 'mke2fs is missing' })];
  expect(verdict(results)).toMatchObject({ last: '1 passed, 0 failed, 0 skipped', failed: false, text: expect.stringContaining('not run: mke2fs is missing') });
  expect(verdict(results, { mustRun: true })).toMatchObject({ last: '1 passed, 1 failed, 0 skipped', failed: true });
});

it('says which tests a lane leaves to others', () => {
  expect(verdict([lane('x', [passed], { elsewhere: ['test/cli/**'] })]).text).toContain('x: test/cli/**');
});

it('prints why a test was skipped, and where', () => {
  expect(verdict([lane('x', [skipped]), lane('y', [skipped])]).text).toContain('a > three: only as root (x, y)');
});

it('of a complete run shows how many attacks were held', () => {
  const attack = { class: 'one', account: 'root', cgroup: 2, kernel: '6.1', open: null };
  const results = [lane('x', [{ ...passed, attack } as Test])];
  expect(verdict(results, { complete: true }).text).toContain('| one | 1 | 1 | 0 | 0 | 1 |');
  expect(verdict(results).text).not.toContain('| one |');
});

it('where everything must run, takes no skip without a reason and no test that every lane skipped', () => {
  const silent = { ...skipped, reason: '' };
  expect(verdict([lane('x', [silent]), lane('y', [{ ...silent, status: 'passed' }])], { mustRun: true }).last).toBe('1 passed, 1 failed, 1 skipped');
  const suite: Test = { name: 'a', status: 'failed', reason: 'the hook' };
  expect(verdict([lane('x', [suite, silent])], { mustRun: true }).last).toBe('0 passed, 1 failed, 1 skipped');
  expect(verdict([lane('x', [skipped]), lane('y', [skipped])], { mustRun: true, complete: true }).last).toBe('0 passed, 1 failed, 2 skipped');
  expect(verdict([lane('x', [skipped]), lane('y', [{ ...skipped, status: 'passed' }])], { mustRun: true, complete: true }).failed).toBe(false);
});
