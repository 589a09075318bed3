// Fills the page: the gateway's URL, the visitor's key, balance, models and playground.

import { call, hasKey, setKey } from './client.js';
import { byId, element } from './dom.js';
import { enableSearch, loadModels } from './models.js';
import { closePlayground, openPlayground } from './playground.js';

/** Writes a value into all placeholders of this name in the snippets. */
function fill(name, value) {
  for (const place of document.querySelectorAll(`[data-fill="${name}"]`)) place.textContent = value;
}

function choose(id) {
  fill('model', id);
  byId('play-model').value = id;
  byId('playground').scrollIntoView();
  byId('prompt').focus({ preventScroll: true });
}

async function showBalance() {
  if (!hasKey()) return;
  const { available, key, wallet } = await (await call('/v1/balance')).json();
  const figures = [['Available', available], ['Spent with this key', key.usage]];
  if (key.limit !== null) figures.push(['Left of its limit', key.limit_remaining]);
  if (wallet.frozen !== '0') figures.push(['Held by open calls', wallet.frozen]);
  byId('balance').replaceChildren(...figures.map(([name, credits]) =>
    element('div', {}, element('dt', {}, name), element('dd', {}, `${credits} `, element('small', {}, 'credits')))));
  byId('balance').hidden = false;
}

function say(problem) {
  byId('key-problem').textContent = problem;
  byId('key-problem').hidden = !problem;
}

/** Loads the data for the key. A refused key is removed. */
async function useKey() {
  say('');
  try {
    const [models] = await Promise.all([loadModels(choose), showBalance()]);
    enableSearch();
    openPlayground(models, () => showBalance().catch(() => {}));
    const first = models.find((model) => model.kind === 'text') ?? models[0];
    if (first) fill('model', first.id);
    byId('forget-key').hidden = false;
  } catch (error) {
    if (error.code === 'invalid_api_key') setKey('');
    say(error.advice || error.message);
  }
}

function forgetKey() {
  setKey('');
  location.reload();
}

function addCopyButtons() {
  // Browsers offer the clipboard only to secure origins.
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll('.snippets pre')) {
    const button = element('button', { class: 'button small copy', type: 'button' }, 'Copy');
    button.onclick = async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    };
    block.replaceWith(element('div', { class: 'code' }, block.cloneNode(true), button));
  }
}

function enableThemes() {
  const button = byId('theme');
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const name = () => { button.textContent = isDark() ? 'Light' : 'Dark'; };
  const kept = localStorage.getItem('tollgate-theme');
  if (kept) root.dataset.theme = kept;
  button.onclick = () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    localStorage.setItem('tollgate-theme', root.dataset.theme);
    name();
  };
  button.hidden = false;
  name();
}

fill('url', location.origin);
enableThemes();
addCopyButtons();
enableSearch();
closePlayground();
byId('key').disabled = false;
byId('use-key').disabled = false;
byId('forget-key').onclick = forgetKey;
byId('key-form').onsubmit = (event) => {
  event.preventDefault();
  const secret = byId('key').value.trim();
  byId('key').value = '';
  if (!secret) return;
  setKey(secret);
  useKey();
};
if (hasKey()) useKey();
