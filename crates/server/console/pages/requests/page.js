// Requests: search in the journal, and the details of one call.

import { html, useEffect, useMemo, useState } from '../../preact.js';
import { useList, useLive } from '../../load.js';
import { when } from '../../format.js';
import { refine } from '../../router.js';
import { Button, Card, Code, Empty } from '../../ui/components.js';
import { CallTable } from '../../ui/call-table.js';
import { Call } from './call.js';

const FILTERS = { wallet: 'Wallet', key: 'Key', model: 'Model', channel: 'Channel', endpoint: 'Endpoint' };
const HOUR = 3_600_000;
const SPANS = { '1h': ['Last hour', HOUR], '24h': ['Last 24 hours', 24 * HOUR], '7d': ['Last 7 days', 168 * HOUR], '30d': ['Last 30 days', 720 * HOUR] };
/** The maximum number of live rows above the fetched ones. */
const NEW_CALLS_MAX = 200;
const STATUSES = [['', 'Any status'], ['2xx', 'Answered'], ['4xx', 'Refused (4xx)'], ['5xx', 'Failed (5xx)'], ['error', 'Refused or failed']];

function Filters({ query }) {
  const [text, setText] = useState(query.q ?? '');
  const submit = (event) => { event.preventDefault(); refine({ q: text.trim() }); };
  return html`<form class="filters" onSubmit=${submit}>
    <input class="search" type="search" value=${text} onInput=${(event) => setText(event.target.value)} placeholder="Request id, model or code" aria-label="Search calls" />
    <select aria-label="Status" value=${query.status ?? ''} onChange=${(event) => refine({ status: event.target.value })}>
      ${STATUSES.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}
    </select>
    <select aria-label="Time" value=${query.span ?? ''} onChange=${(event) => refine({ span: event.target.value, from: undefined, to: undefined })}>
      <option value="">${query.from ? 'Chosen time' : 'Any time'}</option>${Object.entries(SPANS).map(([id, [title]]) => html`<option key=${id} value=${id}>${title}</option>`)}
    </select>
    ${query.from && html`<span class="chip">${when(Number(query.from))} to ${query.to ? when(Number(query.to)) : 'now'}<button type="button" aria-label="Remove the time" onClick=${() => refine({ from: undefined, to: undefined })}>×</button></span>`}
    ${Object.entries(FILTERS).filter(([name]) => query[name]).map(([name, title]) => html`
      <span key=${name} class="chip">${title}: ${query[name]}<button type="button" aria-label=${`Remove the filter ${title}`} onClick=${() => refine({ [name]: undefined })}>×</button></span>`)}
    <${AddFilter} query=${query} />
  </form>`;
}

/** The control that adds a filter. */
function AddFilter({ query }) {
  const [name, setName] = useState('');
  const free = Object.entries(FILTERS).filter(([id]) => !query[id]);
  if (!free.length) return null;
  if (!name) {
    return html`<select aria-label="Add a filter" value="" onChange=${(event) => setName(event.target.value)}>
      <option value="">Add a filter…</option>${free.map(([id, title]) => html`<option key=${id} value=${id}>${title}</option>`)}</select>`;
  }
  const set = (event) => {
    if (event.key === 'Enter') { event.preventDefault(); refine({ [name]: event.target.value.trim() }); setName(''); }
    if (event.key === 'Escape') setName('');
  };
  return html`<input autofocus placeholder=${`${FILTERS[name]}, then Enter`} aria-label=${FILTERS[name]} onKeyDown=${set} onBlur=${() => setName('')} />`;
}

/** Without a filter, live events extend the list. With a filter, only the gateway knows which calls match. */
function List({ query }) {
  const { q, status, wallet, key, model, channel, endpoint, from, to, span } = query;
  const since = useMemo(() => (SPANS[span] ? Date.now() - SPANS[span][1] : from), [span, from]);
  const filter = { q, status, wallet, key, model, channel, endpoint, from: since, to };
  const list = useList('/calls', filter);
  const [newCalls, setNewCalls] = useState([]);
  const isOpen = Object.values(filter).every((value) => !value);
  useEffect(() => setNewCalls([]), [list.first]);
  useLive((name, call) => { if (name === 'call' && isOpen) setNewCalls((before) => [call, ...before].slice(0, NEW_CALLS_MAX)); });
  const known = new Set(list.rows?.map((call) => call.request_id));
  const rows = list.rows && [...newCalls.filter((call) => !known.has(call.request_id)), ...list.rows];
  return html`<div class="page">
    <div class="row top-aligned"><div class="grow"><${Filters} query=${query} /></div><${Button} icon="refresh" aria-label="Fetch again" title="Fetch again" onClick=${list.reload} /></div>
    <${Card} pad=${false}><${CallTable} list=${{ ...list, rows }} empty=${isOpen && html`<${Empty} title="No call yet"><p>Create a key and send a first call, or use the <a class="link" href="#/playground">playground</a>. Calls appear here as they end.</p><${Code} text="tollgate key create --wallet NAME" /><//>`} /><//>
  </div>`;
}

export function View({ rest, query }) {
  return rest[0] ? html`<${Call} key=${rest[0]} id=${rest[0]} />` : html`<${List} query=${query} />`;
}
