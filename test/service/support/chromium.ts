import { existsSync } from 'node:fs';

import { chromium } from 'playwright-core';
import type { Page } from 'playwright-core';
import type { TestContext } from 'vitest';
import { onTestFinished } from 'vitest';

import { whereAmI } from '../../support/lane.js';
import { belongsHere, needs } from '../../support/skip.js';
import { temporaryDirectory } from '../../support/temporary.js';

const PROGRAMS = ['/usr/bin/chromium', '/usr/lib/chromium/chromium', '/usr/bin/chromium-browser'];

/** Nothing that would make a browser call home, and a profile of its own. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface OpenPage {
  page: Page;
  /** What the page said to the console or threw, violations of its policy included. */
  complaints: string[];
  /** Every address that it asked for. */
  requests: string[];
}

/** A page in Debian's Chromium; the browser goes with the test. */
export async function openPage(context: TestContext, url: string, colors: 'light' | 'dark' = 'light'): Promise<OpenPage> {
  belongsHere(context, !whereAmI().uml, 'outside User-Mode Linux: a browser');
  const program = PROGRAMS.find((path) => existsSync(path));
  needs(context, program === undefined && 'Chromium: type "apt-get install chromium"');
  const browser = await chromium.launchPersistentContext(temporaryDirectory(), {
    executablePath: program as string,
    args: FLAGS,
    ignoreDefaultArgs: ['--enable-automation'],
    colorScheme: colors,
    viewport: { width: 1100, height: 900 },
  });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const opened: OpenPage = { page, complaints: [], requests: [] };
  page.on('console', (message) => opened.complaints.push(message.text()));
  page.on('pageerror', (error) => opened.complaints.push(error.message));
  page.on('request', (request) => opened.requests.push(request.url()));
  await page.goto(url);
  return opened;
}
