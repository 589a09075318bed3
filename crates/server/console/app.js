// The shell of the console: session, navigation, live events, and the page of the current address.

import { html, render, useCallback, useEffect, useErrorBoundary, useMemo, useState } from './preact.js';
import { get, listen, remove, setCsrf, whenSignedOut } from './api.js';
import { Live, Session, covers } from './load.js';
import { address, read, useRoute } from './router.js';
import { Dialog } from './ui/dialog.js';
import { Icon, MARK } from './ui/icon.js';
import { Palette } from './ui/palette.js';
import { Button, Facts, Problem } from './ui/components.js';
import { Toasts } from './ui/toast.js';
import { SignIn } from './pages/sign-in/page.js';

/** Id, title, and whether the page belongs to the second group. Its code is loaded when it is first opened. */
const PAGES = [
  ['overview', 'Overview'], ['requests', 'Requests'], ['wallets', 'Wallets'], ['keys', 'Keys'], ['models', 'Models'],
  ['channels', 'Channels'], ['tasks', 'Tasks'], ['playground', 'Playground'],
  ['alerts', 'Alerts', true], ['audit', 'Audit', true], ['settings', 'Settings', true],
];
const BOTTOM = ['overview', 'requests', 'wallets', 'playground'];

function theme() {
  return localStorage.getItem('theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
}

function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  window.dispatchEvent(new Event('themechange'));
}

function Navigation({ page }) {
  const link = ([id, title]) => html`<a key=${id} href=${address(id)} aria-current=${id === page ? 'page' : undefined}><${Icon} name=${id} />${title}</a>`;
  return html`<nav aria-label="Pages">${PAGES.filter(([, , second]) => !second).map(link)}<hr />${PAGES.filter(([, , second]) => second).map(link)}</nav>`;
}

function BottomBar({ page }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [page]);
  const link = ([id, title]) => html`<a key=${id} href=${address(id)} aria-current=${id === page ? 'page' : undefined}><${Icon} name=${id} />${title}</a>`;
  return html`
    ${open && html`<div class="sheet">${PAGES.filter(([id]) => !BOTTOM.includes(id)).map(link)}</div>`}
    <div class="bottom">${PAGES.filter(([id]) => BOTTOM.includes(id)).map(link)}
      <button type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}><${Icon} name="more" />More</button>
    </div>`;
}

function Account({ session, signOut }) {
  const [open, setOpen] = useState(false);
  return html`<div class="menu">
    <${Button} kind="plain" aria-expanded=${open} onClick=${() => setOpen(!open)}>${session.role}<//>
    ${open && html`<div><span class="muted row">${session.name}</span><${Button} kind="plain" onClick=${signOut}>Sign out<//></div>`}
  </div>`;
}

const SHORTCUTS = [['Ctrl K or ⌘ K', 'find a page, wallet, key, model or request'], ['/', 'search this page'], ['j, k', 'next and previous row'], ['Enter', 'open the row'], ['Esc', 'close'], ['?', 'this list']];

function Shortcuts({ close }) {
  return html`<${Dialog} title="Keys" close=${close}><div class="body"><${Facts} rows=${SHORTCUTS.map(([keys, what]) => [html`<kbd>${keys}</kbd>`, what])} /></div><//>`;
}

const READY_MS = 30_000;

/** Whether the gateway is ready: as the session said at first, then as it says from time to time. `end` is called if the session has ended. */
function useReady(first, end) {
  const [ready, setReady] = useState(first);
  useEffect(() => {
    const failed = ({ status }) => {
      if (status === 401) end();
      else if (!status || status >= 500) setReady(false);
    };
    const look = () => document.hidden || get('/session').then((now) => setReady(now.ready), failed);
    const timer = setInterval(look, READY_MS);
    return () => clearInterval(timer);
  }, []);
  return ready;
}

/** Loads the code of a page, then shows it. An error in one page does not affect the others. */
function Page({ route }) {
  const [module, setModule] = useState(null);
  const [failed, reset] = useErrorBoundary();
  useEffect(() => {
    let gone = false;
    reset();
    if (!PAGES.some(([id]) => id === route.page)) { setModule({ page: route.page, View: null }); return undefined; }
    import(`./pages/${route.page}/page.js`).then((loaded) => gone || setModule({ page: route.page, View: loaded.View }), () => gone || setModule({ page: route.page, View: null }));
    return () => { gone = true; };
  }, [route.page]);
  if (failed) return html`<div class="page"><${Problem} error=${failed} retry=${reset} /></div>`;
  if (module?.page !== route.page) return html`<div class="page"></div>`;
  if (!module.View) return html`<div class="page"><p>There is no such page. <a class="link" href="#/overview">Go to the overview.</a></p></div>`;
  return html`<${module.View} rest=${route.rest} query=${route.query} />`;
}

