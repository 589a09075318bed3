// What the forms of keys, wallets and statements send, and what must never be sent, lost or shown.

import { callAdminApi, assert, assertNoProblems } from './stage.mjs';
import { settled } from './window.mjs';

/** A time zone with an offset that differs from UTC and between summer and winter. */
const ZONE = 'America/New_York';

/** Opens an address even if it is the current one. */
async function open(stage, page, address) {
  await page.goto('about:blank');
  await page.goto(`${stage.origin}/#/${address}`);
  await settled(page);
}

/** The body of the next change that the page sends to a path. */
async function bodyOfChange(page, path, act) {
  const [request] = await Promise.all([page.waitForRequest((sent) => sent.method() === 'PATCH' && sent.url().endsWith(path)), act()]);
  return request.postData();
}

/**
 * Waits for two frames. A browser closes a dialog at a second Esc, and the console opens it again when it is told: a check that
 * looks at once may find it closed.
 */
const painted = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));

export async function forms(stage, check) {
  if (!stage.serves('/wallets') || !stage.serves('/keys')) return;
  const window = await stage.open({ zone: ZONE });
  const { page } = window;
  const dialog = page.getByRole('dialog');
  await page.goto(stage.origin);
  await page.waitForSelector('.shell');
  const create = (path, body) => callAdminApi(page, 'POST', path, body);
  const name = `forms-${Date.now() % 1e6}`;
  const wallet = await create('/wallets', { name, balance: '5' });
  const other = await create('/wallets', { name: `${name}-other` });
  const expires = Date.UTC(2031, 6, 15, 12, 0, 30) + 250;
  const key = await create('/keys', { wallet: wallet.id, name: 'limited', rpm: 7, limit: '2', expires_at: expires });
  const expiresInWinter = Date.UTC(2031, 0, 15, 12, 0, 30) + 250;
  const winterKey = await create('/keys', { wallet: wallet.id, name: 'winter', expires_at: expiresInWinter });

  await check('forms: a limit that is not a number is not sent, and the form keeps what was typed', async () => {
    await open(stage, page, `keys/${key.id}`);
    let sent = 0;
    page.on('request', (request) => { if (request.method() === 'PATCH') sent += 1; });
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await dialog.getByLabel('Tokens per minute').fill('5000');
    for (const [label, text] of [['Requests per minute', '1,000'], ['Requests per minute', '1e3'], ['Spending limit', '1,000']]) {
      const before = await dialog.getByLabel(label).inputValue();
      await dialog.getByLabel(label).fill(text);
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.locator('.field', { hasText: label }).locator('.problem').waitFor();
      assert(await dialog.getByLabel('Tokens per minute').inputValue() === '5000', 'the form forgot a limit');
      await dialog.getByLabel(label).fill(before);
    }
    assert(sent === 0, 'a text that is not a number was sent');
    await dialog.getByLabel('Tokens per minute').fill('');
    assertNoProblems(window);
  });
  await check('forms: only what was changed is sent, and an expiry stays, in summer and in winter', async () => {
    assert(await dialog.getByLabel('Expires').inputValue() === '2031-07-15T08:00:30', await dialog.getByLabel('Expires').inputValue());
    await dialog.getByLabel('Name').fill('renamed');
    await dialog.getByLabel('Requests per minute').fill('1000');
    const body = await bodyOfChange(page, `/keys/${key.id}`, () => dialog.getByRole('button', { name: 'Save' }).click());
    assert(body === '{"name":"renamed","rpm":1000}', body);
    await page.getByRole('heading', { name: 'renamed' }).waitFor();
    const changed = await callAdminApi(page, 'GET', `/keys/${key.id}`);
    assert(changed.expires_at === expires && changed.limit === '2', JSON.stringify(changed));
    await open(stage, page, `keys/${winterKey.id}`);
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    assert(await dialog.getByLabel('Expires').inputValue() === '2031-01-15T07:00:30', await dialog.getByLabel('Expires').inputValue());
    await dialog.getByLabel('Requests per minute').fill('5');
    const inWinter = await bodyOfChange(page, `/keys/${winterKey.id}`, () => dialog.getByRole('button', { name: 'Save' }).click());
    assert(inWinter === '{"rpm":5}', inWinter);
    assertNoProblems(window);
  });
  await check('forms: a form that is sending stays open, and the secret that it gets is not covered', async () => {
    await open(stage, page, `keys/${key.id}`);
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    const overlap = dialog.getByLabel('The old secret stops working');
    assert(await overlap.inputValue() === '86400', `the first choice is ${await overlap.inputValue()}`);
    await overlap.selectOption('3600');
    // Renders the page again.
    await page.evaluate(() => window.dispatchEvent(new HashChangeEvent('hashchange')));
    let answer;
    const held = new Promise((resolve) => { answer = resolve; });
    await page.route('**/rotate', async (route) => { await held; await route.continue(); });
    const [request] = await Promise.all([page.waitForRequest('**/rotate'), dialog.getByRole('button', { name: 'Rotate', exact: true }).click()]);
    assert(request.postData() === '{"overlap_seconds":3600}', request.postData());
    for (const name of ['Cancel', 'Close']) assert(await dialog.getByRole('button', { name, exact: true }).isDisabled(), `“${name}” can be pressed`);
    for (let times = 0; times < 3; times += 1) await page.keyboard.press('Escape');
    await painted(page);
    await page.mouse.click(5, 5);
    await painted(page);
    assert(await overlap.isVisible(), 'the form is gone');
    answer();
    await page.locator('.secret code').waitFor();
    await page.keyboard.press('Control+k');
    assert(!await page.locator('.palette').count(), 'the palette covers the secret');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.unroute('**/rotate');
    assertNoProblems(window);
  });
  await check('forms: a statement has the days of UTC', async () => {
    const [request] = await Promise.all([
      page.waitForRequest((sent) => sent.url().includes('/statement?')),
      open(stage, page, `wallets/${wallet.id}?tab=statement&from=2026-03-01&to=2026-03-31`),
    ]);
    const { searchParams } = new URL(request.url());
    const range = ['from', 'to'].map((end) => Number(searchParams.get(end)));
    assert(range.join() === `${Date.UTC(2026, 2, 1)},${Date.UTC(2026, 3, 1)}`, `the range is ${range.map((at) => new Date(at).toISOString())}`);
    await page.getByText('midnight UTC').waitFor();
    assertNoProblems(window);
  });
  await check('forms: a statement without a first day begins with the month, and a range that ends before it begins has no figures', async () => {
    const [request] = await Promise.all([
      page.waitForRequest((sent) => sent.url().includes('/statement?')),
      open(stage, page, `wallets/${wallet.id}?tab=statement&to=2026-03-31`),
    ]);
    const from = Number(new URL(request.url()).searchParams.get('from'));
    assert(from === Date.UTC(2026, 2, 1), `it begins at ${new Date(from).toISOString()}`);
    await open(stage, page, `wallets/${wallet.id}?tab=statement&from=2026-04-01&to=2026-03-31`);
    await page.getByText('The first day is after the last one.').waitFor();
    assert(!await page.getByText('After the last day').count() && !await page.getByRole('link', { name: 'CSV' }).count(), 'figures of no range are shown');
    assertNoProblems(window);
  });
  await check('forms: the JSON statement has the entries of all pages', async () => {
    await create(`/wallets/${wallet.id}/entries`, { kind: 'top_up', amount: '1', reference: `${name}-1` });
    await create(`/wallets/${wallet.id}/entries`, { kind: 'top_up', amount: '2', reference: `${name}-2` });
    // The month may end while the checks run, so the range has days before and after today.
    const dayInUtc = (offset) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    await open(stage, page, `wallets/${wallet.id}?tab=statement&from=${dayInUtc(-2)}&to=${dayInUtc(2)}`);
    let pages = 0;
    await page.route('**/statement?*limit=500*', (route) => { pages += 1; return route.continue({ url: route.request().url().replace('limit=500', 'limit=1') }); });
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'JSON' }).click()]);
    const pieces = [];
    for await (const piece of await download.createReadStream()) pieces.push(piece);
    const { data, months, closing } = JSON.parse(Buffer.concat(pieces).toString());
    assert(data.map(({ amount }) => amount).join() === '5,1,2' && months.length > 0 && closing.balance === '8', JSON.stringify({ data, closing }));
    assert(pages >= 3, `the statement came in ${pages} pages`);
    await page.unroute('**/statement?*limit=500*');
    assertNoProblems(window);
  });
  await check('forms: a statement that is open shows a top-up', async () => {
    await page.getByRole('button', { name: 'Top up', exact: true }).click();
    await dialog.getByLabel('Amount').fill('4');
    await dialog.getByRole('button', { name: 'Top up', exact: true }).click();
    await page.locator('.card', { hasText: 'After the last day' }).getByText('12 credits').waitFor();
    assertNoProblems(window);
  });
  await check('forms: another wallet does not show the values of the one before', async () => {
    let answer;
    const held = new Promise((resolve) => { answer = resolve; });
    await page.route(`**/admin/v1/wallets/${other.id}`, async (route) => { await held; await route.continue(); });
    await page.evaluate((id) => { location.hash = `#/wallets/${id}`; }, other.id);
    await page.locator('.skeleton').first().waitFor();
    assert(!await page.getByRole('heading', { name: wallet.id }).count(), 'the page shows the wallet before');
    answer();
    await page.getByRole('heading', { name: other.id }).waitFor();
    await page.unroute(`**/admin/v1/wallets/${other.id}`);
    assertNoProblems(window);
  });
  await check('forms: a wallet beyond the first page is offered, and others are found by their names', async () => {
    const isFirstPage = (url) => url.pathname === '/admin/v1/wallets' && !url.searchParams.get('q');
    await page.route(isFirstPage, async (route) => {
      const response = await route.fetch();
      const { data } = await response.json();
      await route.fulfill({ response, json: { data: data.filter(({ name: shown }) => !shown.startsWith(name)), next_cursor: 'more' } });
    });
    await open(stage, page, `keys?create=1&wallet=${wallet.id}`);
    const choice = dialog.locator('select[required]');
    await choice.locator('option', { hasText: name }).waitFor({ state: 'attached' });
    assert(await choice.inputValue() === wallet.id, `the wallet is ${await choice.inputValue()}`);
    await dialog.getByLabel('Search for others').fill(`${name}-other`);
    await choice.locator('option', { hasText: `${name}-other` }).waitFor({ state: 'attached' });
    await page.keyboard.press('Enter');
    assert(await choice.inputValue() === wallet.id, 'the search changes the choice');
    await choice.selectOption({ label: `${name}-other` });
    const [request] = await Promise.all([page.waitForRequest((sent) => sent.method() === 'POST'), dialog.getByRole('button', { name: 'Create key' }).click()]);
    assert(request.postDataJSON().wallet === other.id, request.postData());
    await page.unroute(isFirstPage);
    assertNoProblems(window);
  });
  await check('forms: a secret that is shown once stays until it is copied', async () => {
    const secret = page.locator('.secret code');
    await secret.waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await painted(page);
    await page.mouse.click(5, 5);
    await page.keyboard.press('Escape');
    await painted(page);
    await page.keyboard.press('Control+k');
    await painted(page);
    assert(await secret.isVisible() && !await page.locator('.palette').count(), 'the secret is gone or covered');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await secret.waitFor({ state: 'detached' });
    assertNoProblems(window);
  });
  await check('forms: rows of another filter are not shown if its rows cannot be fetched', async () => {
    await open(stage, page, 'keys');
    await page.getByRole('table', { name: 'Keys' }).locator('tbody tr').first().waitFor();
    window.allow('net::ERR_FAILED');
    await page.route('**/admin/v1/keys?*tag=*', (route) => route.abort());
    await page.getByLabel('Tag').fill('none');
    await page.keyboard.press('Enter');
    await page.locator('main .problem-box').waitFor();
    assert(!await page.locator('tbody tr').count(), 'old rows are shown');
    await page.unroute('**/admin/v1/keys?*tag=*');
    window.allow();
    assertNoProblems(window);
  });
  await check('forms: without what browsers keep for secure pages, money moves and secrets can be selected', async () => {
    const plain = await stage.open();
    await plain.page.addInitScript(() => { delete Navigator.prototype.clipboard; delete Crypto.prototype.randomUUID; });
    await open(stage, plain.page, `wallets/${wallet.id}`);
    await plain.page.getByRole('button', { name: 'Top up', exact: true }).click();
    const reference = await plain.page.getByLabel('Reference').inputValue();
    assert(/^console-[0-9a-f]{12}$/.test(reference), reference);
    await plain.page.keyboard.press('Escape');
    await open(stage, plain.page, `requests/${(await callAdminApi(plain.page, 'GET', '/calls?limit=1')).data[0].request_id}`);
    assert(!await plain.page.getByRole('button', { name: 'Copy id' }).count(), 'a button cannot do what it says');
    assertNoProblems(plain);
    await plain.close();
  });
  await window.close();
}
