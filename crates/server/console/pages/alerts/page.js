// Alerts: what fired, and where it is sent.

import { html, useState } from '../../preact.js';
import { get, post, remove } from '../../api.js';
import { useList, useLoad, useSession } from '../../load.js';
import { FormDialog } from '../../ui/dialog.js';
import { Badge, Button, Card, Empty, Field, Problem, Secret, Time } from '../../ui/parts.js';
import { Table } from '../../ui/table.js';
import { toast } from '../../ui/toast.js';

const KINDS = { low_balance: 'Low balance', key_near_limit: 'Key near its limit', channel_down: 'Channel down', error_rate: 'Error rate', closes_stuck: 'Stuck settlements' };

const COLUMNS = [
  { title: 'Alert', cell: (alert) => html`${alert.message}<span class="sub">${KINDS[alert.kind] ?? alert.kind}</span>` },
  { title: 'State', cell: (alert) => html`<${Badge} tone=${alert.ended_at ? 'good' : 'bad'}>${alert.ended_at ? 'ended' : 'firing'}<//>` },
  { title: 'Sent', minor: true, cell: (alert) => alert.delivery ?? '–' },
  { title: 'Began', number: true, cell: (alert) => html`<${Time} at=${alert.at} />` },
];

function RuleDialog({ close, done }) {
  const [secret, setSecret] = useState(null);
  const send = async (form) => {
    const rule = await post('/alerts/rules', { kinds: form.getAll('kinds'), url: form.get('url').trim(), wallet: form.get('wallet').trim() || undefined, below: form.get('below').trim() || undefined });
    done();
    setSecret(rule.secret);
  };
  if (secret) return html`<${FormDialog} title="The rule was created" action="Done" send=${async () => close()} close=${close}><p>Each message is signed with this secret. It is not shown again.</p><${Secret} text=${secret} /><//>`;
  return html`<${FormDialog} title="Send alerts to a webhook" action="Create rule" send=${send} close=${close}>${(error) => html`<div class="form">
    <${Field} label="Address" whole problem=${error?.param === 'url' && error.message}><input name="url" type="url" required placeholder="https://example.com/hooks/tollgate" autofocus /><//>
    <div class="field whole"><span class="label">Which</span>${Object.entries(KINDS).map(([kind, title]) => html`<label key=${kind} class="row"><input type="checkbox" name="kinds" value=${kind} checked /> ${title}</label>`)}</div>
    <${Field} label="Wallet" hint="Empty: every wallet."><input name="wallet" /><//>
    <${Field} label="Low balance below" hint="Credits." problem=${error?.param === 'below' && error.message}><input name="below" inputmode="decimal" placeholder="10" /><//>
  </div>`}<//>`;
}

export function View() {
  const session = useSession();
  const list = useList('/alerts', {});
  const rules = useLoad(() => get('/alerts/rules'), []);
  const [creating, setCreating] = useState(false);
  const act = (work, said) => async () => {
    try {
      await work();
      toast(said);
      rules.reload();
    } catch (error) {
      toast(error.message, 'bad');
    }
  };
  return html`<div class="page">
    <${Card} title="Alerts" pad=${false}><${Table} label="Alerts" columns=${COLUMNS} list=${list} rowKey=${(alert) => alert.id} empty=${html`<${Empty} title="Nothing has fired"><p>Low balances, keys near their limits, channels that are down and error rates appear here.</p><//>`} /><//>
    <${Card} title="Where alerts go" pad=${false} actions=${session.can('owner') && html`<${Button} small icon="plus" onClick=${() => setCreating(true)}>Add webhook<//>`}>
      <${Problem} error=${rules.error} retry=${rules.reload} />
      ${rules.value?.data.length ? html`<div class="table-box"><table aria-label="Rules"><thead><tr><th scope="col">Address</th><th scope="col">Which</th><th scope="col">For</th><th scope="col"></th></tr></thead><tbody>${rules.value.data.map((rule) => html`<tr key=${rule.id}><td class="mono">${rule.url}</td><td>${rule.kinds.map((kind) => KINDS[kind] ?? kind).join(', ')}</td><td>${rule.wallet_name ?? rule.wallet ?? 'every wallet'}</td>
        <td class="number">${session.can('operator') && html`<${Button} small onClick=${act(() => post(`/alerts/rules/${rule.id}/test`), 'A test alert was sent.')}>Send a test<//>`} ${session.can('owner') && html`<${Button} small kind="danger" onClick=${act(() => remove(`/alerts/rules/${rule.id}`), 'The rule is gone.')}>Remove<//>`}</td></tr>`)}</tbody></table></div>`
        : html`<${Empty} title="Alerts go to the log only"><p>Add a webhook to be told elsewhere.</p><//>`}<//>
    ${creating && html`<${RuleDialog} close=${() => setCreating(false)} done=${rules.reload} />`}
  </div>`;
}
