// The models that the vendor lists, the catalog knows or the operator has typed in, to be picked with an id and a price.

import { html, useState } from '../../preact.js';
import { Badge, Button, Field } from '../../ui/components.js';
import { PRICES, entryOf, missingMembers, sourceOf } from './save.js';

const KINDS = ['text', 'embedding', 'image', 'video', 'audio'];
/** The maximum number of names that are listed at once. A search finds the others. */
const LISTED_MAX = 200;

function Known({ model }) {
  if (model.configured) return html`<span class="muted">configured; gets another route</span>`;
  return model.source ? html`<span class="muted">price of the catalog</span>` : html`<span class="muted">price not known</span>`;
}

/** The form fields of one picked model. */
function Details({ model, filled, fill }) {
  const entry = entryOf(model, filled);
  const source = sourceOf(model, filled);
  const missing = missingMembers(entry, source);
  const input = (member, more) => html`<input value=${filled?.[member] ?? ''} onInput=${(event) => fill({ [member]: event.target.value })} ...${more} />`;
  return html`<fieldset class="picked">
    <legend class="row"><span class="mono">${model.id}</span>${missing.length ? html`<${Badge} tone="warn">not callable yet<//>` : html`<${Badge} tone="good">complete<//>`}</legend>
    <div class="form">
      <${Field} label="Callers name it"><input value=${entry.id} onInput=${(event) => fill({ id: event.target.value })} /><//>
      <${Field} label="Kind"><select value=${entry.kind} onChange=${(event) => fill({ kind: event.target.value })}>${KINDS.map((kind) => html`<option key=${kind} value=${kind}>${kind}</option>`)}</select><//>
      ${!source && (PRICES[entry.kind] ?? []).map((member) => html`<${Field} key=${member} label=${`Price, ${member}`} hint="Credits per million tokens.">${input(member, { inputmode: 'decimal', placeholder: '0.00' })}<//>`)}
      ${!source && entry.kind === 'text' && !model.entry.profile?.max_output_tokens && html`<${Field} label="Output tokens at most" hint="A call holds credits for no more.">${input('outputMax', { inputmode: 'numeric', placeholder: '8192' })}<//>`}
    </div>
    ${missing.length > 0 && html`<p class="muted">It needs ${missing.join(' and ')}.</p>`}
  </fieldset>`;
}

/** `picked` maps the upstream's names to the filled-in fields; `change` gets the new map. `type` adds an unlisted name. */
export function ModelPicker({ models, listed, complete, picked, change, type }) {
  const [search, setSearch] = useState('');
  const wanted = search.trim().toLowerCase();
  const matching = models.filter(({ id, title }) => `${id} ${title ?? ''}`.toLowerCase().includes(wanted));
  const toggle = (id) => { const next = new Map(picked); if (!next.delete(id)) next.set(id, {}); change(next); };
  const typed = search.trim();
  const isNew = typed && !models.some(({ id }) => id === typed);
  const heading = `${models.length} ${models.length === 1 ? 'model' : 'models'}${listed ? '' : ' of the catalog or typed in'}`;
  const fill = (id) => (more) => change(new Map(picked).set(id, { ...picked.get(id), ...more }));
  return html`<div class="stack">
    <div class="row wrap"><h3 class="grow">${heading}${complete || !listed ? '' : ', and more that the vendor did not list at once'}</h3>
      <input class="search" type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} placeholder="Search, or type a name" aria-label="Search the models" /></div>
    <div class="found" role="group" aria-label="Models of the account" tabindex="0">${matching.slice(0, LISTED_MAX).map((model) => html`
      <label key=${model.id}><input type="checkbox" checked=${picked.has(model.id)} onChange=${() => toggle(model.id)} /><span class="grow mono">${model.id}</span><${Known} model=${model} /></label>`)}
      ${matching.length > LISTED_MAX && html`<p class="muted">${matching.length - LISTED_MAX} more: search for their names.</p>`}
      ${!matching.length && html`<p class="muted">${typed ? 'No listed model has this name.' : 'No model is known. Type the name that the upstream uses.'}</p>`}</div>
    ${isNew && html`<div><${Button} onClick=${() => { type(typed); setSearch(''); }}>Add ${typed}<//></div>`}
    ${models.filter(({ id, configured }) => picked.has(id) && !configured).map((model) => html`<${Details} key=${model.id} model=${model} filled=${picked.get(model.id)} fill=${fill(model.id)} />`)}
  </div>`;
}
