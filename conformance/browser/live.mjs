// Live updates, and what the console shows when their connection breaks.

import { assert, assertNoProblems } from './stage.mjs';
import { settled } from './window.mjs';

export async function live(stage, check) {
  if (!stage.serves('/events')) return;
  await check('live: calls appear without a reload', async () => {
    const window = await stage.open();
    const { page } = window;
    await page.goto(`${stage.origin}/#/overview`);
    await settled(page);
    const row = page.getByRole('table', { name: 'Calls' }).locator('tbody tr').first();
    const before = await row.getAttribute('data-key');
    // The customers of the demo make a call every few seconds.
    await page.waitForFunction((old) => document.querySelector('table[aria-label="Calls"] tbody tr')?.dataset.key !== old, before);
    assertNoProblems(window);
    await window.close();
  });
  await check('live: without events the page says so and fetches', async () => {
    const window = await stage.open();
    const { page } = window;
    window.allow('net::ERR_FAILED');
    await page.route('**/admin/v1/events*', (route) => route.abort());
    let fetched = 0;
    page.on('request', (request) => { if (request.url().includes('/admin/v1/calls')) fetched += 1; });
    await page.goto(`${stage.origin}/#/overview`);
    await page.getByText('Live events are interrupted').waitFor();
    await page.waitForFunction(() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/admin/v1/calls')).length >= 2);
    assert(fetched >= 2, 'the calls were fetched once');
    await page.unroute('**/admin/v1/events*');
    await page.getByText('Live events are interrupted').waitFor({ state: 'detached' });
    assertNoProblems(window);
    await window.close();
  });
}
