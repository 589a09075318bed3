// Tables with keyboard navigation and paging, shown as cards on narrow screens.

import { html, useLayoutEffect, useRef, useState } from '../preact.js';
import { Button, Problem, Skeleton } from './components.js';

/**
 * `columns` are `{title, hint, cell(row), number, minor}`. Minor columns are hidden on narrow screens, and the first of the
 * others links to the row. `list` is the result of `useList`. A row links to the address `href(row)`, or calls `open(row)`.
 * With `keys`, j, k and Enter navigate this table.
 */
export function Table({ columns, list, rowKey, href, open, empty, label, keys = true }) {
  const { rows, error, moreError, loading, cursor, more, reload } = list;
  // Selected by key, so that new rows above it do not move the selection.
  const [selected, setSelected] = useState(null);
  const body = useRef(null);
  const follow = href ? (row) => { const to = href(row); if (to) location.hash = to; } : open;
  // A layout effect, so that an Enter that follows immediately finds the selection.
  useLayoutEffect(() => {
    if (!follow || !keys) return undefined;
    const move = (event) => {
      if (event.target.closest('input, textarea, select, dialog') || event.metaKey || event.ctrlKey || event.altKey || !rows?.length) return;
      const at = rows.findIndex((row) => rowKey(row) === selected);
      const step = { j: 1, k: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const next = Math.min(rows.length - 1, Math.max(0, at + step));
        setSelected(rowKey(rows[next]));
        body.current?.children[next]?.scrollIntoView({ block: 'nearest' });
      } else if (event.key === 'Enter' && at >= 0 && !event.target.closest('a, button')) {
        follow(rows[at]);
      }
    };
    window.addEventListener('keydown', move);
    return () => window.removeEventListener('keydown', move);
  });
  if (error && !rows) return html`<div class="body"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!rows) return html`<div class="body"><${Skeleton} lines=${6} /></div>`;
  if (!rows.length) return empty;
  const click = (event, row) => { if (!event.target.closest('a, button, input') && !getSelection().toString()) follow(row); };
  // The columns of a card on narrow screens: the first on the left, the others on the right.
  const places = columns.filter(({ minor }) => !minor);
  const leading = columns.indexOf(places[0]);
  const content = ({ cell }, index, row) => {
    const to = index === leading && href?.(row);
    if (to) return html`<a class="row-link" href=${to}>${cell(row)}</a>`;
    return index === leading && open ? html`<button type="button" class="row-link" onClick=${() => open(row)}>${cell(row)}</button>` : cell(row);
  };
  return html`<div class="table-box" aria-busy=${loading}>
    ${error && html`<div class="more"><${Problem} error=${error} retry=${reload} /></div>`}
    <table class="cards" aria-label=${label}>
      <thead><tr>${columns.map(({ title, hint, number }) => html`<th key=${title} scope="col" class=${number ? 'number' : ''} title=${hint}>${title}</th>`)}</tr></thead>
      <tbody ref=${body}>${rows.map((row) => html`
        <tr key=${rowKey(row)} data-key=${rowKey(row)} data-selected=${rowKey(row) === selected} class=${follow && (open || href(row)) ? 'linked' : ''} onClick=${follow && ((event) => click(event, row))}>
          ${columns.map((column, index) => html`<td key=${column.title} class="${column.number ? 'number' : ''} ${column.minor ? 'minor' : `place-${places.indexOf(column)}`}">${content(column, index, row)}</td>`)}
        </tr>`)}</tbody>
    </table>
    ${moreError && html`<div class="more"><${Problem} error=${moreError} /></div>`}
    ${cursor && html`<div class="more"><${Button} busy=${loading} onClick=${more}>Show more<//></div>`}
  </div>`;
}
