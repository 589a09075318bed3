// Every page for every role, light and dark, wide and narrow: no errors, no violations of the content security policy,
// no other hosts, nothing wider than the window, and no serious findings of axe. Keeps screenshots for review.

import { callAdminApi, assert, assertNoProblems, ROLES } from './stage.mjs';
import { accessibility, overflow, settled } from './window.mjs';

/** The pages by name: the resource that each shows, its address, and a text that appears when it is loaded. */
async function pagesOf(stage) {
  const window = await stage.open();
  await window.page.goto(stage.origin);
  await window.page.waitForSelector('.shell');
  const first = async (resource, query) => (stage.serves(resource) ? (await callAdminApi(window.page, 'GET', `${resource}${query}`)).data[0] : null);
  const [wallet, key, call, task, model, channel] = [
    await first('/wallets', '?q=web-shop'), await first('/keys', '?q=production'), await first('/calls', '?status=200&limit=1'),
    await first('/tasks', '?limit=1'), await first('/models', ''), await first('/channels', ''),
  ];
  await window.close();
  const all = {
    overview: ['/usage', 'overview', 'Requests'], requests: ['/calls', 'requests', 'Status'], request: ['/calls', `requests/${call?.request_id}`, 'Where the time went'],
    wallets: ['/wallets', 'wallets', 'web-shop'], wallet: ['/wallets', `wallets/${wallet?.id}`, 'Entries'], 'wallet-statement': ['/wallets', `wallets/${wallet?.id}?tab=statement`, 'Closing balance'],
    'wallet-keys': ['/wallets', `wallets/${wallet?.id}?tab=keys`, 'production'], keys: ['/keys', 'keys', 'production'], key: ['/keys', `keys/${key?.id}`, 'Limits'],
    models: ['/models', 'models', model?.id], model: ['/models', `models/${model?.id}`, 'Routes'], channels: ['/channels', 'channels', channel?.name],
    tasks: ['/tasks', 'tasks', task?.model], task: ['/tasks', `tasks/${task?.id}`, 'Result'], playground: ['/models', 'playground', null],
    alerts: ['/alerts', 'alerts', 'Who is told'], audit: ['/audit', 'audit', 'wallet'], settings: ['/tokens', 'settings', null], configuration: ['/config', 'settings?tab=configuration', 'version'],
  };
  return Object.entries(all).filter(([, [resource]]) => stage.serves(resource)).map(([name, [, address, text]]) => [name, address, text]);
}

export async function pageChecks(stage, check) {
  let pages = [];
  await check('looks: there is something of each kind to show', async () => { pages = await pagesOf(stage); });
  const kinds = ['light', 'dark'].flatMap((theme) => ['wide', 'narrow'].map((width) => ({ theme, width, role: 'owner' })));
  const others = ROLES.slice(0, 3).map((role, number) => ({ theme: number % 2 ? 'dark' : 'light', width: number % 2 ? 'narrow' : 'wide', role }));
  for (const kind of [...kinds, ...others]) {
    const window = await stage.open(kind);
    for (const [name, address, text] of pages) {
      await check(`looks: ${name} ${kind.theme} ${kind.width} as ${kind.role}`, async () => {
        await window.page.goto(`${stage.origin}/#/${address}`);
        await settled(window.page);
        if (text) await window.page.getByText(text).first().waitFor({ state: 'attached' });
        await window.page.screenshot({ path: `${stage.pictures}/${name}-${kind.theme}-${kind.width}-${kind.role}.png` });
        const problem = await window.page.locator('.problem-box').allTextContents();
        assert(name === 'channels' || name === 'request' || !problem.length, `the page shows a problem: ${problem.join('; ')}`);
        assertNoProblems(window);
        const found = [...await overflow(window.page), ...await accessibility(window.page)];
        assert(!found.length, found.join('; '));
      });
    }
    await window.close();
  }
}
