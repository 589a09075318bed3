// One wallet: balance now and over time, statement, keys, and actions.

import { html, useState } from '../../preact.js';
import { get, patch } from '../../api.js';
import { credits, creditsOfMicro, when } from '../../format.js';
import { useList, useLoad, useSession } from '../../load.js';
import { address, refine } from '../../router.js';
import { Chart } from '../../ui/chart.js';
import { FormDialog } from '../../ui/dialog.js';
import { KeyTable } from '../../ui/key-table.js';
import { Button, Card, Code, Empty, Facts, Field, Problem, Skeleton, Tabs, Time } from '../../ui/components.js';
import { Table } from '../../ui/table.js';
import { toast } from '../../ui/toast.js';
import { ManualEntryDialog } from './manual-entry.js';
import { Statement } from './statement.js';

const KINDS = {
  top_up: 'Top-up', gift: 'Gift', debit: 'Debit', refund: 'Refund', adjustment: 'Adjustment', settled: 'Charge', part: 'Charge, a step of a session',
  released: 'Call without a charge', abandoned: 'Call with an unknown end', credit_limit: 'Credit line', status: 'Status',
};

const ENTRY_COLUMNS = [
  { title: 'Entry', cell: (entry) => html`${KINDS[entry.kind] ?? entry.kind}<span class="sub">${entry.note ?? entry.reference ?? entry.request_id ?? ''}</span>` },
  { title: 'Amount', number: true, cell: (entry) => credits(entry.amount) },
  { title: 'Balance after', minor: true, number: true, cell: (entry) => credits(entry.balance_after) },
  { title: 'By', minor: true, cell: (entry) => entry.actor ?? html`<span class="muted">${entry.key_name ?? entry.key ?? 'gateway'}</span>` },
  { title: 'Number', minor: true, number: true, cell: (entry) => entry.seq },
  { title: 'When', number: true, cell: (entry) => html`<${Time} at=${entry.at} />` },
];

/** The entries, newest first. */
function Entries({ wallet }) {
  const list = useList(`/wallets/${wallet.id}/entries`, {});
  return html`<${Card} pad=${false}>
    <${Table} label="Entries" columns=${ENTRY_COLUMNS} list=${list} rowKey=${(entry) => entry.seq} href=${(entry) => entry.request_id && address(['requests', entry.request_id])}
      empty=${html`<${Empty} title="No entry yet"><p>Top up the wallet; the entry appears here. Or with:</p><${Code} text=${`tollgate wallet topup ${wallet.name} 10`} /><//>`} /><//>`;
}

function Keys({ wallet }) {
  const session = useSession();
  const list = useList('/keys', { wallet: wallet.id });
  return html`<${Card} title="Keys" pad=${false} actions=${session.can('operator') && html`<a class="button small" href=${address('keys', { create: 1, wallet: wallet.id })}>Create key</a>`}><${KeyTable} list=${list} /><//>`;
}

/** One balance for each day. On the wallet's first day, one for each of its last entries. */
async function fetchHistory(id) {
  const days = (await get(`/wallets/${id}/history`)).data;
  if (days.length > 1) return days.map(({ at, balance_micro: micro }) => [at, micro]);
  const entries = (await get(`/wallets/${id}/entries`, { limit: 500 })).data;
  let earliest = Infinity;
  // Times in a chart must not decrease, even if the clock was set back between two entries.
  return entries.map(({ at, balance_after_micro: micro }) => { earliest = Math.min(earliest, at); return [earliest, micro]; }).reverse();
}

