// Alerts: a webhook whose secret is shown once, and where the console shows a low balance.

import { callAdminApi, assert, assertNoProblems } from './stage.mjs';
import { accessibility, overflow, settled } from './window.mjs';

const URL_OF_HOOK = 'https://hooks.tollgate.invalid/in?token=browser-secret';

export async function alerts(stage, check) {
  if (!stage.serves('/alerts')) return;
  const window = await stage.open();
  const { page } = window;
  await page.goto(`${stage.origin}/#/alerts`);
  await settled(page);
  await check('alerts: an address that is not public is refused with a sentence', async () => {
    window.allow('400');
    await page.getByRole('button', { name: 'Add webhook' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/x');
    await dialog.getByRole('button', { name: 'Add webhook' }).click();
    await dialog.locator('.problem-box', { hasText: 'not public' }).waitFor();
    window.allow();
    assertNoProblems(window);
  });
  await check('alerts: a rule of one wallet has only what is about wallets', async () => {
    const dialog = page.getByRole('dialog');
    await dialog.locator('input[name="wallet"]').fill('web-shop');
    assert(await dialog.getByLabel('Channel down').isDisabled(), 'a wallet has no channels');
    assert(await dialog.getByLabel('Low balance', { exact: true }).isChecked(), 'a wallet has a balance');
    await dialog.locator('input[name="wallet"]').fill('');
    assert(await dialog.getByLabel('Channel down').isChecked(), 'the choice is forgotten');
    const found = await accessibility(page);
    assert(!found.length, found.join('; '));
  });
  await check('alerts: the secret of a webhook is shown once', async () => {
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Address').fill(URL_OF_HOOK);
    await dialog.getByLabel('Low balance below').fill('0.5');
    await dialog.getByRole('button', { name: 'Add webhook' }).click();
    const secret = await page.locator('.secret code').textContent();
    assert(secret.startsWith('whsec_'), 'no secret is shown');
    await page.getByRole('dialog').getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('table', { name: 'Rules' }).getByText(URL_OF_HOOK).waitFor();
    await page.reload();
    await settled(page);
    assert(!(await page.content()).includes(secret), 'the secret is shown twice');
    assertNoProblems(window);
  });
  await check('alerts: a test tells what is wrong with a webhook', async () => {
    await page.getByRole('button', { name: 'Test' }).first().click();
    await page.getByText('The webhook did not take the test').waitFor();
    assertNoProblems(window);
  });
  await check('alerts: who may not change rules sees neither buttons nor the whole address', async () => {
    const other = await stage.open({ role: 'viewer' });
    await other.page.goto(`${stage.origin}/#/alerts`);
    await other.page.getByText('https://hooks.tollgate.invalid/…').waitFor();
    assert(!(await other.page.content()).includes('browser-secret'), 'a viewer sees the whole address');
    assert(!await other.page.getByRole('button', { name: 'Remove' }).count(), 'a viewer sees a button');
    assertNoProblems(other);
    await other.close();
  });
  await check('alerts: an amount of a wallet begins an alert, which is seen without a reload', async () => {
    const [wallet] = (await callAdminApi(page, 'GET', '/wallets?q=web-shop')).data;
    const other = await stage.open();
    await other.page.goto(`${stage.origin}/#/wallets/${wallet.id}`);
    await other.page.getByRole('button', { name: 'Change' }).click();
    await other.page.getByRole('dialog').getByLabel('Alert below').fill('1000000');
    await other.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await other.page.getByText('Alert below').waitFor();
    await page.getByRole('table', { name: 'Alerts' }).getByText('less than 1000000').waitFor();
    await other.page.goto(`${stage.origin}/#/overview`);
    await other.page.locator('.attention').getByText('less than 1000000').waitFor();
    assertNoProblems(other);
    await other.close();
    assertNoProblems(window);
  });
  for (const kind of ['light', 'dark'].flatMap((theme) => ['wide', 'narrow'].map((width) => ({ theme, width })))) {
    await check(`alerts: the page with an alert and a rule, ${kind.theme} ${kind.width}`, async () => {
      const other = await stage.open(kind);
      await other.page.goto(`${stage.origin}/#/alerts?show=open`);
      await other.page.getByText('less than 1000000').waitFor({ state: 'attached' });
      await settled(other.page);
      await other.page.screenshot({ path: `${stage.pictures}/alerts-filled-${kind.theme}-${kind.width}.png` });
      const found = [...await overflow(other.page), ...await accessibility(other.page)];
      assert(!found.length, found.join('; '));
      assertNoProblems(other);
      await other.close();
    });
  }
  await check('alerts: without the amount the alert ends, and the webhook can be removed', async () => {
    const [wallet] = (await callAdminApi(page, 'GET', '/wallets?q=web-shop')).data;
    await callAdminApi(page, 'PATCH', `/wallets/${wallet.id}`, { alerts: null });
    await page.getByRole('row', { name: 'less than 1000000' }).locator('.badge.good').waitFor();
    await page.getByRole('button', { name: 'Remove' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove webhook' }).click();
    await page.getByText('Alerts stand here and in the log').waitFor();
    assertNoProblems(window);
  });
  await window.close();
}
