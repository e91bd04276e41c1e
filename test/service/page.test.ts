import { describe, expect, it } from 'vitest';

import { openPage } from './support/chromium.js';
import { listening, metric, service, until } from './support/service.js';

describe('the page for browsers', () => {
  it('is there only when it is enabled, and nothing but its own files may run in it', async () => {
    const { app } = await service({ page: true });
    for (const path of ['/', '/page.css', '/page.svg', '/page.js']) {
      const { statusCode, headers } = await app.inject(path);
      expect(statusCode).toBe(200);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|\*|data:/);
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
    expect((await app.inject('/')).payload).not.toMatch(/<script(?! type="module" src="\/page\.js")|<style| style=| on\w+=/);
    const without = await service();
    expect((await without.app.inject('/')).statusCode).toBe(404);
  });

  it('runs a function by keyboard alone, and shows output, logs, usage, fences and connections', async (context) => {
    const { url } = await listening({ page: true });
    const { page, complaints, requests } = await openPage(context, url);
    await page.keyboard.press('Tab');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('source');
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText("export default async ({ n }) => { console.log('<b>seen</b>', n); await fetch('http://example.org').catch(() => 0); return { twice: n * 2 } }");
    await page.keyboard.press('Tab');
    await page.keyboard.press('Control+A');
    await page.keyboard.insertText('{ "n": 21 }');
    for (let tabs = 0; tabs < 3; tabs++) await page.keyboard.press('Tab');
    await page.keyboard.type('example.com');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('status').filter({ hasText: /^Done after \d+ ms\.$/ }).waitFor();
    expect(await page.getByRole('region', { name: 'Output' }).textContent()).toBe('{\n  "twice": 42\n}');
    expect(await page.getByRole('region', { name: 'Logs' }).textContent()).toBe('log: <b>seen</b> 21');
    const table = (name: string) => page.getByRole('table', { name }).innerText();
    expect(await table('Usage')).toMatch(/Wall clock\s+[\d.]+ ms[^]*Most memory\s+[\d.]+ MiB/);
    expect(await table('Fences')).toMatch(/network\s+enforced[^]*memory\s+enforced/);
    expect(await table('Connections')).toMatch(/example\.org[^]*refused/);
    expect(complaints).toEqual([]);
    expect(requests.every((each) => each.startsWith(url))).toBe(true);
  });

  it('says what went wrong with a run, and with what was typed', async (context) => {
    const { url } = await listening({ page: true });
    const { page } = await openPage(context, url);
    await page.getByLabel(/^Source/).fill("export default () => { throw new Error('mine <i>') }");
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').filter({ hasText: /^Failed after \d+ ms: mine <i>$/ }).waitFor();
    await page.getByLabel(/^Input/).fill('{');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('alert').filter({ hasText: 'This is no JSON' }).waitFor();
    expect(await page.getByLabel(/^Input/).getAttribute('aria-invalid')).toBe('true');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('input');
    await page.getByLabel(/^Input/).fill('');
    await page.getByLabel(/^Hosts to connect/).fill('127.0.0.1');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').filter({ hasText: 'egress blocked' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('cancels a run, and the sandbox ends', async (context) => {
    const running = await listening({ page: true });
    const { page } = await openPage(context, running.url);
    await page.getByLabel(/^Source/).fill('export default () => new Promise(() => setInterval(() => {}, 1000))');
    await page.getByLabel(/^Time/).fill('30000');
    await page.getByRole('button', { name: 'Run' }).click();
    await until(async () => (await metric(running, 'ringfence_running')) === 1);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('status').filter({ hasText: 'Canceled.' }).waitFor();
    await until(async () => (await metric(running, 'ringfence_running')) === 0);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('run');
  });

  it('asks for the token where one is needed, and for the hosts of imports on Deno only', async (context) => {
    const guarded = await listening({ page: true, token: 'abc', runtime: 'deno' });
    const { page } = await openPage(context, guarded.url);
    await page.getByLabel(/^Token/).fill('wrong');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').filter({ hasText: 'a valid bearer token is needed' }).waitFor();
    await page.getByLabel(/^Token/).fill('abc');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').filter({ hasText: /^Done/ }).waitFor();
    expect(await page.getByRole('region', { name: 'Output' }).textContent()).toContain('Hello, world!');
    expect(await page.getByLabel(/import modules/).isVisible()).toBe(true);

    const open = await listening({ page: true });
    await page.goto(open.url);
    expect(await page.getByLabel(/^Token/).isVisible()).toBe(false);
    expect(await page.getByLabel(/import modules/).isVisible()).toBe(false);
  });

  it.for(['light', 'dark'] as const)('in %s colours has labels for all controls, contrast of 4.5, and room on a narrow screen', async (colors, context) => {
    const { url } = await listening({ page: true });
    const { page } = await openPage(context, url, colors);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('status').filter({ hasText: /^Done/ }).waitFor();
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll('input, textarea')].filter((each) => (each as HTMLInputElement).labels?.length !== 1).map(({ id }) => id),
    );
    expect(unnamed).toEqual([]);
    expect(await page.evaluate(CONTRASTS)).toEqual([]);
    await page.setViewportSize({ width: 340, height: 700 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(340);
  });
});

/** Every visible text whose contrast with what is behind it is less than WCAG's 4.5, as a line to read. */
const CONTRASTS = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((each) => each / 255).map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each !== null; each = each.parentElement) {
      const color = channels(getComputedStyle(each).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '') || element.matches('input, textarea');
    if (!hasText || element.getClientRects().length === 0) continue;
    const [light, dark] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) low.push(element.tagName + '#' + element.id + ' ' + ratio.toFixed(2));
  }
  return low;
})()`;
