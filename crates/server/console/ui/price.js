// Shows price cards.

import { html } from '../preact.js';

const TOKENS = 'M tokens';
/** The name and the unit of each price, in display order. */
const UNITS = {
  input: ['input', TOKENS], output: ['output', TOKENS], cached_input: ['cached input', TOKENS], cache_write: ['cache write', TOKENS], cache_write_1h: ['cache write for 1 h', TOKENS],
  image_input: ['image input', TOKENS], image_output: ['image output', TOKENS], audio_input: ['audio input', TOKENS], audio_output: ['audio output', TOKENS],
  image: ['image', 'image'], video_second: ['video', 'second'], video_tokens: ['video', TOKENS], usd: ['cost of the upstream', 'US dollar'],
  tts_characters: ['speech', 'M characters'], tts_stream_characters: ['streamed speech', 'M characters'], stt_second: ['transcript', 'second'], stt_stream_second: ['streamed transcript', 'second'],
  realtime_minute: ['realtime', 'minute'], realtime_text_input: ['realtime text', 'input'],
};

/** The lowest and the highest price of a table of sizes. */
function range(value) {
  if (typeof value !== 'object') return value;
  const numbers = Object.values(value).filter((one) => typeof one !== 'object').sort((one, other) => Number(one) - Number(other));
  return numbers.length && numbers[0] !== numbers.at(-1) ? `${numbers[0]} to ${numbers.at(-1)}` : numbers[0] ?? '…';
}

/** The lines of a card: `{key, name, unit, amount, sizes}`. `sizes` has the prices by size, if there are several. */
export function priceLines(card) {
  return Object.keys(UNITS).filter((key) => card?.[key] !== undefined).map((key) => {
    const value = card[key];
    const sizes = typeof value === 'object' ? Object.entries(value).filter(([, one]) => typeof one !== 'object') : [];
    return { key, name: UNITS[key][0], unit: UNITS[key][1], amount: range(value), sizes };
  });
}

/** The two most important prices of a card. The model's page shows all. */
export function PriceShort({ card }) {
  const lines = priceLines(card);
  if (!lines.length) return html`<span class="muted">none</span>`;
  return html`${lines.slice(0, 2).map(({ key, name, unit, amount }) => html`<span key=${key} class="price">${amount} <span class="unit">${name} / ${unit}</span></span>`)}${lines.length > 2 && html`<span class="sub">and ${lines.length - 2} more</span>`}`;
}

/** A whole card, with the cost beside each price if it is known. */
export function PriceTable({ card, cost, label }) {
  const lines = priceLines(card);
  const long = card?.long_context ?? [];
  return html`<table aria-label=${label}><thead><tr><th scope="col">For</th><th scope="col">Unit</th><th scope="col" class="number">Credits</th>${cost && html`<th scope="col" class="number">Cost</th>`}</tr></thead>
    <tbody>${lines.map(({ key, name, unit, amount, sizes }) => html`<tr key=${key}><td>${name}${sizes.length > 1 && html`<span class="sub">${sizes.map(([size, price]) => `${size} ${price}`).join(', ')}</span>`}</td><td class="muted">${unit}</td><td class="number">${amount}</td>${cost && html`<td class="number">${cost[key] === undefined ? '–' : range(cost[key])}</td>`}</tr>`)}
      ${long.map(({ above_tokens: above, price, ...rest }) => html`<tr key=${above}><td colspan=${cost ? 4 : 3} class="muted">above ${Number(above).toLocaleString('en')} tokens: ${priceLines(price ?? rest).map(({ name, amount }) => `${name} ${amount}`).join(', ')}</td></tr>`)}</tbody></table>`;
}
