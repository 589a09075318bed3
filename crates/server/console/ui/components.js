// Small components that all pages share.

import { html, useEffect, useRef, useState } from '../preact.js';
import { get } from '../api.js';
import { ago, whenExactly } from '../format.js';
import { fetchPage, useLoad } from '../load.js';
import { Icon } from './icon.js';
import { toast } from './toast.js';

/** A button; `kind` is `primary`, `danger` or `plain`. */
export function Button({ kind = '', icon, small, busy, children, ...rest }) {
  const bare = icon && !children;
  return html`<button type="button" class="button ${kind} ${small ? 'small' : ''} ${bare ? 'icon-only' : ''}" disabled=${busy} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/** A label with its control, a hint and an error message. */
export function Field({ label, hint, problem, fullWidth, children }) {
  return html`<label class="field ${fullWidth ? 'full-width' : ''}">
    <span class="label">${label}</span>${children}
    ${problem ? html`<span class="problem" role="alert">${problem}</span>` : hint && html`<span class="hint">${hint}</span>`}
  </label>`;
}

/** The number of rows that a picker lists. Its search finds the others. */
const PICKER_ROWS = 50;

/**
 * Chooses a row of a list of the admin API by its id. `title(row)` names a row, and only rows that `fits` accepts are
 * offered. Nothing is chosen at first, unless there is only one row.
 */
export function Picker({ path, label, hint, chosen, choose, title, fits = () => true }) {
  const [text, setText] = useState('');
  const list = useLoad(() => fetchPage(path, { q: text.trim(), limit: PICKER_ROWS }, fits), [path, text.trim()]);
  const found = list.value?.data.filter(fits) ?? [];
  const isFound = found.some(({ id }) => id === chosen);
  // The chosen row is offered even if it is not among those found.
  const other = useLoad(async () => (chosen && !isFound ? get(`${path}/${encodeURIComponent(chosen)}`) : null), [path, chosen, isFound]);
  const isGone = other.error?.status === 404 || (other.value?.id === chosen && !fits(other.value));
  useEffect(() => {
    if (chosen && isGone) choose('');
    else if (!chosen && !text && !list.value?.next_cursor && found.length === 1) choose(found[0].id);
  }, [chosen, isGone, list.value]);
  const rows = other.value && !isFound && other.value.id === chosen ? [other.value, ...found] : found;
  const isMore = list.value?.next_cursor;
  const problem = list.value && !rows.length && (isMore ? 'None was found so far: search for its name.' : text ? 'Nothing has this name.' : 'There is none yet: create one first.');
  const isLong = isMore || text;
  // A chosen row that is gone is no failure.
  const failed = [list, other].find(({ error }) => error && error.status !== 404);
  // Enter in the search must not send the form around it.
  const press = (event) => { if (event.key === 'Enter') event.preventDefault(); };
  return html`<${Field} label=${label} hint=${hint} problem=${problem}>
    <select required value=${chosen} onChange=${(event) => choose(event.target.value)}>
      ${!chosen && html`<option value="" disabled>Choose…</option>`}${rows.map((row) => html`<option key=${row.id} value=${row.id}>${title(row)}</option>`)}</select>
    ${isLong && html`<input type="search" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${press} placeholder="Search for others" aria-label="Search for others" />`}
  <//>
  ${failed && html`<div class="full-width"><${Problem} error=${failed.error} retry=${failed.reload} /></div>`}`;
}

/** A word with a colour: `good`, `warn`, `bad` or none. */
export function Badge({ tone = '', children }) {
  return html`<span class="badge ${tone}">${children}</span>`;
}

// One timer updates all relative times of the page.
const TICK_MS = 10_000;
const ticking = new Set();
setInterval(() => document.hidden || ticking.forEach((tick) => tick()), TICK_MS);

/** Renders the component again on every tick. */
function useTick() {
  const [, setTicks] = useState(0);
  useEffect(() => {
    const tick = () => setTicks((before) => before + 1);
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
}

/** How long ago something was, with the exact local and UTC times on hover. */
export function Time({ at }) {
  useTick();
  if (at === null || at === undefined) return html`<span class="muted">never</span>`;
  return html`<time class="nowrap" datetime=${new Date(at).toISOString()} title=${whenExactly(at)}>${ago(at)}</time>`;
}

export function Card({ title, actions, children, pad = true }) {
  return html`<section class="card">
    ${title && html`<header><h2>${title}</h2>${actions}</header>`}
    ${pad ? html`<div class="body">${children}</div>` : children}
  </section>`;
}

/** The placeholder of an empty page or list, which says how to fill it. */
export function Empty({ title, children }) {
  return html`<div class="empty"><h3>${title}</h3>${children}</div>`;
}

/** An error of the admin API: what happened and what to do. */
export function Problem({ error, retry }) {
  if (!error) return null;
  return html`<div class="problem-box row wrap" role="alert">
    <span class="grow">${error.message}${error.requestId && html` <span class="mono">(${error.requestId})</span>`}</span>
    ${retry && html`<${Button} small onClick=${retry}>Try again<//>`}
  </div>`;
}

/** Placeholder lines for a value that is being fetched. */
export function Skeleton({ lines = 3 }) {
  return html`<div class="stack tight" aria-busy="true">${Array.from({ length: lines }, (_, line) => html`<div key=${line} class="skeleton"></div>`)}</div>`;
}

/** A list of names and values. */
export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter((row) => row && row[1] !== undefined && row[1] !== null && row[1] !== '' && row[1] !== false)
    .map(([name, value], index) => html`<dt key=${index}>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** A bar for the used part of a limit or, with `progress`, for the progress of a task. */
export function Bar({ part, total, label, progress }) {
  const share = total > 0 ? Math.min(1, Math.max(0, part / total)) : 0;
  const tone = progress ? '' : share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : '';
  const fill = useRef(null);
  useEffect(() => { fill.current.style.width = `${share * 100}%`; }, [share]);
  return html`<div class="bar ${tone}" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(share * 100)}><span ref=${fill}></span></div>`;
}

/** A text with a button that copies it. */
export function Code({ text }) {
  return html`<div class="code"><pre tabindex="0">${text}</pre><${CopyButton} text=${text} /></div>`;
}

/** Nothing on a page over plain HTTP from another machine, because browsers offer the clipboard only to secure origins. */
export function CopyButton({ text, label = 'Copy' }) {
  const [done, setDone] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      toast('The browser does not let this page copy. Select it and copy it by hand.', 'bad');
      return;
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} small icon=${done ? 'check' : 'copy'} onClick=${copy}>${done ? 'Copied' : label}<//>`;
}