function History({ wallet }) {
  const { value, error } = useLoad(() => fetchHistory(wallet.id), [wallet.id]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<${Skeleton} />`;
  if (value.length < 2) return html`<p class="muted">The chart begins with the second entry.</p>`;
  return html`<${Chart} label="Balance over time" height=${230} times=${value.map(([at]) => at)} series=${[
    { label: 'balance', color: '--series-1', values: value.map(([, micro]) => Number(micro) / 1e6), value: (number) => creditsOfMicro(Math.round(number * 1e6)) },
  ]} />`;
}

function EditDialog({ wallet, close, done }) {
  const send = async (form) => {
    const below = form.get('below').trim();
    await patch(`/wallets/${wallet.id}`, { name: form.get('name').trim(), credit_limit: form.get('credit_limit').trim() || '0', alerts: below ? { below } : null });
    toast('The wallet was changed.');
    done();
  };
  return html`<${FormDialog} title="Change wallet" action="Save" send=${send} close=${close}>${(error) => html`<div class="form">
    <${Field} label="Name" fullWidth problem=${error?.param === 'name' && error.message}><input name="name" defaultValue=${wallet.name} required /><//>
    <${Field} label="Credit line" fullWidth hint="How far the wallet may go below zero." problem=${error?.param === 'credit_limit' && error.message}><input name="credit_limit" inputmode="decimal" defaultValue=${wallet.credit_limit} /><//>
    <${Field} label="Alert below" fullWidth hint="An alert tells when the balance is below this. Empty: only rules for all wallets say so." problem=${error?.param === 'alerts.below' && error.message}><input name="below" inputmode="decimal" defaultValue=${wallet.alerts?.below ?? ''} /><//>
  </div>`}<//>`;
}

function DisableDialog({ wallet, close, done }) {
  const enabled = wallet.status !== 'active';
  const send = async () => {
    await patch(`/wallets/${wallet.id}`, { enabled });
    toast(enabled ? 'The wallet takes calls again.' : 'The wallet is disabled.');
    done();
  };
  return html`<${FormDialog} title=${enabled ? 'Enable wallet' : 'Disable wallet'} action=${enabled ? 'Enable wallet' : 'Disable wallet'} danger=${!enabled} send=${send} close=${close}>
    <p>${enabled ? 'Keys of this wallet can make calls again at once.' : `Every call with a key of ${wallet.name} is refused from now on. Calls that run now end and are charged. Nothing is deleted.`}</p><//>`;
}

export function Wallet({ id, query }) {
  const session = useSession();
  const { value: wallet, error, reload } = useLoad(() => get(`/wallets/${encodeURIComponent(id)}`), [id], { every: 10000 });
  const [dialog, setDialog] = useState(null);
  if (!wallet) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`}</div>`;
  const close = () => setDialog(null);
  const done = () => { close(); reload(); };
  const tab = query.tab ?? 'entries';
  return html`<div class="page">
    <div class="row wrap"><h2 class="grow">${wallet.name} <span class="muted mono">${wallet.id}</span></h2>
      ${session.can('support') && html`<${Button} kind="primary" onClick=${() => setDialog('money')}>Top up<//>`}
      ${session.can('operator') && html`<${Button} onClick=${() => setDialog('edit')}>Change<//><${Button} onClick=${() => setDialog('disable')}>${wallet.status === 'active' ? 'Disable' : 'Enable'}<//>`}</div>
    <div class="columns wide-first">
      <${Card} title="Balance over time"><${History} wallet=${wallet} /><//>
      <${Card} title="Now"><div class="figure bare"><span class="name">Available</span><span><span class="value">${credits(wallet.total_available)}</span><span class="unit">credits</span></span></div>
        <${Facts} rows=${[['Balance', credits(wallet.balance)], ['Gift', credits(wallet.gift_balance)], ['Frozen by open calls', credits(wallet.frozen)],
          ['Credit line', `${credits(wallet.credit_used)} of ${credits(wallet.credit_limit)} used`], ['Spent today (UTC)', credits(wallet.spent_today)], ['Spent this month (UTC)', credits(wallet.spent_this_month)],
          ['Alert below', wallet.alerts && credits(wallet.alerts.below)],
          ['Created', when(wallet.created_at)]]} /><//>
    </div>
    <${Tabs} tabs=${[['entries', 'Entries'], ['statement', 'Statement'], ['keys', 'Keys']]} chosen=${tab} choose=${(chosen) => refine({ tab: chosen })} />
    ${tab === 'keys' ? html`<${Keys} wallet=${wallet} />` : tab === 'statement' ? html`<${Statement} wallet=${wallet} query=${query} />` : html`<${Entries} key=${wallet.balance_micro + wallet.gift_balance_micro + wallet.credit_used_micro} wallet=${wallet} />`}
    ${dialog === 'money' && html`<${ManualEntryDialog} wallet=${wallet} close=${close} done=${done} />`}
    ${dialog === 'edit' && html`<${EditDialog} wallet=${wallet} close=${close} done=${done} />`}
    ${dialog === 'disable' && html`<${DisableDialog} wallet=${wallet} close=${close} done=${done} />`}
  </div>`;
}
