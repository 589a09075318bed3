// Creating a key: the secret is shown once, beside a call that uses it.

import { html, useState } from '../../preact.js';
import { post } from '../../api.js';
import { useSession } from '../../load.js';
import { FormDialog, SecretDialog } from '../../ui/dialog.js';
import { Code, Field, Picker, Secret, Tabs } from '../../ui/components.js';
import { firstCalls } from '../../snippets.js';
import { LimitFields, limitsOf } from './limits.js';

export function NewSecret({ title, secret, close }) {
  const session = useSession();
  const calls = firstCalls(session.public_url, secret, session.example_model);
  const [chosen, setChosen] = useState(calls[0][0]);
  return html`<${SecretDialog} title=${title} close=${close}>
    <p>Copy the secret now. It is not shown again: the gateway keeps only its digest.</p>
    <${Secret} text=${secret} />
    <${Tabs} tabs=${calls.map(([name]) => [name, name])} chosen=${chosen} choose=${setChosen} />
    <${Code} text=${calls.find(([name]) => name === chosen)[1]} />
  <//>`;
}

/** `wallet` is the id of the wallet that is chosen at first, if any. */
export function CreateDialog({ wallet: first, close, done }) {
  const [wallet, setWallet] = useState(first ?? '');
  const [secret, setSecret] = useState(null);
  const send = async (form) => {
    const created = await post('/keys', { wallet, name: form.get('name').trim() || undefined, ...limitsOf(form) });
    done();
    setSecret(created.secret);
  };
  if (secret) return html`<${NewSecret} title="The key was created" secret=${secret} close=${close} />`;
  return html`<${FormDialog} title="Create a key" action="Create key" send=${send} close=${close} disabled=${!wallet}>${(error) => html`
    <div class="form">
      <${Picker} path="/wallets" label="Wallet" hint="It pays for the calls of the key." chosen=${wallet} choose=${setWallet} title=${({ name }) => name} />
      <${Field} label="Name" hint="Who or what uses it." problem=${error?.param === 'name' && error.message}><input name="name" maxlength="200" autofocus /><//>
    </div>
    <details><summary>Limits</summary><${LimitFields} error=${error} /></details>`}<//>`;
}
