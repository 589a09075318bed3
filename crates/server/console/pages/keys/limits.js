// The form of a key's limits, for a new key and for a change.

import { html } from '../../preact.js';
import { when } from '../../format.js';
import { Field } from '../../ui/components.js';

const words = (text) => text.split(',').map((word) => word.trim()).filter(Boolean);

/** A problem of one field, which the form shows like a refusal of the admin API. */
const wrong = (param, message) => Object.assign(new Error(message), { param });

/** A limit as a number. A text that is not one must not be sent, because it would lift the limit. */
const number = (title) => (text, param) => {
  if (!text) return null;
  if (!/^\d{1,10}$/.test(text)) throw wrong(param, `${title} must be digits only, such as 1000.`);
  return Number(text);
};

const amount = (text, param) => {
  if (!text) return null;
  if (!/^\d{1,13}(\.\d{1,6})?$/.test(text)) throw wrong(param, 'An amount is digits with at most six decimals, such as 1000 or 12.5.');
  return text;
};

/** The members of the request with the functions that read their fields. An empty field is null: there is no limit. */
const MEMBERS = {
  limit: amount, rpm: number('Requests per minute'), tpm: number('Tokens per minute'), concurrency: number('Calls at a time'),
  models: words, expires_at: (text) => (text ? new Date(text).getTime() : null), tags: words,
};

/** The texts of the fields for the current key, or for a new one. */
function textsOf(row) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return {
    limit: row?.limit ?? '', rpm: String(row?.rpm_limit ?? ''), tpm: String(row?.tpm_limit ?? ''), concurrency: String(row?.concurrency_limit ?? ''),
    models: row?.models?.join(', ') ?? '', tags: row?.tags?.join(', ') ?? '', expires_at: row?.expires_at ? when(row.expires_at).replace(' ', 'T') : '',
    window_amount: row?.window?.amount ?? '', window_per: row?.window?.per ?? 'day', window_zone: row?.window?.time_zone ?? zone,
  };
}

/** The fields of the form. `row` is the current key, or nothing for a new key. */
export function LimitFields({ row, error }) {
  const problem = (param) => error?.param?.startsWith(param) && error.message;
  const texts = textsOf(row);
  const input = (name, more) => html`<input name=${name} defaultValue=${texts[name]} ...${more} />`;
  const digits = { inputmode: 'numeric' };
  const per = (value, title) => html`<option value=${value} selected=${texts.window_per === value}>${title}</option>`;
  return html`<div class="form">
    <${Field} label="Spending limit" hint="Credits in all; empty: none." problem=${problem('limit')}>${input('limit', { inputmode: 'decimal' })}<//>
    <${Field} label="Limit per window" hint="Credits in each calendar window." problem=${problem('window') && !problem('window.time_zone') && error.message}>
      <div class="row">${input('window_amount', { inputmode: 'decimal' })}<select name="window_per" aria-label="Window">${per('day', 'a day')}${per('week', 'a week')}${per('month', 'a month')}</select></div><//>
    <${Field} label="Time zone of the window" problem=${problem('window.time_zone')}>${input('window_zone')}<//>
    <${Field} label="Models" hint="Ids or maker/*, with commas; empty: all." problem=${problem('models')}>${input('models', { placeholder: 'maker/*' })}<//>
    <${Field} label="Requests per minute" problem=${problem('rpm')}>${input('rpm', digits)}<//>
    <${Field} label="Tokens per minute" problem=${problem('tpm')}>${input('tpm', digits)}<//>
    <${Field} label="Calls at a time" problem=${problem('concurrency')}>${input('concurrency', digits)}<//>
    <${Field} label="Expires" hint="In your time zone." problem=${problem('expires_at')}>${input('expires_at', { type: 'datetime-local', step: row?.expires_at % 60_000 ? 1 : 60 })}<//>
    <${Field} label="Tags" fullWidth hint="Words with commas, to find keys by." problem=${problem('tags')}>${input('tags')}<//>
  </div>`;
}

/** The window that the fields describe, or null. */
function windowOf(text) {
  const limit = amount(text('window_amount'), 'window.amount');
  return limit && { amount: limit, per: text('window_per'), time_zone: text('window_zone') || undefined };
}

/** The members that differ from those of the current key, or from those of a key without limits. */
export function limitsOf(form, row) {
  const before = textsOf(row);
  const text = (name) => form.get(name).trim();
  const differ = (one, other) => JSON.stringify(one) !== JSON.stringify(other);
  const changes = {};
  for (const [name, read] of Object.entries(MEMBERS)) {
    const value = read(text(name), name);
    if (differ(value, read(before[name], name))) changes[name] = value;
  }
  const window = windowOf(text);
  if (differ(window, windowOf((name) => before[name]))) changes.window = window;
  return changes;
}
