// Tables that a keyboard can walk, with pages that follow one another, and cards on narrow screens.

import { html, useEffect, useRef, useState } from '../preact.js';
import { Button, Problem, Skeleton } from './parts.js';

/**
 * `columns` are `{title, cell(row), number, minor}`; a minor one is left out on narrow screens.
 * `list` is what `useList` gives. `open(row)` makes rows lead somewhere.
 */
export function Table({ columns, list, rowKey, open, empty, label }) {
  const { rows, error, loading, cursor, more, reload } = list;
  const [selected, setSelected] = useState(-1);
  const body = useRef(null);
  useEffect(() => setSelected(-1), [rows?.[0] && rowKey(rows[0])]);
  useEffect(() => {
    if (!open) return undefined;
    const move = (event) => {
      if (event.target.closest('input, textarea, select, dialog') || event.metaKey || event.ctrlKey || !rows?.length) return;
      const step = { j: 1, k: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const next = Math.min(rows.length - 1, Math.max(0, selected + step));
        setSelected(next);
        body.current?.children[next]?.scrollIntoView({ block: 'nearest' });
      } else if (event.key === 'Enter' && rows[selected] && !event.target.closest('a, button')) {
        open(rows[selected]);
      }
    };
    window.addEventListener('keydown', move);
    return () => window.removeEventListener('keydown', move);
  }, [rows, selected, open]);
  if (error && !rows) return html`<div class="body"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!rows) return html`<div class="body"><${Skeleton} lines=${6} /></div>`;
  if (!rows.length) return empty;
  const follow = (event, row) => { if (!event.target.closest('a, button, input')) open(row); };
  return html`<div class="table-box" aria-busy=${loading}>
    <table class="cards" aria-label=${label}>
      <thead><tr>${columns.map(({ title, number }) => html`<th key=${title} scope="col" class=${number ? 'number' : ''}>${title}</th>`)}</tr></thead>
      <tbody ref=${body}>${rows.map((row, index) => html`
        <tr key=${rowKey(row)} class=${open ? 'linked' : ''} aria-selected=${open ? index === selected : undefined} onClick=${open && ((event) => follow(event, row))}>
          ${columns.map(({ title, cell, number, minor }) => html`<td key=${title} class="${number ? 'number' : ''} ${minor ? 'minor' : ''}">${cell(row)}</td>`)}
        </tr>`)}</tbody>
    </table>
    ${cursor && html`<div class="more"><${Button} busy=${loading} onClick=${more}>Show more<//></div>`}
  </div>`;
}
