// The table of calls.

import { html } from '../preact.js';
import { count, credits, duration } from '../format.js';
import { address } from '../router.js';
import { Badge, Empty, Time } from './components.js';
import { Table } from './table.js';

export function Status({ call }) {
  const tone = call.status < 400 ? 'good' : call.status < 500 ? 'warn' : 'bad';
  return html`<${Badge} tone=${tone}>${call.status}<//>`;
}

const nothing = html`<span class="muted">–</span>`;
const tokens = (value) => (value === null || value === undefined ? nothing : count(value));

const COLUMNS = [
  { title: 'Ended', minor: true, cell: (call) => html`<${Time} at=${call.at} />` },
  { title: 'Model', cell: (call) => html`<span class="cut">${call.model || nothing}</span><span class="sub mono cut" title=${call.endpoint}>${call.endpoint}</span>` },
  { title: 'Wallet', minor: true, cell: (call) => html`<span class="cut short">${call.wallet_name ?? call.wallet ?? html`<span class="muted">unknown</span>`}</span><span class="sub cut short">${call.key_name ?? call.key ?? ''}</span>` },
  { title: 'Status', cell: (call) => html`<${Status} call=${call} /><span class="sub">${call.code ?? call.channel ?? ''}</span>` },
  { title: 'Tokens in', minor: true, number: true, cell: (call) => tokens(call.input_tokens) },
  { title: 'out', minor: true, number: true, cell: (call) => tokens(call.output_tokens) },
  { title: 'Credits', number: true, cell: (call) => credits(call.charge) },
  { title: 'First byte', minor: true, number: true, cell: (call) => (call.first_byte_ms === null ? nothing : duration(call.first_byte_ms)) },
  { title: 'Total', minor: true, number: true, cell: (call) => duration(call.total_ms) },
];

/** With `keys`, j, k and Enter navigate this table. */
export function CallTable({ list, empty, keys = true }) {
  return html`<${Table} label="Calls" keys=${keys} columns=${COLUMNS} list=${list} rowKey=${(call) => call.request_id} href=${(call) => address(['requests', call.request_id])}
    empty=${empty || html`<${Empty} title="No call matches"><p>Remove a filter, or send a call from the <a class="link" href="#/playground">playground</a>.</p><//>`} />`;
}
