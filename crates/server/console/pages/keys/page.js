// Keys: search, creation with the secret shown once, and one key with its limits.

import { html, useState } from '../../preact.js';
import { useList, useSession } from '../../load.js';
import { refine } from '../../router.js';
import { KeyTable } from '../../ui/key-table.js';
import { Button, Card } from '../../ui/components.js';
import { CreateDialog } from './create.js';
import { KeyView } from './key.js';

function List({ query }) {
  const session = useSession();
  const list = useList('/keys', { q: query.q, wallet: query.wallet, tag: query.tag });
  const [creating, setCreating] = useState(Boolean(query.create) && session.can('operator'));
  return html`<div class="page">
    <div class="filters">
      <input class="search" type="search" value=${query.q ?? ''} onInput=${(event) => refine({ q: event.target.value })} placeholder="Name, wallet, prefix or id" aria-label="Search keys" />
      ${query.tag ? html`<span class="chip">Tag: ${query.tag}<button type="button" aria-label="Remove the filter Tag" onClick=${() => refine({ tag: undefined })}>×</button></span>`
    : html`<input onChange=${(event) => refine({ tag: event.target.value.trim() })} placeholder="Tag, then Enter" aria-label="Tag" />`}
      ${query.wallet && html`<span class="chip">Wallet: ${query.wallet}<button type="button" aria-label="Remove the filter Wallet" onClick=${() => refine({ wallet: undefined })}>×</button></span>`}
      <span class="grow"></span>
      ${session.can('operator') && html`<${Button} kind="primary" icon="plus" onClick=${() => setCreating(true)}>Create key<//>`}
    </div>
    <${Card} pad=${false}><${KeyTable} list=${list} /><//>
    ${creating && html`<${CreateDialog} wallet=${query.wallet} close=${() => { setCreating(false); refine({ create: undefined }); }} done=${list.reload} />`}
  </div>`;
}

export function View({ rest, query }) {
  return rest[0] ? html`<${KeyView} key=${rest[0]} id=${rest[0]} />` : html`<${List} query=${query} />`;
}
