// Models: the models that callers see, their prices, and why a model cannot be called.

import { html } from '../../preact.js';
import { getAll } from '../../api.js';
import { count } from '../../format.js';
import { useLoad, useSession } from '../../load.js';
import { address, refine } from '../../router.js';
import { Icon } from '../../ui/icon.js';
import { Badge, Card, Code, Empty, Facts, Problem, Skeleton } from '../../ui/components.js';
import { PriceShort, PriceTable } from '../../ui/price.js';
import { Table } from '../../ui/table.js';

const ABILITIES = { image_input: ['image', 'reads images'], audio_input: ['audio', 'hears audio'], tools: ['tools', 'calls tools'], reasoning: ['thinking', 'reasons'], video_input: ['video', 'sees video'], image_output: ['image', 'makes images'] };

export function Callable({ model }) {
  return model.callable ? html`<${Badge} tone="good">callable<//>` : html`<${Badge} tone="bad">not callable<//>`;
}

function Abilities({ model }) {
  return html`<span class="row wrap">${model.abilities.map((ability) => {
    const [icon, text] = ABILITIES[ability] ?? ['text', ability];
    return html`<span key=${ability} title=${text}><${Icon} name=${icon} /><span class="hidden-text">${text}</span></span>`;
  })}</span>`;
}

/** The margins of the routes whose cost is known, in the worst case. */
function margins(model) {
  const known = [...new Set(model.routes.map(({ margin }) => margin).filter(Boolean))];
  return known.length ? known.join(', ') : html`<span class="muted">–</span>`;
}

const COLUMNS = [
  { title: 'Model', cell: (model) => html`${model.id}<span class="sub">${model.kind}</span>` },
  { title: 'Status', cell: (model) => html`<${Callable} model=${model} />${model.reason && html`<span class="sub">${model.reason}</span>`}` },
  { title: 'Context', minor: true, number: true, cell: (model) => count(model.context_tokens) },
  { title: 'Output', minor: true, number: true, cell: (model) => count(model.output_tokens_max) },
  { title: 'Abilities', minor: true, cell: (model) => html`<${Abilities} model=${model} />` },
  { title: 'Price in credits', minor: true, number: true, cell: (model) => html`<${PriceShort} card=${model.price} />` },
  { title: 'Margin', minor: true, number: true, cell: (model) => margins(model) },
  { title: 'Routes', minor: true, number: true, cell: (model) => `${model.routes.filter((route) => route.usable).length} of ${model.routes.length}` },
];

/** The limits of a route per minute. */
function limits({ rpm, tpm }) {
  const parts = [rpm && `${count(rpm)} requests`, tpm && `${count(tpm)} tokens`].filter(Boolean);
  return parts.length ? `${parts.join(', ')} per minute` : html`<span class="muted">–</span>`;
}

/** The display names of the orders of routes with equal priority. */
const ORDERS = { priority: 'by weight', latency: 'the fastest first', cost: 'the cheapest first' };

function One({ models, id }) {
  const model = models.find((row) => row.id === id);
  if (!model) return html`<div class="page"><p>No model has the id ${id}. <a class="link" href=${address('models')}>All models</a></p></div>`;
  return html`<div class="page">
    <div class="row wrap"><h2 class="grow">${model.id}</h2><${Callable} model=${model} /><a class="button" href=${address('playground', { model: model.id })}>Try it</a><a class="button" href=${address('requests', { model: model.id })}>Its requests</a></div>
    ${model.reason && html`<div class="problem-box">${model.reason}</div>`}
    <div class="columns">
      <${Card} title="Model"><${Facts} rows=${[['Kind', model.kind], model.context_tokens && ['Context', `${count(model.context_tokens)} tokens`], model.output_tokens_max && ['Output', `${count(model.output_tokens_max)} tokens at most`], ['Abilities', model.abilities.map((ability) => ABILITIES[ability]?.[1] ?? ability).join(', ')], ['Protocols', model.protocols?.join(', ')], ['Routes', `by priority, then ${ORDERS[model.order] ?? model.order}${model.sticky ? '; a conversation keeps its route' : ''}`], model.fallbacks.length > 0 && ['Fallbacks', model.fallbacks.map((id) => html`<a key=${id} class="chip mono" href=${address(['models', ...id.split('/')])}>${id}</a> `)]]} /><//>
      <${Card} title="Price" pad=${false}>${model.price ? html`<${PriceTable} label="Price" card=${model.price} cost=${model.routes.find(({ cost }) => cost)?.cost} />` : html`<${Empty} title="No price"><p>A model without a price cannot be called. Set one under Settings, Configuration.</p><//>`}<//>
    </div>
    <${Card} title="Routes" pad=${false}><div class="table-box"><table aria-label="Routes"><thead><tr><th scope="col">Channel</th><th scope="col">As</th><th scope="col" class="number">Priority</th><th scope="col" class="number">Weight</th><th scope="col">Limits</th><th scope="col">State</th><th scope="col" class="number">Margin</th></tr></thead>
      <tbody>${model.routes.map((route) => html`<tr key=${route.channel + route.model}><td><a class="link" href=${address(['channels', route.channel])}>${route.channel}</a></td><td class="mono">${route.model}</td><td class="number">${route.priority}</td><td class="number">${route.weight}</td><td>${limits(route)}</td>
        <td><${Badge} tone=${route.usable ? 'good' : 'bad'}>${route.usable ? 'usable' : route.reason}<//></td><td class="number">${route.margin ?? '–'}</td></tr>`)}</tbody></table></div><//>
  </div>`;
}

export function View({ rest, query }) {
  const session = useSession();
  const { value, error, loading, reload } = useLoad(() => getAll('/models'), []);
  if (!value) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`}</div>`;
  if (rest[0]) return html`<${One} models=${value} id=${rest.join('/')} />`;
  const wanted = (query.q ?? '').toLowerCase();
  const rows = value.filter((model) => model.id.toLowerCase().includes(wanted) && (!query.kind || model.kind === query.kind));
  const kinds = [...new Set(value.map((model) => model.kind))].sort();
  return html`<div class="page">
    <div class="filters"><input class="search" type="search" value=${query.q ?? ''} onInput=${(event) => refine({ q: event.target.value })} placeholder="Maker or model" aria-label="Search models" />
      <select aria-label="Kind" value=${query.kind ?? ''} onChange=${(event) => refine({ kind: event.target.value })}><option value="">Every kind</option>${kinds.map((kind) => html`<option key=${kind} value=${kind}>${kind}</option>`)}</select>
      <span class="grow"></span>${session.can('owner') && html`<a class="button" href=${address('settings', { tab: 'configuration' })}>Edit models</a>`}</div>
    <${Card} pad=${false}><${Table} label="Models" columns=${COLUMNS} list=${{ rows, loading, cursor: null }} rowKey=${(model) => model.id} href=${(model) => address(['models', ...model.id.split('/')])}
      empty=${html`<${Empty} title="No model matches"><p>A model is an entry of the configuration:</p><${Code} text=${'[[model]]\nid = "maker/model"\nkind = "text"\nroutes = [{ channel = "main", model = "model" }]'} /><//>`} /><//>
  </div>`;
}
