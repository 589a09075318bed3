// The stage of all checks: a signed-in window for each role, and ids of existing objects.

import { openWindow } from './window.mjs';

export const ROLES = ['viewer', 'support', 'operator', 'owner'];

/** Signs in with the demo's link, and creates a token and a session for each role. */
export async function prepare(browser, given) {
  const url = new URL(given.sign_in);
  const hosts = [url.host, new URL(given.public).host];
  const stage = { ...given, browser, origin: url.origin, hosts, states: {}, tokens: {} };
  stage.open = (options = {}) => openWindow(browser, { hosts, state: stage.states[options.role ?? 'owner'], ...options });
  const described = await (await fetch(`${url.origin}/openapi.json`)).json();
  /** Whether the gateway has this resource. Checks of missing resources are skipped. */
  stage.serves = (path) => Object.keys(described.paths).some((known) => known === `/admin/v1${path}` || known.startsWith(`/admin/v1${path}/`));
  const first = await openWindow(browser, { hosts });
  // The first request of a page asks for the session. Without a session the answer is 401.
  first.allow('401');
  await first.page.goto(given.sign_in);
  await first.page.waitForSelector('.shell');
  if (first.page.url().includes('code=')) throw new Error('the code stays in the address');
  stage.states.owner = await first.context.storageState();
  for (const role of ROLES) {
    const created = await callAdminApi(first.page, 'POST', '/tokens', { name: `test-${role}`, role });
    stage.tokens[role] = created.secret;
  }
  await first.close();
  for (const role of ROLES.slice(0, 3)) stage.states[role] = await signedIn(stage, stage.tokens[role]);
  return stage;
}

async function signedIn(stage, token) {
  const window = await openWindow(stage.browser, { hosts: stage.hosts });
  window.allow('401');
  await signIn(stage, window.page, token);
  const state = await window.context.storageState();
  await window.close();
  return state;
}

/** Signs in with a token, by the form. */
export async function signIn(stage, page, token) {
  await page.goto(stage.origin);
  await page.getByLabel('Admin token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForSelector('.shell');
}

/** Sends a request to the admin API with the session of the page. */
export async function callAdminApi(page, method, path, body) {
  return page.evaluate(async ([method, path, body]) => {
    const session = await (await fetch('/admin/v1/session')).json();
    const headers = { 'content-type': 'application/json', 'x-csrf-token': session.csrf };
    const answer = await fetch(`/admin/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return text ? JSON.parse(text) : null;
  }, [method, path, body]);
}

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

/** Fails if the window has recorded problems, and lists them. */
export function assertNoProblems(window) {
  const wrong = window.wrong();
  assert(!wrong.length, wrong.join('; '));
}