/** A secret that is shown once. A click on it selects all of it. */
export function Secret({ text }) {
  return html`<div class="secret"><code>${text}</code><${CopyButton} text=${text} /></div>`;
}

/** Tabs: `tabs` are pairs of an id and a title. */
export function Tabs({ tabs, chosen, choose }) {
  return html`<div class="tabs" role="tablist">${tabs.map(([id, title]) => html`
    <button key=${id} type="button" role="tab" aria-selected=${id === chosen} onClick=${() => choose(id)}>${title}</button>`)}</div>`;
}

/** JSON as a tree. Long arrays and deep objects are collapsed at first. */
export function Json({ value, name, depth = 0 }) {
  const key = name !== undefined && html`<span class="key">${name}</span>: `;
  if (value === null || typeof value !== 'object') {
    const kind = typeof value === 'string' ? 'string' : 'literal';
    return html`<div class="json mono">${key}<span class=${kind}>${JSON.stringify(value)}</span></div>`;
  }
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  if (!entries.length) return html`<div class="json mono">${key}${open}${close}</div>`;
  return html`<details class="json mono" open=${depth < 2 && entries.length < 40}>
    <summary>${key}${open}<span class="muted"> ${entries.length} </span>${close}</summary>
    <div>${entries.map(([child, inner]) => html`<${Json} key=${child} name=${child} value=${inner} depth=${depth + 1} />`)}</div>
  </details>`;
}
