// The page for callers: light and dark, wide and narrow, without a key and with one, and without JavaScript.

import { assert, assertNoProblems } from './stage.mjs';
import { accessibility, overflow } from './window.mjs';

async function assertNoFindings(window) {
  assertNoProblems(window);
  const found = [...await overflow(window.page), ...await accessibility(window.page)];
  assert(!found.length, found.join('; '));
}

export async function callers(stage, check) {
  for (const theme of ['light', 'dark']) {
    for (const width of ['wide', 'narrow']) {
      const window = await stage.open({ theme, width, role: 'nobody' });
      const { page } = window;
      await check(`callers: the page ${theme} ${width}`, async () => {
        await page.goto(`${stage.public}/`);
        await page.getByText(/^\d+ of \d+$/).waitFor();
        await page.screenshot({ path: `${stage.pictures}/callers-${theme}-${width}.png`, fullPage: true });
        await assertNoFindings(window);
      });
      await check(`callers: with a key ${theme} ${width}`, async () => {
        await page.goto(`${stage.public}/`);
        await page.getByLabel('API key').fill(stage.key);
        await page.getByRole('button', { name: 'Use key' }).click();
        await page.getByText('Available', { exact: true }).waitFor();
        await page.getByRole('button', { name: 'Use sim/mini' }).click();
        await page.getByLabel('Message').fill('Say hello.');
        await page.getByRole('button', { name: 'Send' }).click();
        await page.waitForFunction(() => document.querySelectorAll('#turns > *').length > 1 && document.getElementById('turns').lastElementChild.textContent.trim().length > 0);
        await page.screenshot({ path: `${stage.pictures}/callers-key-${theme}-${width}.png`, fullPage: true });
        assert(!page.url().includes(stage.key) && !(await page.content()).includes(stage.key), 'the key is shown');
        await assertNoFindings(window);
      });
      await window.close();
    }
  }
  await check('callers: a wrong key is refused with advice, and forgotten', async () => {
    const window = await stage.open({ role: 'nobody' });
    window.allow('401');
    await window.page.goto(`${stage.public}/`);
    await window.page.getByLabel('API key').fill('sk-tg-wrong');
    await window.page.getByRole('button', { name: 'Use key' }).click();
    await window.page.locator('#key-problem').waitFor();
    await window.page.reload();
    await window.page.getByText(/^\d+ of \d+$/).waitFor();
    assert(await window.page.locator('#key-problem').isHidden(), 'the wrong key is used again');
    assertNoProblems(window);
    await window.close();
  });
  await check('callers: without JavaScript there are models, prices, snippets and errors', async () => {
    const context = await stage.browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${stage.public}/`);
    const shown = await page.locator('body').innerText();
    for (const text of ['sim/chat', 'input / M tokens', '/v1/chat/completions', 'insufficient_quota']) assert(shown.includes(text), `${text} is not on the page`);
    await context.close();
  });
}
