// Requests: search over the journal, and one call explained.

import { html, useState } from '../../preact.js';
import { useList } from '../../load.js';
import { refine } from '../../router.js';
import { Button, Card } from '../../ui/parts.js';
import { CallTable } from '../../ui/call-table.js';
import { Call } from './call.js';

const FILTERS = { wallet: 'Wallet', key: 'Key', model: 'Model', channel: 'Channel', endpoint: 'Endpoint' };
const STATUSES = [['', 'Any status'], ['2xx', 'Answered'], ['4xx', 'Refused (4xx)'], ['5xx', 'Failed (5xx)']];

function Filters({ query }) {
  const [text, setText] = useState(query.q ?? '');
  const submit = (event) => { event.preventDefault(); refine({ q: text.trim() }); };
  return html`<form class="filters" onSubmit=${submit}>
    <input class="search" type="search" value=${text} onInput=${(event) => setText(event.target.value)} placeholder="Request id, model or code" aria-label="Search calls" />
    <select aria-label="Status" value=${query.status ?? ''} onChange=${(event) => refine({ status: event.target.value })}>
      ${STATUSES.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}
    </select>
    ${Object.entries(FILTERS).filter(([name]) => query[name]).map(([name, title]) => html`
      <span key=${name} class="chip">${title}: ${query[name]}<button type="button" aria-label=${`Remove the filter ${title}`} onClick=${() => refine({ [name]: undefined })}>×</button></span>`)}
    <${AddFilter} query=${query} />
  </form>`;
}

/** Asks for a filter that is not set yet. */
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

function List({ query }) {
  const { q, status, wallet, key, model, channel, endpoint, from, to } = query;
  const list = useList('/calls', { q, status, wallet, key, model, channel, endpoint, from, to });
  return html`<div class="page">
    <div class="row"><div class="grow"><${Filters} query=${query} /></div><${Button} icon="refresh" aria-label="Fetch again" onClick=${list.reload} /></div>
    <${Card} pad=${false}><${CallTable} list=${list} /><//>
  </div>`;
}

export function View({ rest, query }) {
  return rest[0] ? html`<${Call} id=${rest[0]} />` : html`<${List} query=${query} />`;
}
