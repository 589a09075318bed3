// The list of models: search, prices, and the choice of one.

import { call } from './client.js';
import { byId, element } from './dom.js';
import { priceLines, tokens } from './format.js';

const ABILITIES = { image_input: 'reads images', tools: 'tools', reasoning: 'reasons', image_output: 'makes images' };

/** Shows the models of the key; `choose` is called with the id that the visitor picks. Returns the entries. */
export async function loadModels(choose) {
  const { data } = await (await call('/v1/models')).json();
  byId('model-list').replaceChildren(data.length ? table(data, choose) : element('p', { class: 'empty' }, 'No model can be called now.'));
  return data;
}

/** Filters the rows as the visitor types, including rows that the server has rendered. */
export function enableSearch() {
  const rows = () => [...document.querySelectorAll('.model-row')];
  const filter = () => {
    const words = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows()) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    byId('model-count').textContent = `${shown} of ${rows().length}`;
  };
  byId('search').oninput = filter;
  byId('model-tools').hidden = rows().length === 0;
  filter();
}

function table(models, choose) {
  const head = element('tr', {}, element('th', {}, 'Model'), element('th', { class: 'number' }, 'Context'), element('th', { class: 'number' }, 'Price in credits'), element('th', {}, ''));
  const rows = models.map((model) => row(model, choose));
  return element('div', { class: 'table-box' }, element('table', { class: 'cards' }, element('thead', {}, head), element('tbody', {}, ...rows)));
}

function row(model, choose) {
  const chips = [model.kind, ...model.abilities.map((it) => ABILITIES[it] ?? it)].map((text) => element('span', { class: 'chip' }, text));
  const prices = priceLines(model.price).map((line) =>
    element('span', { class: 'price' }, `${line.amount} `, element('span', { class: 'unit' }, `${line.name} / ${line.unit}`)));
  const output = model.max_output_tokens && element('span', { class: 'sub' }, `${tokens(model.max_output_tokens)} out`);
  return element('tr', { class: 'model-row' },
    element('td', {}, element('span', { class: 'model-id' }, model.id), element('br'), ...chips),
    element('td', { class: 'number' }, model.context_length ? tokens(model.context_length) : '', output),
    element('td', { class: 'number' }, ...prices),
    element('td', {}, element('button', { class: 'button small', type: 'button', onclick: () => choose(model.id), 'aria-label': `Use ${model.id}` }, 'Use')));
}
