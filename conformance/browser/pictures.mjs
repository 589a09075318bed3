// Takes the screenshots for the README. The argument is the stage: browser, addresses, output folder.

import { callAdminApi } from './stage.mjs';
import { openBrowser, openWindow, settled } from './window.mjs';

const given = JSON.parse(process.argv[2]);
const url = new URL(given.sign_in);
const browser = await openBrowser(given.browser);
const hosts = [url.host, new URL(given.public).host];
const window = await openWindow(browser, { hosts });
const { page } = window;

/** Takes a screenshot of the current page, without a text cursor or a pointer. */
async function take(name) {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${given.pictures}/${name}.png` });
}

async function open(address) {
  await page.goto('about:blank');
  await page.goto(`${url.origin}/#/${address}`);
  await settled(page);
}

await page.goto(given.sign_in);
await page.waitForSelector('.shell');
const wallet = (await callAdminApi(page, 'GET', '/wallets?q=web-shop')).data[0];

await open('overview');
await page.locator('.chart canvas').first().waitFor();
await take('overview');

await open(`wallets/${wallet.id}`);
await page.locator('.chart canvas').first().waitFor();
await page.getByRole('button', { name: 'Top up', exact: true }).click();
await page.getByRole('dialog').getByLabel('Amount').fill('50');
await page.getByRole('dialog').getByLabel('Reference').fill('INV-2026-0117');
await take('top-up');

await open(`keys?create=1&wallet=${wallet.id}`);
await page.getByRole('dialog').getByLabel('Name').fill('mobile-app');
await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
await page.locator('.secret code').waitFor();
await take('key');

const call = (await callAdminApi(page, 'GET', '/calls?status=200&endpoint=/v1/messages&limit=1')).data[0];
await open(`requests/${call.request_id}`);
await take('request');

await open('channels?add=1');
const dialog = page.getByRole('dialog');
await dialog.getByLabel(/^Vendor/).selectOption('sim');
await dialog.getByRole('button', { name: 'See its models' }).click();
await dialog.getByRole('checkbox', { name: 'sim-chat' }).check();
await dialog.getByRole('button', { name: 'Try a call' }).click();
await dialog.getByText('Nobody was charged').waitFor();
await take('channel');

await page.emulateMedia({ colorScheme: 'dark' });
await open('playground?model=sim/chat');
await page.getByLabel('Pays').selectOption(await page.getByLabel('Pays').locator('option', { hasText: '(demo)' }).first().getAttribute('value'));
await page.getByLabel('Prompt').fill('Write two sentences about rain.');
await page.getByRole('button', { name: 'Send' }).click();
await page.getByText('explained').waitFor();
await take('playground');

await browser.close();
