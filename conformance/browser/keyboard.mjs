// The console by keyboard alone.

import { assert, assertNoProblems } from './stage.mjs';
import { settled } from './window.mjs';

export async function keyboard(stage, check) {
  if (!stage.serves('/wallets')) return;
  const window = await stage.open();
  const { page } = window;
  await check('keyboard: Ctrl-K finds a wallet and opens it', async () => {
    await page.goto(`${stage.origin}/#/overview`);
    await settled(page);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('web-sh');
    await page.getByRole('option', { name: /web-shop/ }).first().waitFor();
    while (!/web-shop/.test(await page.locator('[role=option][aria-selected=true]').textContent())) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /web-shop/ }).waitFor();
    assertNoProblems(window);
  });
  await check('keyboard: a slash focuses the search, j and Enter open a row', async () => {
    await page.goto(`${stage.origin}/#/wallets`);
    await settled(page);
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('/');
    assert(await page.evaluate(() => document.activeElement.getAttribute('aria-label')) === 'Search wallets', 'the search has no focus');
    await page.keyboard.press('Tab');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('j');
    await page.locator('tr[data-selected=true]').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('Statement').first().waitFor();
    assertNoProblems(window);
  });
  await check('keyboard: Esc closes a dialog', async () => {
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assertNoProblems(window);
  });
  await window.close();
}