function Shell({ session, signOut, end }) {
  const route = useRoute();
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  const [connected, setConnected] = useState(true);
  const ready = useReady(session.ready, end);
  const listeners = useMemo(() => new Set(), []);
  const subscribe = useCallback((listener) => { listeners.add(listener); return () => listeners.delete(listener); }, []);
  const live = useMemo(() => ({ subscribe, connected }), [connected]);
  useEffect(() => listen((name, data) => listeners.forEach((listener) => listener(name, data)), setConnected), []);
  useEffect(() => {
    const press = (event) => {
      const typing = event.target.closest('input, textarea, select');
      // The palette leads to another page, so it must not open above a form or a secret that is shown once.
      const isCovered = document.querySelector('dialog[open]');
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        if (!isCovered) setPalette(true);
      } else if (isCovered) {
        return;
      } else if (event.key === '?' && !typing) {
        setHelp(true);
      } else if (event.key === '/' && !typing) {
        const search = document.querySelector('.filters .search');
        if (search) { event.preventDefault(); search.focus(); }
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
  const title = PAGES.find(([id]) => id === route.page)?.[1] ?? 'Not found';
  useEffect(() => { document.title = `${title} · Tollgate`; }, [title]);
  const switchTheme = () => {
    const next = theme() === 'dark' ? 'light' : 'dark';
    localStorage.setItem('theme', next);
    applyTheme(next);
  };
  return html`<${Session.Provider} value=${session}><${Live.Provider} value=${live}>
    <div class="shell">
      <aside class="side">
        <a class="brand" href="#/overview"><img src=${MARK} alt="" />Tollgate</a>
        <${Navigation} page=${route.page} />
        <div class="foot">${session.node && `${session.node} · `}${session.version}<br />${ready ? 'ready' : 'not ready'}</div>
      </aside>
      <div class="main">
        <header class="top">
          <h1>${route.rest.length ? html`<a href=${address(route.page)}>${title}</a>` : title}</h1>
          <${Button} kind="plain" icon="search" aria-label="Find" title="Find (Ctrl-K)" onClick=${() => setPalette(true)} />
          <${Button} kind="plain" icon="theme" aria-label="Light or dark" title="Light or dark" onClick=${switchTheme} />
          <${Account} session=${session} signOut=${signOut} />
        </header>
        ${!connected && html`<div class="notice" role="status">Live events are interrupted. Figures are fetched again from time to time.</div>`}
        <main><${Page} key=${route.page} route=${route} /></main>
      </div>
    </div>
    <${BottomBar} page=${route.page} />
    ${help && html`<${Shortcuts} close=${() => setHelp(false)} />`}
    ${palette && html`<${Palette} pages=${PAGES} session=${session} close=${() => setPalette(false)} />`}
    <${Toasts} />
  <//><//>`;
}

function App() {
  const [session, setSession] = useState(undefined);
  const [error, setError] = useState(null);
  const begin = (answer) => {
    setCsrf(answer.csrf);
    setSession({ ...answer, can: (role) => covers(answer.role, role) });
  };
  // The browser tab keeps nothing for the next user, such as the key that pays in the playground.
  const end = () => {
    sessionStorage.clear();
    setCsrf(null);
    setSession(null);
  };
  const resume = () => get('/session').then(begin, (failure) => (failure.status === 401 ? end() : setError(failure)));
  useEffect(() => {
    whenSignedOut(end);
    // A sign-in link opens a new session, even if someone is signed in.
    if (read().page === 'sign-in') end();
    else resume();
  }, []);
  const signOut = async () => {
    await remove('/session').catch(() => null);
    end();
  };
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${() => { setError(null); resume(); }} /></div>`;
  if (session === undefined) return null;
  if (session === null) return html`<${SignIn} begin=${begin} />`;
  return html`<${Shell} session=${session} signOut=${signOut} end=${end} />`;
}

applyTheme(theme());
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(theme()));
render(html`<${App} />`, document.getElementById('app'));
