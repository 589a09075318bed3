// The statement of a wallet: a range of days with opening and closing balance, the totals of each month, and downloads.

import { html } from '../../preact.js';
import { get, withQuery } from '../../api.js';
import { count, credits } from '../../format.js';
import { useLoad } from '../../load.js';
import { refine } from '../../router.js';
import { Card, Empty, Facts, Field, Problem, Skeleton } from '../../ui/components.js';

const DAY = 86_400_000;
const two = (value) => String(value).padStart(2, '0');
const dayOf = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;

/** The start of a local day, or undefined if no day is given. */
const beginOf = (day) => (day ? new Date(`${day}T00:00:00`).getTime() : undefined);

const MOVES = [['top_up', 'Top-ups'], ['gift', 'Gifts'], ['debit', 'Debits'], ['refund', 'Refunds'], ['adjustment', 'Adjustments']];

function Month({ month }) {
  const moved = MOVES.filter(([name]) => month[`${name}_micro`] !== '0').map(([name, title]) => [title, credits(month[name])]);
  return html`<${Card} title=${month.month} pad=${false}>
    <div class="body"><${Facts} rows=${[['Opening balance', credits(month.opening.balance)], ...moved, ['Charged for calls', `${credits(month.charged)} for ${count(month.calls)} calls`], ['Closing balance', credits(month.closing.balance)]]} /></div>
    ${month.keys.length > 0 && html`<table aria-label=${`Keys in ${month.month}`}><thead><tr><th scope="col">Key</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Credits</th></tr></thead>
      <tbody>${month.keys.map((key) => html`<tr key=${key.key}><td>${key.key_name ?? html`<span class="mono">${key.key}</span>`}</td><td class="number">${count(key.calls)}</td><td class="number">${credits(key.charged)}</td></tr>`)}</tbody></table>`}
  <//>`;
}

export function Statement({ wallet, query }) {
  // By default the current month.
  const from = query.from ?? dayOf(new Date()).replace(/\d\d$/, '01');
  const to = query.to ?? dayOf(new Date());
  // The range includes the last day.
  const range = { from: beginOf(from), to: to && beginOf(to) + DAY };
  const { value, error, reload } = useLoad(() => get(`/wallets/${wallet.id}/statement`, { ...range, limit: 1 }), [wallet.id, from, to]);
  const file = (format) => `/admin/v1${withQuery(`/wallets/${wallet.id}/statement`, { ...range, format, limit: format === 'json' ? 500 : undefined })}`;
  return html`<div class="stack">
    <div class="row wrap bottom-aligned">
      <${Field} label="From"><input type="date" value=${from} max=${to} onChange=${(event) => refine({ from: event.target.value })} /><//>
      <${Field} label="To"><input type="date" value=${to} min=${from} onChange=${(event) => refine({ to: event.target.value })} /><//>
      <span class="grow"></span>
      <a class="button" href=${file('csv')} download=${`${wallet.name}-${from}-${to}.csv`}>CSV</a><a class="button" href=${file('json')} download=${`${wallet.name}-${from}-${to}.json`}>JSON</a>
    </div>
    <${Problem} error=${error} retry=${reload} />
    ${!value ? !error && html`<${Skeleton} lines=${6} />` : html`
      <${Card} title="Balance"><${Facts} rows=${[['Before the first day', `${credits(value.opening.balance)} credits`], ['After the last day', `${credits(value.closing.balance)} credits`]]} /><//>
      ${value.months?.length ? html`<div class="columns">${[...value.months].reverse().map((month) => html`<${Month} key=${month.month} month=${month} />`)}</div>`
        : html`<${Card}><${Empty} title="No entry in these days"><p>Choose other days, or top up the wallet.</p><//><//>`}`}
  </div>`;
}
