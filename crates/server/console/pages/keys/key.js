// One key: its limits as bars, its last use, and the actions to change, rotate or disable it.

import { html, useState } from '../../preact.js';
import { get, patch, post } from '../../api.js';
import { when, whenIn } from '../../format.js';
import { useList, useLoad, useSession } from '../../load.js';
import { address } from '../../router.js';
import { CallTable } from '../../ui/call-table.js';
import { FormDialog } from '../../ui/dialog.js';
import { KeyStatus, Limit } from '../../ui/key-table.js';
import { Button, Card, Facts, Field, Problem, Skeleton, Time } from '../../ui/components.js';
import { toast } from '../../ui/toast.js';
import { NewSecret } from './create.js';
import { LimitFields, limitsOf } from './limits.js';

const OVERLAPS = [[0, 'at once'], [3600, 'in an hour'], [86400, 'in a day'], [604800, 'in a week']];

function Calls({ id }) {
  const list = useList('/calls', { key: id, limit: 20 });
  return html`<${Card} title="Last calls" pad=${false}><${CallTable} list=${{ ...list, cursor: null }} /><//>`;
}

export function KeyView({ id }) {
  const session = useSession();
  const { value: row, error, reload } = useLoad(() => get(`/keys/${encodeURIComponent(id)}`), [id]);
  const [dialog, setDialog] = useState(null);
  const [secret, setSecret] = useState(null);
  if (!row) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`}</div>`;
  const close = () => setDialog(null);
  const change = async (body, message) => {
    await patch(`/keys/${row.id}`, body);
    toast(message);
    close();
    reload();
  };
  const send = (form) => {
    const name = form.get('name').trim() || null;
    return change({ ...(name === row.name ? {} : { name }), ...limitsOf(form, row) }, 'The key was changed. Its limits hold from the next call on.');
  };
  const rotate = async (form) => {
    const answer = await post(`/keys/${row.id}/rotate`, { overlap_seconds: Number(form.get('overlap')) });
    close();
    setSecret(answer.secret);
    reload();
  };
  return html`<div class="page">
    <div class="row wrap"><h2 class="grow">${row.name ?? 'Unnamed key'} <span class="muted mono">${row.prefix}…</span></h2><${KeyStatus} row=${row} />
      ${session.can('operator') && html`<${Button} onClick=${() => setDialog('change')}>Change<//><${Button} onClick=${() => setDialog('rotate')}>Rotate<//><${Button} onClick=${() => setDialog('disable')}>${row.enabled ? 'Disable' : 'Enable'}<//>`}</div>
    <div class="columns">
      <${Card} title="Limits"><${Facts} rows=${[
        ['In all', html`<${Limit} used=${row.usage} limit=${row.limit} usedMicro=${row.usage_micro} limitMicro=${row.limit_micro} />`],
        row.window && [`This ${row.window.per}`, html`<${Limit} used=${row.window.used} limit=${row.window.amount} usedMicro=${row.window.used_micro} limitMicro=${row.window.amount_micro} /><span class="sub muted">begins anew ${whenIn(row.window.resets_at, row.window.time_zone)}</span>`],
        ['Requests per minute', row.rpm_limit ?? 'no limit'], ['Tokens per minute', row.tpm_limit ?? 'no limit'], ['Calls at a time', row.concurrency_limit ?? 'no limit'],
        ['Models', row.models?.length ? row.models.map((model) => html`<span key=${model} class="chip mono">${model}</span> `) : 'all'],
      ]} /><//>
      <${Card} title="Key"><${Facts} rows=${[
        ['Wallet', html`<a class="link" href=${address(['wallets', row.wallet])}>${row.wallet_name ?? row.wallet}</a>`], ['Id', html`<span class="mono">${row.id}</span>`],
        ['Created', html`<${Time} at=${row.created_at} />`], ['Last used', html`<${Time} at=${row.last_used_at} />`], ['Expires', row.expires_at ? when(row.expires_at) : 'never'],
        row.old_secret_until && ['Old secret works until', when(row.old_secret_until)],
        ['Tags', row.tags?.length > 0 && row.tags.map((tag) => html`<a key=${tag} class="chip" href=${address('keys', { tag })}>${tag}</a> `)],
      ]} /><//>
    </div>
    <${Calls} id=${row.id} />
    ${dialog === 'change' && html`<${FormDialog} title="Change key" action="Save" close=${close} send=${send}>${(failure) => html`
      <div class="form"><${Field} label="Name" fullWidth hint="Who or what uses it." problem=${failure?.param === 'name' && failure.message}><input name="name" maxlength="200" defaultValue=${row.name ?? ''} /><//></div>
      <${LimitFields} row=${row} error=${failure} />`}<//>`}
    ${dialog === 'rotate' && html`<${FormDialog} title="Rotate the secret" action="Rotate" close=${close} send=${rotate}>
      <p>The key gets a new secret. Limits, usage and history stay with the key.</p>
      <${Field} label="The old secret stops working"><select name="overlap">${OVERLAPS.map(([seconds, text]) => html`<option key=${seconds} value=${seconds} selected=${seconds === 86400}>${text}</option>`)}</select><//><//>`}
    ${dialog === 'disable' && html`<${FormDialog} title=${row.enabled ? 'Disable key' : 'Enable key'} action=${row.enabled ? 'Disable key' : 'Enable key'} danger=${row.enabled} close=${close} send=${() => change({ enabled: !row.enabled }, row.enabled ? 'The key is disabled.' : 'The key works again.')}>
      <p>${row.enabled ? 'Every call with this key is refused with 401 from now on. Calls that run now end and are charged. You can enable it again.' : 'Calls with this key are admitted again at once.'}</p><//>`}
    ${secret && html`<${NewSecret} title="The new secret" secret=${secret} close=${() => setSecret(null)} />`}
  </div>`;
}
