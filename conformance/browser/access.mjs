// Signing in and out, and what each role can do.

import { assert, assertNoProblems, ROLES, signIn } from './stage.mjs';
import { openWindow, settled } from './window.mjs';

/** The page of a button, its name, the lowest role that sees it, and the resource that it needs. */
const BUTTONS = [
  ['wallets', 'Create wallet', 'operator', '/wallets'], ['keys', 'Create key', 'operator', '/keys'], ['channels', 'Add channel', 'owner', '/config'],
  ['settings', 'Create token', 'owner', '/tokens'], ['alerts', 'Add webhook', 'operator', '/alerts'], ['playground', 'Send', 'operator', '/models'],
];

/** An address that opens a form, its title, the lowest role that may use it, and the resource that it needs. */
const FORMS = [
  ['wallets?create=1', 'Create a wallet', 'operator', '/wallets'], ['keys?create=1', 'Create a key', 'operator', '/keys'],
  ['channels?add=1', 'Add a channel', 'owner', '/config'], ['settings?tab=tokens&create=1', 'Create an admin token', 'owner', '/tokens'],
];

export async function access(stage, check) {
  await check('access: a wrong token is refused with a sentence', async () => {
    const window = await openWindow(stage.browser, { hosts: stage.hosts });
    window.allow('401');
    await window.page.goto(stage.origin);
    await window.page.getByLabel('Admin token').fill('wrong');
    await window.page.getByRole('button', { name: 'Sign in' }).click();
    await window.page.locator('.problem-box').waitFor();
    assert(!await window.page.locator('.shell').count(), 'the console opens with a wrong token');
    assertNoProblems(window);
    await window.close();
  });
  await check('access: a sign-in link works once', async () => {
    const window = await openWindow(stage.browser, { hosts: stage.hosts });
    window.allow('401');
    await window.page.goto(stage.sign_in);
    const told = await window.page.locator('.problem-box').textContent();
    assert(told.includes('was used already') && told.includes('tollgate token sign-in-link'), told);
    assert(!await window.page.locator('.shell').count(), 'the link opens a second session');
    await window.close();
  });
  await check('access: signing out ends the session', async () => {
    const window = await openWindow(stage.browser, { hosts: stage.hosts });
    window.allow('401');
    await signIn(stage, window.page, stage.tokens.viewer);
    await window.page.evaluate(() => sessionStorage.setItem('payer', 'key_of_another_user'));
    await window.page.getByRole('button', { name: 'viewer' }).click();
    await window.page.getByRole('button', { name: 'Sign out' }).click();
    await window.page.getByLabel('Admin token').waitFor();
    assert(await window.page.evaluate(() => sessionStorage.length) === 0, 'the browser tab keeps the key that pays');
    await window.page.reload();
    await window.page.getByLabel('Admin token').waitFor();
    assertNoProblems(window);
    await window.close();
  });
  await check('access: the cookie is out of reach of scripts', async () => {
    const window = await stage.open();
    await window.page.goto(stage.origin);
    await window.page.waitForSelector('.shell');
    const cookie = (await window.context.cookies()).find(({ name }) => name === 'tollgate_admin');
    assert(cookie?.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
    assert(await window.page.evaluate(() => document.cookie) === '', 'a script sees a cookie');
    await window.close();
  });
  for (const role of ROLES) {
    await check(`access: a ${role} sees what a ${role} can do`, async () => {
      const window = await stage.open({ role });
      for (const [page, name, least] of BUTTONS.filter(([, , , resource]) => stage.serves(resource))) {
        await window.page.goto(`${stage.origin}/#/${page}`);
        await settled(window.page);
        const shown = await window.page.getByRole('button', { name, exact: true }).count() > 0;
        const wanted = ROLES.indexOf(role) >= ROLES.indexOf(least);
        assert(shown === wanted, `${page}: “${name}” is ${shown ? '' : 'not '}there`);
      }
      for (const [address, title, least] of FORMS.filter(([, , , resource]) => stage.serves(resource))) {
        await window.page.goto('about:blank');
        await window.page.goto(`${stage.origin}/#/${address}`);
        await settled(window.page);
        if (ROLES.indexOf(role) >= ROLES.indexOf(least)) await window.page.getByRole('dialog', { name: title }).waitFor();
        else assert(!await window.page.locator('dialog').count(), `${address} opens a form`);
      }
      assertNoProblems(window);
      await window.close();
    });
  }
}
