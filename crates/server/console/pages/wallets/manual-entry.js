// Manual entries of a wallet: the dialog shows the resulting balance first, and a reference makes a retry harmless.

import { html, useState } from '../../preact.js';
import { post } from '../../api.js';
import { credits, creditsOfMicro } from '../../format.js';
import { useSession } from '../../load.js';
import { FormDialog } from '../../ui/dialog.js';
import { Field } from '../../ui/components.js';
import { toast } from '../../ui/toast.js';

/** Kind, title, sign of the change (0: as typed), and the required role. */
const KINDS = [
  ['top_up', 'Top up', 1, 'support'], ['gift', 'Gift', 1, 'operator'], ['debit', 'Debit', -1, 'operator'],
  ['refund', 'Refund of a top-up', -1, 'operator'], ['adjustment', 'Adjustment', 0, 'owner'],
];

/** A new reference. `crypto.randomUUID` is missing on pages over plain HTTP from another machine. */
function newReference() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(6))];
  return `console-${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** The typed amount in micro-credits, or nothing if it is not an amount. */
export function microOf(text) {
  const match = /^(-?)(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text.trim());
  if (!match) return null;
  const micro = BigInt(match[2]) * 1000000n + BigInt((match[3] ?? '').padEnd(6, '0'));
  return match[1] ? -micro : micro;
}

export function ManualEntryDialog({ wallet, close, done }) {
  const session = useSession();
  const [kind, setKind] = useState('top_up');
  const [amount, setAmount] = useState('');
  // The default reference. A retry of this dialog sends the same one.
  const [reference, setReference] = useState(newReference);
  const [, title, sign] = KINDS.find(([id]) => id === kind);
  const micro = microOf(amount);
  const valid = micro !== null && micro !== 0n && (sign === 0 || micro > 0n);
  const before = BigInt(wallet.balance_micro) + BigInt(wallet.gift_balance_micro) - BigInt(wallet.credit_used_micro);
  const after = valid && before + (sign === 0 ? micro : micro * BigInt(sign));
  const send = async (form) => {
    await post(`/wallets/${wallet.id}/entries`, { kind, amount: amount.trim(), reference: reference.trim(), note: form.get('note').trim() || undefined, refund_of: form.get('refund_of')?.trim() || undefined });
    toast(`${title}: ${credits(amount.trim())} credits. The balance is ${creditsOfMicro(after)}.`);
    done();
  };
  return html`<${FormDialog} title=${`${wallet.name}: move money`} action=${title} danger=${sign < 0} send=${send} close=${close} disabled=${!valid || !reference.trim()}>${(error) => html`
    <div class="form">
      <${Field} label="What"><select value=${kind} onChange=${(event) => setKind(event.target.value)}>${KINDS.filter(([, , , role]) => session.can(role)).map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select><//>
      <${Field} label="Amount" hint="Credits, up to six decimals." problem=${amount && !valid ? 'This is not an amount.' : error?.param === 'amount' && error.message}><input autofocus inputmode="decimal" value=${amount} onInput=${(event) => setAmount(event.target.value)} /><//>
      <${Field} label="Reference" fullWidth hint="The number of the payment or ticket. Sending it again changes nothing." problem=${error?.code === 'reference_conflict' && error.message}><input value=${reference} onInput=${(event) => setReference(event.target.value)} maxlength="200" /><//>
      ${kind === 'refund' && html`<${Field} label="Of the top-up" fullWidth hint="Its reference or number. Refunds of a top-up never exceed it. Empty: of any." problem=${error?.param === 'refund_of' && error.message}><input name="refund_of" maxlength="200" /><//>`}
      <${Field} label="Note" fullWidth><input name="note" maxlength="500" placeholder=${sign < 0 ? 'Why' : 'Optional'} /><//>
    </div>
    <div class="outcome">${valid ? html`The balance goes from <strong>${creditsOfMicro(before)}</strong> to <strong>${creditsOfMicro(after)}</strong> credits.` : 'Type an amount to see the new balance.'}</div>`}<//>`;
}
