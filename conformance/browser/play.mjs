// The playground: every dialect, the raw events, the headers, the code snippets, and a repeated call.

import { assert, assertNoProblems } from './stage.mjs';
import { settled } from './window.mjs';

const DIALECTS = ['Chat completions', 'Responses', 'Messages', 'Generate Content', 'Interactions'];

export async function play(stage, check) {
  if (!stage.serves('/play') || !stage.serves('/models')) return;
  const window = await stage.open();
  const { page } = window;
  await check('play: nobody pays who was not chosen, and the choice is kept', async () => {
    await page.goto(`${stage.origin}/#/playground?model=sim/chat`);
    await settled(page);
    // The customers' keys may be out of credits. The demo's own key is not.
    const payer = page.getByLabel('Pays').locator('option', { hasText: '(demo)' }).first();
    await payer.waitFor({ state: 'attached' });
    assert(await page.getByLabel('Pays').inputValue() === '', 'a key was chosen for the user');
    await page.getByText('Choose the key that pays').first().waitFor();
    assert(await page.getByRole('button', { name: 'Send' }).isDisabled(), 'a call can be sent without a key');
    await page.getByLabel('Pays').selectOption(await payer.getAttribute('value'));
    await page.reload();
    await page.waitForFunction((id) => document.querySelector('select[required]')?.value === id, await payer.getAttribute('value'));
    assertNoProblems(window);
  });
  for (const dialect of DIALECTS) {
    await check(`play: ${dialect} streams an answer`, async () => {
      // Opening the same address again would keep the page and its last tab.
      await page.goto('about:blank');
      await page.goto(`${stage.origin}/#/playground?model=sim/chat`);
      await settled(page);
      await page.getByLabel('Endpoint').first().selectOption({ label: dialect });
      await page.locator('option', { hasText: 'sim/chat' }).first().waitFor({ state: 'attached' });
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('ended after').waitFor();
      const answer = await page.locator('.answer').first().textContent();
      assert(answer.trim().length > 0, 'the answer is empty');
      await page.getByText('credits', { exact: false }).first().waitFor();
      await page.getByRole('tab', { name: 'Events' }).click();
      assert(await page.locator('.events > div').count() > 1, 'there is one event at most');
      await page.getByRole('tab', { name: 'Headers' }).click();
      await page.getByText('x-request-id').waitFor();
      await page.getByRole('tab', { name: 'Code' }).click();
      await page.getByText('curl').first().waitFor();
      assertNoProblems(window);
    });
  }
  await check('play: while a call runs, Ctrl-Enter sends no other', async () => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/playground?model=sim/chat`);
    await settled(page);
    let sent = 0;
    let answer;
    const held = new Promise((resolve) => { answer = resolve; });
    await page.route('**/admin/v1/play/**', async (route) => { sent += 1; await held; await route.continue(); });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    await page.getByLabel('Prompt').press('Control+Enter');
    answer();
    await page.getByText('ended after').waitFor();
    assert(sent === 1, `${sent} calls were sent`);
    await page.unroute('**/admin/v1/play/**');
    assertNoProblems(window);
  });
  await check('play: a picture is shown', async () => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/playground`);
    await settled(page);
    await page.getByLabel('Endpoint').first().selectOption({ label: 'Images' });
    await page.getByRole('button', { name: 'Send' }).click();
    const picture = page.locator('.answer img');
    await picture.waitFor();
    await page.waitForFunction(() => document.querySelector('.answer img').naturalWidth > 0);
    assertNoProblems(window);
  });
  await check('play: speech is played', async () => {
    await page.getByLabel('Endpoint').first().selectOption({ label: 'Speech' });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.answer audio').waitFor();
    assertNoProblems(window);
  });
  await check('play: a film is made and plays in place', async () => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/playground?dialect=video&model=sim/omni`);
    await settled(page);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.answer video').waitFor();
    const film = await fetch(await page.locator('.answer video').getAttribute('src'), { method: 'HEAD' });
    assert(film.status === 200 && film.headers.get('content-type') === 'video/mp4', `the film answers ${film.status}`);
    assertNoProblems(window);
  });
  await check('play: what the gateway had to drop is named', async () => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/playground?model=sim/chat`);
    await settled(page);
    // The demo's upstream speaks every dialect, so nothing is dropped there.
    await page.route('**/admin/v1/play/**', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'x-dropped-params': 'top_k, metadata.user_id' } });
    });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.chip', { hasText: 'metadata.user_id' }).waitFor();
    await page.unroute('**/admin/v1/play/**');
    assertNoProblems(window);
  });
  await check('play: a realtime session by text, with its events, its end and its price', async () => {
    await page.goto('about:blank');
    await page.goto(`${stage.origin}/#/playground?dialect=realtime`);
    await settled(page);
    await page.getByLabel('Answers').selectOption('text');
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByLabel('Say something').fill('Good morning');
    await page.getByRole('button', { name: 'Say it' }).click();
    await page.locator('.talk .model', { hasText: 'Good morning' }).waitFor();
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.locator('.events', { hasText: 'session.created' }).waitFor();
    await page.locator('.events', { hasText: 'response.done' }).waitFor();
    await page.getByRole('tab', { name: 'Code' }).click();
    await page.getByText('websocat').first().waitFor();
    await page.getByRole('tab', { name: 'Conversation' }).click();
    await page.getByRole('button', { name: 'Disconnect' }).click();
    await page.getByText('The session ended with code 1000').waitFor();
    await page.getByRole('link', { name: 'explained' }).waitFor();
    assertNoProblems(window);
  });
  await check('play: an earlier call is sent again', async () => {
    await page.goto(`${stage.origin}/#/requests?status=2xx&endpoint=/v1/messages`);
    await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').first().click();
    await page.getByRole('link', { name: 'Open in playground' }).click();
    await page.waitForFunction(() => document.querySelector('select')?.value === 'messages');
    assertNoProblems(window);
  });
  await window.close();
}
