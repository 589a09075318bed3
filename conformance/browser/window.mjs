// A browser window that records what a page must not do: errors, violations of its content security policy, other hosts.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const WIDTHS = { wide: { width: 1280, height: 860 }, narrow: { width: 390, height: 844 } };
/** The timeout for what a check waits for. Slow machines need most of it. */
const WAIT_MS = 15_000;

export async function openBrowser(executablePath) {
  const args = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', '--disable-gpu'];
  if (process.getuid?.() === 0) args.push('--no-sandbox');
  return chromium.launch({ executablePath, args });
}

/** A window with its own cookies. `state` is the storage of an earlier window, `zone` a time zone instead of the system's. */
export async function openWindow(browser, { width = 'wide', theme = 'light', state, zone, hosts }) {
  const context = await browser.newContext({ viewport: WIDTHS[width], colorScheme: theme, storageState: state, timezoneId: zone, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const wrong = [];
  // An error status that a check provokes is not an error of the page.
  let allowed = [];
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    const text = `${message.type()}: ${message.text()}`;
    if (!allowed.some((part) => text.includes(part))) wrong.push(text);
  });
  page.on('pageerror', (error) => wrong.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (['http:', 'https:', 'ws:', 'wss:'].includes(url.protocol) && !hosts.includes(url.host)) wrong.push(`a request to ${url.host}`);
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return {
    page, context,
    allow: (...parts) => { allowed = parts; },
    /** The problems since the last call. */
    wrong: () => wrong.splice(0),
    close: () => context.close(),
  };
}

/** Waits until the page has loaded all its data. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('main') && !document.querySelector('.skeleton, main [aria-busy="true"]') && document.querySelector('.page, .sign-in')?.childElementCount > 0);
}

/** The serious and critical findings of axe. */
export async function accessibility(page) {
  // Injected over the debugger protocol, to which the content security policy of the page does not apply.
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.target.join(' ')).join(', ')}`);
}

/** Elements beyond the right edge of the window that are not inside a scrollable box. */
export async function overflow(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const scrolls = (element) => { for (let box = element.parentElement; box; box = box.parentElement) if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return true; return false; };
    const wide = [...document.querySelectorAll('body *')].filter((element) => { const { width: own, right } = element.getBoundingClientRect(); return own > 0 && right > width + 1 && !scrolls(element); });
    const named = wide.slice(0, 3).map((element) => `${element.tagName.toLowerCase()}.${element.className} ends at ${Math.round(element.getBoundingClientRect().right)} of ${width} pixels`);
    return document.documentElement.scrollWidth <= width ? named : [`the page is ${document.documentElement.scrollWidth} pixels wide in a window of ${width}`, ...named];
  });
}
