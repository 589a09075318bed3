// The command palette: finds a page, a wallet, a key, a model or a request by a few letters.

import { html, useEffect, useRef, useState } from '../preact.js';
import { get } from '../api.js';
import { go } from '../router.js';
import { Dialog } from './dialog.js';

const PLACES = { wallet: 'wallets', key: 'keys', model: 'models', channel: 'channels', request: 'requests', task: 'tasks' };

/** Actions that are available everywhere: title, address and required role. */
const ACTIONS = [
  ['Create a wallet', ['wallets'], { create: 1 }, 'operator'], ['Create a key', ['keys'], { create: 1 }, 'operator'],
  ['Add a channel', ['channels'], { add: 1 }, 'owner'], ['Create an admin token', ['settings'], { tab: 'tokens', create: 1 }, 'owner'],
];

export function Palette({ pages, session, close }) {
  const [text, setText] = useState('');
  const [found, setFound] = useState([]);
  const [selected, setSelected] = useState(0);
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  useEffect(() => {
    setSelected(0);
    if (text.trim().length < 2) { setFound([]); return undefined; }
    const timer = setTimeout(async () => {
      const answer = await get('/search', { q: text.trim() }).catch(() => ({ data: [] }));
      setFound(answer.data);
    }, 120);
    return () => clearTimeout(timer);
  }, [text]);
  const wanted = text.trim().toLowerCase();
  const rows = [
    ...pages.filter(([, title]) => title.toLowerCase().includes(wanted)).map(([id, title]) => ({ kind: 'page', title, to: [id] })),
    ...ACTIONS.filter(([title, , , role]) => wanted && session.can(role) && title.toLowerCase().includes(wanted)).map(([title, to, query]) => ({ kind: 'action', title, to, query })),
    ...found.map(({ kind, id, title, detail }) => ({ kind, title, detail, to: [PLACES[kind] ?? kind, ...(kind === 'model' ? id.split('/') : [id])] })),
  ];
  const open = (row) => { close(); go(row.to, row.query); };
  const type = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); setSelected((selected + step + rows.length) % Math.max(rows.length, 1)); }
    if (event.key === 'Enter' && rows[selected]) { event.preventDefault(); open(rows[selected]); }
  };
  return html`<${Dialog} label="Find" close=${close} className="palette">
    <input ref=${input} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${type} placeholder="Find a page, wallet, key, model or request id" aria-label="Find" autocomplete="off" role="combobox" aria-expanded="true" aria-controls="palette-rows" aria-activedescendant=${rows[selected] && `palette-${selected}`} />
    <ul id="palette-rows" role="listbox" aria-label="Found">${rows.map((row, index) => html`
      <li key=${`${row.kind} ${row.title} ${row.to.join('/')}`} id=${`palette-${index}`} role="option" aria-selected=${index === selected} onClick=${() => open(row)} onMouseMove=${() => setSelected(index)}>
        <span>${row.title}</span>${row.detail && html`<span class="muted">${row.detail}</span>`}<span class="kind">${row.kind}</span>
      </li>`)}
      ${!rows.length && html`<li class="muted" role="option" aria-selected="false" aria-disabled="true">Nothing has this name.</li>`}</ul>
  <//>`;
}
