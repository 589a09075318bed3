// The statement of a wallet: a range of days with opening and closing balance, the totals of each month, and downloads.

import { html, useState } from '../../preact.js';
import { get, withQuery } from '../../api.js';
import { count, credits, dayInUtc } from '../../format.js';
import { useLoad } from '../../load.js';
import { refine } from '../../router.js';
import { Button, Card, Empty, Facts, Field, Problem, Skeleton } from '../../ui/components.js';

const DAY = 86_400_000;

/** The start of a day in UTC, because the months of a statement and the days of a balance are those of UTC. */
const beginOf = (day) => Date.parse(`${day}T00:00:00Z`);

const MOVES = [['top_up', 'Top-ups'], ['gift', 'Gifts'], ['debit', 'Debits'], ['refund', 'Refunds'], ['adjustment', 'Adjustments']];

function Month({ month }) {
  const moved = MOVES.filter(([name]) => month[`${name}_micro`] !== '0').map(([name, title]) => [title, credits(month[name])]);
  return html`<${Card} title=${month.month} pad=${false}>
    <div class="body"><${Facts} rows=${[['Opening balance', credits(month.opening.balance)], ...moved, ['Charged for calls', `${credits(month.charged)} for ${count(month.calls)} calls`], ['Closing balance', credits(month.closing.balance)]]} /></div>
    ${month.keys.length > 0 && html`<table aria-label=${`Keys in ${month.month}`}><thead><tr><th scope="col">Key</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Credits</th></tr></thead>
      <tbody>${month.keys.map((key) => html`<tr key=${key.key}><td>${key.key_name ?? html`<span class="mono">${key.key}</span>`}</td><td class="number">${count(key.calls)}</td><td class="number">${credits(key.charged)}</td></tr>`)}</tbody></table>`}
  <//>`;
}

/** The statement with the entries of all pages. Entries that are posted while it is fetched are left out. */
async function fetchWhole(path, range, onCount) {
  const { next_cursor: second, ...whole } = await get(path, { ...range, limit: 500 });
  for (let cursor = second; cursor;) {
    onCount(whole.data.length);
    const page = await get(path, { ...range, limit: 500, cursor });
    whole.data.push(...page.data);
    cursor = page.next_cursor;
  }
  const last = whole.data.findLastIndex(({ at }) => at <= whole.closing.at);
  return { ...whole, data: whole.data.slice(0, last + 1) };
}

function saveJson(name, value) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** Fetches the whole statement page by page, then saves it as a file. */
function JsonButton({ path, range, name }) {
  const [state, setState] = useState({});
  const save = async () => {
    setState({ count: 0 });
    try {
      saveJson(name, await fetchWhole(path, range, (number) => setState({ count: number })));
      setState({});
    } catch (error) {
      setState({ error });
    }
  };
  const busy = state.count !== undefined;
  return html`<${Button} busy=${busy} onClick=${save}>${busy ? `${count(state.count)} entries…` : 'JSON'}<//><${Problem} error=${state.error} />`;
}

/** Balances and months of a range. */
function Figures({ wallet, path, range }) {
  // The balances change with each entry.
  const { value, error, reload } = useLoad(() => get(path, { ...range, limit: 1 }), [path, wallet.balance_micro, wallet.gift_balance_micro, wallet.credit_used_micro]);
  return html`<${Problem} error=${error} retry=${reload} />
    ${!value ? !error && html`<${Skeleton} lines=${6} />` : html`
      <${Card} title="Balance"><${Facts} rows=${[['Before the first day', `${credits(value.opening.balance)} credits`], ['After the last day', `${credits(value.closing.balance)} credits`]]} /><//>
      ${value.months?.length ? html`<div class="columns">${[...value.months].reverse().map((month) => html`<${Month} key=${month.month} month=${month} />`)}</div>`
        : html`<${Card}><${Empty} title="No entry in these days"><p>Choose other days, or top up the wallet.</p><//><//>`}`}`;
}

export function Statement({ wallet, query }) {
  const to = query.to ?? dayInUtc(Date.now());
  // By default from the first day of the month.
  const from = query.from ?? to.replace(/\d\d$/, '01');
  // The range includes the last day.
  const range = { from: beginOf(from), to: beginOf(to) + DAY };
  const isRange = range.from < range.to;
  const path = `/wallets/${wallet.id}/statement`;
  const name = `${wallet.name}-${from}-${to}`;
  return html`<div class="stack">
    <div class="row wrap bottom-aligned">
      <${Field} label="From"><input type="date" value=${from} max=${to} onChange=${(event) => refine({ from: event.target.value })} /><//>
      <${Field} label="To"><input type="date" value=${to} min=${from} onChange=${(event) => refine({ to: event.target.value })} /><//>
      <span class="grow"></span>
      ${isRange && html`<a class="button" href=${`/admin/v1${withQuery(path, { ...range, format: 'csv' })}`} download=${`${name}.csv`}>CSV</a><${JsonButton} key=${name} path=${path} range=${range} name=${`${name}.json`} />`}
    </div>
    <p class="muted">Days and months begin at midnight UTC.</p>
    ${isRange ? html`<${Figures} key=${name} wallet=${wallet} path=${path} range=${range} />` : html`<${Problem} error=${{ message: 'The first day is after the last one.' }} />`}
  </div>`;
}
