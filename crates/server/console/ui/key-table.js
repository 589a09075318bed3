// The table of keys.

import { html } from '../preact.js';
import { credits } from '../format.js';
import { address } from '../router.js';
import { Badge, Bar, Code, Empty, Time } from './components.js';
import { Table } from './table.js';

export function KeyStatus({ row }) {
  const [tone, text] = !row.enabled ? ['bad', 'disabled'] : row.expires_at !== null && row.expires_at <= Date.now() ? ['bad', 'expired'] : ['good', 'active'];
  return html`<${Badge} tone=${tone}>${text}<//>`;
}

/** A limit as a bar with its two amounts. */
export function Limit({ used, limit, usedMicro, limitMicro, per }) {
  if (limit === null || limit === undefined) return html`<span class="muted">${credits(used)}${per ? '' : ' used'}, no limit</span>`;
  return html`${credits(used)} of ${credits(limit)}${per && ` per ${per}`}<${Bar} label="Limit used" part=${Number(usedMicro)} total=${Number(limitMicro)} />`;
}

const COLUMNS = [
  { title: 'Name', cell: (row) => html`${row.name ?? html`<span class="muted">unnamed</span>`}<span class="sub mono">${row.prefix}…</span>` },
  { title: 'Status', cell: (row) => html`<${KeyStatus} row=${row} />` },
  { title: 'Wallet', minor: true, cell: (row) => row.wallet_name ?? row.wallet },
  { title: 'Used', number: true, minor: true, cell: (row) => html`<${Limit} used=${row.usage} limit=${row.limit} usedMicro=${row.usage_micro} limitMicro=${row.limit_micro} />` },
  { title: 'Window', number: true, minor: true, cell: (row) => (row.window ? html`<${Limit} used=${row.window.used} limit=${row.window.amount} usedMicro=${row.window.used_micro} limitMicro=${row.window.amount_micro} per=${row.window.per} />` : '–') },
  { title: 'Models', minor: true, cell: (row) => (row.models?.length ? row.models.map((model) => html`<span key=${model} class="chip mono">${model}</span> `) : html`<span class="muted">all</span>`) },
  { title: 'Last used', number: true, cell: (row) => html`<${Time} at=${row.last_used_at} />` },
];

export function KeyTable({ list }) {
  return html`<${Table} label="Keys" columns=${COLUMNS} list=${list} rowKey=${(row) => row.id} href=${(row) => address(['keys', row.id])}
    empty=${html`<${Empty} title="No key matches"><p>A key authenticates calls and spends from one wallet. Create one here or with:</p><${Code} text="tollgate key create --wallet acme --name laptop" /><//>`} />`;
}
