// The first steps of an operator: a wallet, credits, a key, a call with it, the details of the call, the balance.

import { assert, assertNoProblems } from './stage.mjs';
import { settled } from './window.mjs';

export async function journey(stage, check) {
  if (!stage.serves('/wallets')) return;
  const window = await stage.open();
  const { page } = window;
  const name = `journey-${Date.now() % 1e6}`;
  let secret = '';
  let id = '';
  await check('journey: create a wallet', async () => {
    await page.goto(`${stage.origin}/#/wallets`);
    await page.getByRole('button', { name: 'Create wallet' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: 'Create wallet' }).click();
    await page.getByRole('heading', { name }).waitFor();
    assertNoProblems(window);
  });
  await check('journey: top up shows the result before it is done', async () => {
    await page.getByRole('button', { name: 'Top up', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Amount').fill('12.5');
    const outcome = await dialog.locator('.outcome').textContent();
    assert(/from\s*0\s*to\s*12\.5/.test(outcome), outcome);
    await dialog.getByLabel('Reference').fill('INV-1');
    await dialog.getByRole('button', { name: 'Top up', exact: true }).click();
    await page.locator('.figure .value', { hasText: '12.5' }).waitFor();
    await page.getByText('INV-1').first().waitFor();
    assertNoProblems(window);
  });
  await check('journey: the same reference with another amount is refused', async () => {
    window.allow('409');
    await page.getByRole('button', { name: 'Top up', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Amount').fill('99');
    await dialog.getByLabel('Reference').fill('INV-1');
    await dialog.getByRole('button', { name: 'Top up', exact: true }).click();
    await dialog.locator('.problem-box').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    window.allow();
    assertNoProblems(window);
  });
  await check('journey: create a key, whose secret is shown once', async () => {
    await page.getByRole('tab', { name: 'Keys' }).click();
    await page.getByRole('link', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('first');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    secret = await page.locator('.secret code').textContent();
    assert(secret.startsWith('sk-'), 'no secret is shown');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.reload();
    await settled(page);
    assert(!(await page.content()).includes(secret), 'the secret is shown twice');
    assertNoProblems(window);
  });
  await check('journey: use the key, see the call and what it cost', async () => {
    const answer = await fetch(`${stage.public}/v1/chat/completions`, {
      method: 'POST', headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/chat', messages: [{ role: 'user', content: 'Hello from the browser test.' }] }),
    });
    assert(answer.status === 200, `the call answered ${answer.status}`);
    await answer.text();
    id = answer.headers.get('x-request-id');
    await page.goto(`${stage.origin}/#/requests`);
    await page.getByText(name).first().waitFor();
    await page.goto(`${stage.origin}/#/requests/${id}`);
    await page.getByText('Where the time went').waitFor();
    const receipt = page.getByRole('table', { name: 'Price lines' });
    await receipt.getByText('Rounded up once').waitFor();
    assert(await page.locator('.waterfall .track').count() >= 2, 'the waterfall has fewer than two spans');
    assertNoProblems(window);
  });
  await check('journey: the wallet shows the charge and the balance', async () => {
    await page.getByRole('link', { name }).click();
    await page.getByRole('heading', { name }).waitFor();
    await page.getByText('Charge').first().waitFor();
    const value = await page.locator('.figure .value').textContent();
    assert(Number(value) < 12.5 && Number(value) > 12, `the wallet has ${value}`);
    assertNoProblems(window);
  });
  await check('journey: the statement is a file', async () => {
    await page.getByRole('tab', { name: 'Statement' }).click();
    await page.getByText('Closing balance').waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()]);
    const lines = [];
    for await (const piece of await download.createReadStream()) lines.push(piece.toString());
    const text = lines.join('');
    assert(text.includes('INV-1'), `the statement does not name the reference: ${text.slice(0, 200)}`);
    assertNoProblems(window);
  });
  await check('journey: the audit names who did it', async () => {
    await page.goto(`${stage.origin}/#/audit`);
    await page.getByText('wallet.top_up').first().click();
    await page.getByRole('dialog').waitFor();
    assertNoProblems(window);
  });
  await window.close();
}
