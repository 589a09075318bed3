// The dialog that adds a webhook and shows its secret once.

import { html, useState } from '../../preact.js';
import { post } from '../../api.js';
import { FormDialog, SecretDialog } from '../../ui/dialog.js';
import { Field, Secret } from '../../ui/components.js';
import { KINDS, OF_WALLETS } from './kinds.js';

export function RuleDialog({ close, done }) {
  const [secret, setSecret] = useState(null);
  const [wallet, setWallet] = useState('');
  const [chosen, setChosen] = useState(Object.keys(KINDS));
  const kinds = chosen.filter((kind) => !wallet || OF_WALLETS.includes(kind));
  const toggle = (kind) => () => setChosen(chosen.includes(kind) ? chosen.filter((other) => other !== kind) : [...chosen, kind]);
  const send = async (form) => {
    const below = kinds.includes('low_balance') ? form.get('below')?.trim() : '';
    const rule = await post('/alerts/rules', { kinds, url: form.get('url').trim(), wallet: wallet.trim() || undefined, below: below || undefined });
    done();
    setSecret(rule.secret);
  };
  if (secret) {
    return html`<${SecretDialog} title="The webhook was added" close=${close}><p>Every message is signed with this secret. Copy it now; it is not shown again.</p><${Secret} text=${secret} /><//>`;
  }
  return html`<${FormDialog} title="Send alerts to a webhook" action="Add webhook" send=${send} close=${close} disabled=${!kinds.length}>${(error) => html`<div class="form">
    <${Field} label="Address" fullWidth hint="It gets a POST with JSON when an alert begins and when it ends." problem=${error?.param === 'url' && error.message}><input name="url" type="url" required placeholder="https://example.com/hooks/tollgate" autofocus /><//>
    <fieldset class="full-width"><legend>Which alerts</legend>${Object.entries(KINDS).map(([kind, title]) => html`<label key=${kind} class="row"><input type="checkbox" checked=${kinds.includes(kind)} disabled=${Boolean(wallet) && !OF_WALLETS.includes(kind)} onChange=${toggle(kind)} /> ${title}</label>`)}</fieldset>
    <${Field} label="Wallet" hint="Its id or name. Empty: every wallet." problem=${error?.param === 'wallet' && error.message}><input name="wallet" value=${wallet} onInput=${(event) => setWallet(event.target.value)} /><//>
    <${Field} label="Low balance below" hint="Credits, for wallets without an amount of their own." problem=${error?.param === 'below' && error.message}><input name="below" inputmode="decimal" placeholder="5" disabled=${!kinds.includes('low_balance')} /><//>
  </div>`}<//>`;
}
