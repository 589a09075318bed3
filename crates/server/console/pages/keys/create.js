// Creating a key: the secret is shown once, beside a call that uses it.

import { html, useState } from '../../preact.js';
import { get, post } from '../../api.js';
import { useLoad, useSession } from '../../load.js';
import { Dialog, FormDialog } from '../../ui/dialog.js';
import { Button, Field, Problem, Secret, Tabs, Code } from '../../ui/components.js';
import { firstCalls } from '../../snippets.js';
import { LimitFields, limitsOf } from './limits.js';

export function NewSecret({ title, secret, close }) {
  const session = useSession();
  const calls = firstCalls(session.public_url, secret, session.example_model);
  const [chosen, setChosen] = useState(calls[0][0]);
  return html`<${Dialog} title=${title} close=${close}>
    <div class="body">
      <p>Copy the secret now. It is not shown again: the gateway keeps only its digest.</p>
      <${Secret} text=${secret} />
      <${Tabs} tabs=${calls.map(([name]) => [name, name])} chosen=${chosen} choose=${setChosen} />
      <${Code} text=${calls.find(([name]) => name === chosen)[1]} />
    </div>
    <footer><${Button} kind="primary" onClick=${close}>I have copied it<//></footer>
  <//>`;
}

export function CreateDialog({ wallet, close, done }) {
  const { value, error: unlisted } = useLoad(() => get('/wallets', { limit: 200 }), []);
  const [secret, setSecret] = useState(null);
  const send = async (form) => {
    const given = Object.fromEntries(Object.entries(limitsOf(form)).filter(([, part]) => part !== null && part?.length !== 0));
    const created = await post('/keys', { wallet: form.get('wallet'), name: form.get('name').trim() || undefined, ...given });
    done();
    setSecret(created.secret);
  };
  if (secret) return html`<${NewSecret} title="The key was created" secret=${secret} close=${close} />`;
  return html`<${FormDialog} title="Create a key" action="Create key" send=${send} close=${close} disabled=${!value?.data.length}>${(error) => html`
    <div class="form">
      <${Field} label="Wallet" problem=${value && !value.data.length && 'There is no wallet yet: create one first.'}><select name="wallet" value=${wallet}>${(value?.data ?? []).map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}</select><//>
      <${Field} label="Name" hint="Who or what uses it." problem=${error?.param === 'name' && error.message}><input name="name" maxlength="200" autofocus /><//>
    </div>
    <details><summary>Limits</summary><${LimitFields} error=${error} /></details>
    <${Problem} error=${unlisted} />`}<//>`;
}
