// Wallets: balances at a glance, and one wallet with its statement and keys.

import { html, useState } from '../../preact.js';
import { post } from '../../api.js';
import { credits } from '../../format.js';
import { useList, useSession } from '../../load.js';
import { address, go, refine } from '../../router.js';
import { FormDialog } from '../../ui/dialog.js';
import { Badge, Bar, Button, Card, Code, Empty, Field } from '../../ui/components.js';
import { Table } from '../../ui/table.js';
import { toast } from '../../ui/toast.js';
import { Wallet } from './wallet.js';

export function WalletStatus({ wallet }) {
  if (wallet.status !== 'active') return html`<${Badge} tone="bad">${wallet.status}<//>`;
  const available = Number(wallet.total_available_micro);
  return available <= 0 ? html`<${Badge} tone="bad">empty<//>` : html`<${Badge} tone="good">active<//>`;
}

const COLUMNS = [
  { title: 'Name', cell: (wallet) => html`${wallet.name}<span class="sub mono">${wallet.id}</span>` },
  { title: 'Status', minor: true, cell: (wallet) => html`<${WalletStatus} wallet=${wallet} />` },
  { title: 'Available', number: true, cell: (wallet) => credits(wallet.total_available) },
  { title: 'Frozen', minor: true, number: true, cell: (wallet) => credits(wallet.frozen) },
  { title: 'Credit line', minor: true, number: true, cell: (wallet) => html`${credits(wallet.credit_limit)}${Number(wallet.credit_limit_micro) > 0 && html`<${Bar} label="Credit used" part=${Number(wallet.credit_used_micro)} total=${Number(wallet.credit_limit_micro)} />`}` },
  { title: 'Spent today', hint: 'Since midnight UTC', minor: true, number: true, cell: (wallet) => html`${credits(wallet.spent_today)}${Number(wallet.spent_this_month_micro) > 0 && html`<${Bar} progress label="Spent today, of this month" part=${Number(wallet.spent_today_micro)} total=${Number(wallet.spent_this_month_micro)} />`}` },
  { title: 'This month', hint: 'Since the first of the month, UTC', minor: true, number: true, cell: (wallet) => credits(wallet.spent_this_month) },
];

function CreateDialog({ close }) {
  const send = async (form) => {
    const amount = (name) => form.get(name).trim() || undefined;
    const wallet = await post('/wallets', { name: form.get('name').trim(), balance: amount('balance'), credit_limit: amount('credit_limit') });
    toast(`Wallet ${wallet.name} was created.`);
    close();
    go(['wallets', wallet.id]);
  };
  return html`<${FormDialog} title="Create a wallet" action="Create wallet" send=${send} close=${close}>${(error) => html`<div class="form">
    <${Field} label="Name" fullWidth problem=${error?.param === 'name' && error.message}><input name="name" required autofocus maxlength="200" /><//>
    <${Field} label="Balance" hint="Credits that it starts with." problem=${error?.param === 'balance' && error.message}><input name="balance" inputmode="decimal" placeholder="0" /><//>
    <${Field} label="Credit line" hint="How far it may go below zero." problem=${error?.param === 'credit_limit' && error.message}><input name="credit_limit" inputmode="decimal" placeholder="0" /><//>
  </div>`}<//>`;
}

function List({ query }) {
  const session = useSession();
  const [creating, setCreating] = useState(Boolean(query.create) && session.can('operator'));
  const list = useList('/wallets', { q: query.q });
  return html`<div class="page">
    <div class="filters">
      <input class="search" type="search" value=${query.q ?? ''} onInput=${(event) => refine({ q: event.target.value })} placeholder="Name or id" aria-label="Search wallets" />
      <span class="grow"></span>
      ${session.can('operator') && html`<${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>Create wallet<//>`}
    </div>
    <${Card} pad=${false}><${Table} label="Wallets" columns=${COLUMNS} list=${list} rowKey=${(wallet) => wallet.id} href=${(wallet) => address(['wallets', wallet.id])}
      empty=${html`<${Empty} title=${query.q ? 'No wallet has this name' : 'No wallet yet'}><p>A wallet holds the credits that calls are charged to. Create one here or with:</p><${Code} text="tollgate wallet create acme --balance 100" /><//>`} /><//>
    ${creating && html`<${CreateDialog} close=${() => setCreating(false)} />`}
  </div>`;
}

export function View({ rest, query }) {
  return rest[0] ? html`<${Wallet} key=${rest[0]} id=${rest[0]} query=${query} />` : html`<${List} query=${query} />`;
}
