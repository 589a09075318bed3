// Adding a vendor: its key, its models, a trial call before anything is saved, and a call of the new model.

import { callAdminApi, assert, assertNoProblems } from './stage.mjs';
import { accessibility, settled } from './window.mjs';

const KEY = 'sk-of-the-vendor-4711';

export async function vendor(stage, check) {
  if (!stage.serves('/channels/discover')) return;
  const window = await stage.open();
  const { page } = window;
  const dialog = page.getByRole('dialog', { name: 'Add a channel' });
  const openForm = async (preset = 'sim') => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/channels?add=1`);
    await dialog.getByLabel(/^Vendor/).selectOption(preset);
  };
  await check('vendor: an address that does not answer is told plainly', async () => {
    await openForm();
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/v1');
    await dialog.getByRole('button', { name: 'See its models' }).click();
    const told = await dialog.locator('.problem-box').textContent();
    assert(told.includes('The address is not public'), told);
    assertNoProblems(window);
  });
  await check('vendor: a member that is wrong is told at its field', async () => {
    await openForm();
    await dialog.getByLabel('Name').fill('two words');
    window.allow('400');
    await dialog.getByRole('button', { name: 'See its models' }).click();
    await dialog.locator('.field .problem', { hasText: 'letters, digits' }).waitFor();
    window.allow();
    assertNoProblems(window);
  });
  await check('vendor: its models are found, a call is tried, and the channel is saved', async () => {
    await openForm();
    await dialog.getByLabel('Name').fill('second');
    await dialog.getByRole('textbox', { name: /^Key/ }).fill(KEY);
    await dialog.getByRole('button', { name: 'See its models' }).click();
    await dialog.getByText('configured; gets another route').first().waitFor();
    await dialog.getByLabel('Search the models').fill('sim-o');
    await dialog.getByRole('checkbox', { name: 'sim-open' }).check();
    await dialog.getByText('not callable yet').waitFor();
    await dialog.getByLabel('Callers name it').fill('sim/open');
    await dialog.getByLabel('Price, input').fill('1');
    await dialog.getByLabel('Price, output').fill('4');
    await dialog.getByLabel('Output tokens at most').fill('8192');
    await dialog.getByText('complete', { exact: true }).waitFor();
    const found = await accessibility(page);
    assert(!found.length, found.join('; '));
    await dialog.getByRole('button', { name: 'Try a call' }).click();
    await dialog.getByText('Nobody was charged').waitFor();
    await page.screenshot({ path: `${stage.pictures}/add-channel.png` });
    let answer;
    const held = new Promise((resolve) => { answer = resolve; });
    await page.route('**/config', async (route) => { if (route.request().method() === 'PUT') await held; await route.continue(); });
    await Promise.all([page.waitForRequest((sent) => sent.method() === 'PUT' && sent.url().endsWith('/config')), dialog.getByRole('button', { name: 'Save channel' }).click()]);
    for (const name of ['Cancel', 'Close']) assert(await dialog.getByRole('button', { name, exact: true }).isDisabled(), `“${name}” can be pressed`);
    await page.keyboard.press('Escape');
    assert(await dialog.isVisible(), 'the form that saves is gone');
    answer();
    await page.getByText('Channel second serves 1 model.').waitFor();
    await page.unroute('**/config');
    await page.getByRole('link', { name: 'second', exact: true }).waitFor();
    assertNoProblems(window);
  });
  await check('vendor: callers reach the new model, and the key is shown nowhere', async () => {
    const answer = await fetch(`${stage.public}/v1/chat/completions`, {
      method: 'POST', headers: { authorization: `Bearer ${stage.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sim/open', messages: [{ role: 'user', content: 'Hello' }] }),
    });
    assert(answer.status === 200, `the call answered ${answer.status}: ${await answer.text()}`);
    const shown = [await callAdminApi(page, 'GET', '/config'), await callAdminApi(page, 'GET', '/audit?limit=50'), await callAdminApi(page, 'GET', '/channels')];
    assert(!JSON.stringify(shown).includes(KEY), 'the key is shown');
    await page.goto(`${stage.origin}/#/models/sim/open`);
    await settled(page);
    await page.getByText('callable', { exact: true }).waitFor();
    assertNoProblems(window);
  });
  await check('vendor: a model of the catalog is saved without a list, and a second account leaves its routes', async () => {
    const before = await callAdminApi(page, 'GET', '/config');
    let id;
    for (const name of ['first-account', 'second-account']) {
      await openForm('openai');
      await dialog.getByLabel('Name').fill(name);
      await dialog.getByRole('textbox', { name: /^Key/ }).fill(KEY);
      await dialog.getByLabel('Address').fill('http://127.0.0.1:9/v1');
      await dialog.getByRole('button', { name: 'See its models' }).click();
      await dialog.getByText('You can go on with the models below').waitFor();
      await dialog.locator('.found').getByRole('checkbox').first().check();
      if (!id) {
        id = await dialog.getByLabel('Callers name it').inputValue();
        // The catalog has no price for a changed id.
        await dialog.getByText('complete', { exact: true }).waitFor();
        await dialog.getByLabel('Callers name it').fill('shop/renamed');
        await dialog.getByText('not callable yet').waitFor();
        await dialog.getByLabel('Callers name it').fill(id);
      } else {
        await dialog.getByText('configured; gets another route').first().waitFor();
      }
      await dialog.getByRole('button', { name: 'Save channel' }).click();
      await page.getByText(`Channel ${name} serves 1 model.`).waitFor();
    }
    const models = await callAdminApi(page, 'GET', '/models');
    const { routes } = models.data.find((model) => model.id === id);
    const channels = routes.map(({ channel }) => channel).join();
    assert(channels === 'first-account,second-account', `${id} has the routes ${channels}`);
    const after = await callAdminApi(page, 'GET', '/config');
    assert(JSON.stringify(after.models) === JSON.stringify(before.models), 'entries of models were changed');
    assertNoProblems(window);
  });
  await check('vendor: a model that is typed in is saved', async () => {
    await openForm('openai-compatible');
    await dialog.getByLabel('Name').fill('own');
    await dialog.getByLabel('Address').fill('http://127.0.0.1:9/v1');
    await dialog.getByRole('button', { name: 'See its models' }).click();
    await dialog.getByLabel('Search the models').fill('large-model');
    await dialog.getByRole('button', { name: 'Add large-model' }).click();
    await dialog.getByLabel('Price, input').fill('1');
    await dialog.getByLabel('Price, output').fill('4');
    await dialog.getByLabel('Output tokens at most').fill('8192');
    await dialog.getByText('complete', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Save channel' }).click();
    await page.getByText('Channel own serves 1 model.').waitFor();
    const { models } = await callAdminApi(page, 'GET', '/config');
    const { routes } = models.find(({ id }) => id === 'own/large-model');
    assert(routes.length === 1 && routes[0].model === 'large-model', JSON.stringify(routes));
    assertNoProblems(window);
  });
  await check('vendor: with a configuration in the store, the key is named, not pasted', async () => {
    const isConfig = (url) => url.pathname === '/admin/v1/config';
    await page.route(isConfig, async (route) => {
      if (route.request().method() === 'PUT') return route.fulfill({ status: 400, json: { error: { code: 'invalid_request', message: 'This variable may not be named.', param: 'channel[9].credential' } } });
      const response = await route.fetch();
      return route.fulfill({ response, json: { ...await response.json(), kept_in: 'store' } });
    });
    window.allow('400');
    await openForm('openai');
    const place = dialog.getByLabel('Where is the key?');
    await place.locator('option[value=paste]').waitFor({ state: 'detached' });
    assert(await place.inputValue() === 'env', `the place is ${await place.inputValue()}`);
    await dialog.getByRole('textbox', { name: /^Name/ }).fill('named');
    await dialog.getByRole('textbox', { name: /^Environment variable/ }).fill('OPENAI_API_KEY');
    // Without the key there is nothing to ask the vendor with.
    await dialog.getByRole('button', { name: 'Type its models' }).click();
    await dialog.getByLabel('Search the models').fill('large-model');
    await dialog.getByRole('button', { name: 'Add large-model' }).click();
    // What was typed in stays if the account changes, and goes with the vendor, as does the key.
    await dialog.getByRole('textbox', { name: /^Key for a trial/ }).fill(KEY);
    await dialog.getByRole('button', { name: 'See its models' }).waitFor();
    assert(await dialog.getByRole('checkbox', { name: 'large-model' }).isChecked(), 'the model is gone');
    const [request] = await Promise.all([page.waitForRequest((sent) => sent.method() === 'PUT'), dialog.getByRole('button', { name: 'Save channel' }).click()]);
    const { channels } = request.postDataJSON();
    const saved = channels.find(({ name }) => name === 'named');
    assert(JSON.stringify(saved.credential) === '{"env":"OPENAI_API_KEY"}', JSON.stringify(saved));
    assert(!request.postData().includes(KEY), 'the key for a trial is saved');
    await dialog.locator('.field .problem', { hasText: 'may not be named' }).waitFor();
    await dialog.getByLabel(/^Vendor/).selectOption('sim');
    assert(await place.inputValue() === 'none', `the place is ${await place.inputValue()}`);
    assert(await dialog.getByRole('button', { name: 'See its models' }).isEnabled(), 'a vendor without a key cannot be asked');
    await dialog.getByLabel(/^Vendor/).selectOption('openai');
    assert(await dialog.getByRole('textbox', { name: /^Key for a trial/ }).inputValue() === '', 'the key is kept for another vendor');
    assert(!await dialog.getByRole('checkbox').count(), 'a model of another vendor is kept');
    await page.unroute(isConfig);
    window.allow();
    assertNoProblems(window);
  });
  await window.close();
}
