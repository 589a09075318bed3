// Audit: who changed what, with the values before and after.

import { html, useState } from '../../preact.js';
import { useList } from '../../load.js';
import { refine } from '../../router.js';
import { Card, Empty, Time } from '../../ui/components.js';
import { Table } from '../../ui/table.js';
import { Dialog } from '../../ui/dialog.js';

/** The members that differ, as lines. */
export function Difference({ before, after }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changed = names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
  if (!changed.length) return html`<p class="muted">No value differs.</p>`;
  return html`<div class="diff">${changed.map((name) => html`<div key=${name}><strong>${name}</strong></div>
    ${before?.[name] !== undefined && html`<div class="gone">− ${JSON.stringify(before[name])}</div>`}${after?.[name] !== undefined && html`<div class="new">+ ${JSON.stringify(after[name])}</div>`}`)}</div>`;
}

const COLUMNS = [
  { title: 'What', cell: (row) => html`${row.action}<span class="sub mono">${row.target}</span>` },
  { title: 'Who', cell: (row) => html`${row.actor_name}<span class="sub">${row.actor_role}</span>` },
  { title: 'Request', minor: true, cell: (row) => html`<span class="mono">${row.request_id ?? '–'}</span>` },
  { title: 'When', number: true, cell: (row) => html`<${Time} at=${row.at} />` },
];

export function View({ query }) {
  const list = useList('/audit', { q: query.q, actor: query.actor, action: query.action });
  const [open, setOpen] = useState(null);
  return html`<div class="page">
    <div class="filters"><input class="search" type="search" value=${query.q ?? ''} onInput=${(event) => refine({ q: event.target.value })} placeholder="Who, what or id" aria-label="Search the audit" /></div>
    <${Card} pad=${false}><${Table} label="Audit" columns=${COLUMNS} list=${list} rowKey=${(row) => row.id} open=${setOpen} empty=${html`<${Empty} title="No change yet"><p>Every change of a wallet, key, token or configuration is kept here.</p><//>`} /><//>
    ${open && html`<${Dialog} title=${`${open.action} ${open.target}`} close=${() => setOpen(null)}><div class="body"><p class="muted">${open.actor_name} (${open.actor_role}), <${Time} at=${open.at} /></p><${Difference} before=${open.before} after=${open.after} /></div><//>`}
  </div>`;
}
