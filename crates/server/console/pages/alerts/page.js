// Alerts: current and past problems, and the webhooks that are notified.

import { html, useState } from '../../preact.js';
import { get, post, remove } from '../../api.js';
import { credits } from '../../format.js';
import { useList, useLive, useLoad, usePolling, useSession } from '../../load.js';
import { address, refine } from '../../router.js';
import { FormDialog } from '../../ui/dialog.js';
import { Badge, Button, Card, Code, Empty, Problem, Skeleton, Tabs, Time } from '../../ui/components.js';
import { Table } from '../../ui/table.js';
import { toast } from '../../ui/toast.js';
import { KINDS } from './kinds.js';
import { RuleDialog } from './rule.js';

const DELIVERIES = { none: 'nobody', pending: 'waiting', delivered: 'delivered', failed: 'failed' };

/** The address of the page that shows the subject of an alert. */
function subjectOf({ kind, subject }) {
  if (kind === 'low_balance') return address(['wallets', subject]);
  if (kind === 'key_limit') return address(['keys', subject]);
  if (kind === 'channel_down') return address(['channels', subject]);
  if (kind === 'error_rate') return address('requests', subject ? { status: 'error', channel: subject } : { status: 'error' });
  return null;
}

const COLUMNS = [
  { title: 'Alert', cell: (alert) => html`${alert.message}<span class="sub">${KINDS[alert.kind] ?? alert.kind}</span>` },
  { title: 'State', cell: (alert) => (alert.ended_at ? html`<${Badge} tone="good">ended<//>` : html`<${Badge} tone="bad">open<//>`) },
  { title: 'Told', minor: true, cell: (alert) => DELIVERIES[alert.delivery] ?? alert.delivery },
  { title: 'Ended', minor: true, number: true, cell: (alert) => (alert.ended_at ? html`<${Time} at=${alert.ended_at} />` : '–') },
  { title: 'Began', number: true, cell: (alert) => html`<${Time} at=${alert.at} />` },
];

function Alerts({ open }) {
  const list = useList('/alerts', { open: open ? true : undefined });
  useLive((name) => { if (name === 'alert') list.reload(); });
  return html`<${Card} pad=${false}><${Table} label="Alerts" columns=${COLUMNS} list=${list} rowKey=${(alert) => alert.id} href=${subjectOf}
    empty=${html`<${Empty} title=${open ? 'Nothing is wrong' : 'Nothing was wrong yet'}><p>Low balances, keys near their limits, channels that are down, errors above normal and calls that cannot be booked appear here, once when they begin and once when they end. A wallet is watched when it has an amount:</p><${Code} text="tollgate wallet alert-below web-shop 5" /><//>`} /><//>`;
}

function LastAttempt({ attempt }) {
  if (!attempt) return html`<span class="muted">nothing sent yet</span>`;
  return attempt.problem
    ? html`<${Badge} tone="bad">failed<//><span class="sub optional">${attempt.problem} · <${Time} at=${attempt.at} /></span>`
    : html`<${Badge} tone="good">delivered<//><span class="sub optional"><${Time} at=${attempt.at} /></span>`;
}

function Rules() {
  const session = useSession();
  const rules = useLoad(() => get('/alerts/rules'), [], { every: usePolling() });
  const [dialog, setDialog] = useState(null);
  useLive((name) => { if (name === 'alert') rules.reload(); });
  const close = () => setDialog(null);
  const test = (rule) => async () => {
    try {
      const { delivered, problem } = await post(`/alerts/rules/${rule.id}/test`);
      if (delivered) toast('The webhook took the test.');
      else toast(`The webhook did not take the test: ${problem}.`, 'bad');
    } catch (error) {
      toast(error.message, 'bad');
    }
  };
  const take = async () => {
    await remove(`/alerts/rules/${dialog.id}`);
    toast('The webhook is no longer told.');
    close();
    rules.reload();
  };
  const columns = [
    { title: 'Address', cell: (rule) => html`<span class="mono wrapped">${rule.url}</span><span class="sub">${rule.kinds.map((kind) => KINDS[kind] ?? kind).join(', ')}</span>` },
    { title: 'For', minor: true, cell: (rule) => html`${rule.wallet_name ?? 'every wallet'}${rule.below !== null && html`<span class="sub">below ${credits(rule.below)} credits</span>`}` },
    { title: 'Last delivery', cell: (rule) => html`<${LastAttempt} attempt=${rule.last_attempt} />` },
    session.can('operator') && { title: 'Actions', number: true, cell: (rule) => html`<${Button} small onClick=${test(rule)}>Test<//> <${Button} small kind="danger" onClick=${() => setDialog(rule)}>Remove<//>` },
  ].filter(Boolean);
  const list = { rows: rules.value?.data, error: rules.error, loading: rules.loading, cursor: null, more: () => {}, reload: rules.reload };
  return html`<${Card} title="Who is told" pad=${false} actions=${session.can('operator') && html`<${Button} small icon="plus" onClick=${() => setDialog('create')}>Add webhook<//>`}>
    ${rules.error && !rules.value ? html`<${Problem} error=${rules.error} retry=${rules.reload} />` : !rules.value ? html`<${Skeleton} />` : html`<${Table} label="Rules" columns=${columns} list=${list} rowKey=${(rule) => rule.id}
      empty=${html`<${Empty} title="Alerts stand here and in the log"><p>A webhook is told of them too: each message is signed and repeated until it is taken.</p><${Code} text="tollgate alert add https://example.com/hooks/tollgate --kinds low_balance,channel_down --below 5" /><//>`} />`}
    ${dialog === 'create' && html`<${RuleDialog} close=${close} done=${rules.reload} />`}
    ${dialog && dialog !== 'create' && html`<${FormDialog} title="Remove webhook" action="Remove webhook" danger send=${take} close=${close}><p><span class="mono">${dialog.url}</span> is told of nothing more, and what was not delivered to it yet is dropped. The alerts themselves stay.</p><//>`}
  <//>`;
}

export function View({ query }) {
  const shown = query.show ?? 'all';
  return html`<div class="page">
    <${Rules} />
    <${Tabs} tabs=${[['all', 'All alerts'], ['open', 'Open']]} chosen=${shown} choose=${(chosen) => refine({ show: chosen === 'all' ? undefined : chosen })} />
    <${Alerts} key=${shown} open=${shown === 'open'} />
  </div>`;
}
