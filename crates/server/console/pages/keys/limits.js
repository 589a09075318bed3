// The form of a key's limits, for a new key and for a change.

import { html } from '../../preact.js';
import { Field } from '../../ui/components.js';

/** The fields of the form. `row` is the current key, or nothing for a new key. */
export function LimitFields({ row, error }) {
  const problem = (param) => error?.param?.startsWith(param) && error.message;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return html`<div class="form">
    <${Field} label="Spending limit" hint="Credits in all; empty: none." problem=${problem('limit')}><input name="limit" inputmode="decimal" value=${row?.limit ?? ''} /><//>
    <${Field} label="Limit per window" hint="Credits in each calendar window." problem=${problem('window')}>
      <div class="row"><input name="window_amount" inputmode="decimal" value=${row?.window?.amount ?? ''} /><select name="window_per" aria-label="Window" value=${row?.window?.per ?? 'day'}><option value="day">a day</option><option value="week">a week</option><option value="month">a month</option></select></div><//>
    <${Field} label="Time zone of the window" problem=${problem('window.time_zone')}><input name="window_zone" value=${row?.window?.time_zone ?? zone} /><//>
    <${Field} label="Models" hint="Ids or maker/*, with commas; empty: all." problem=${problem('models')}><input name="models" value=${row?.models?.join(', ') ?? ''} placeholder="maker/*" /><//>
    <${Field} label="Requests per minute" problem=${problem('rpm')}><input name="rpm" inputmode="numeric" value=${row?.rpm_limit ?? ''} /><//>
    <${Field} label="Tokens per minute" problem=${problem('tpm')}><input name="tpm" inputmode="numeric" value=${row?.tpm_limit ?? ''} /><//>
    <${Field} label="Calls at a time" problem=${problem('concurrency')}><input name="concurrency" inputmode="numeric" value=${row?.concurrency_limit ?? ''} /><//>
    <${Field} label="Expires" problem=${problem('expires_at')}><input name="expires_at" type="datetime-local" value=${row?.expires_at ? new Date(row.expires_at - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16) : ''} /><//>
    <${Field} label="Tags" fullWidth hint="Words with commas, for search and reports." problem=${problem('tags')}><input name="tags" value=${row?.tags?.join(', ') ?? ''} /><//>
  </div>`;
}

const words = (text) => text.split(',').map((word) => word.trim()).filter(Boolean);

/** The body of the request. Empty fields are null, so that a change removes the limit. */
export function limitsOf(form) {
  const text = (name) => form.get(name).trim() || null;
  const number = (name) => (text(name) === null ? null : Number(text(name)));
  return {
    limit: text('limit'),
    window: text('window_amount') && { amount: text('window_amount'), per: form.get('window_per'), time_zone: text('window_zone') ?? undefined },
    models: words(form.get('models')),
    rpm: number('rpm'), tpm: number('tpm'), concurrency: number('concurrency'),
    expires_at: text('expires_at') && new Date(form.get('expires_at')).getTime(),
    tags: words(form.get('tags')),
  };
}
