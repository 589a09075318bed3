// Hooks for data: one value, a list page by page, the session, and live events.

import { createContext, useCallback, useContext, useEffect, useRef, useState } from './preact.js';
import { get } from './api.js';

/**
 * Fetches a value when one of `depends` changes, and again every `every` milliseconds if that is set. While it is fetched,
 * the last value stays. If that fails, the last value stays only if it is a value for the same `depends`.
 */
export function useLoad(fetchValue, depends, { every } = {}) {
  const [state, setState] = useState({ value: null, error: null, loading: true, of: null });
  const round = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++round.current;
    const of = JSON.stringify(depends);
    setState((before) => ({ ...before, loading: true }));
    try {
      const value = await fetchValue();
      if (mine === round.current) setState({ value, error: null, loading: false, of });
    } catch (error) {
      if (mine === round.current) setState((before) => ({ value: before.of === of ? before.value : null, error, loading: false, of }));
    }
  }, depends);
  useEffect(() => {
    reload();
    if (!every) return undefined;
    const timer = setInterval(() => document.hidden || reload(), every);
    return () => clearInterval(timer);
  }, [reload, every]);
  return { ...state, reload };
}

/** The maximum number of times that a search without results is continued before the page shows an empty list. */
const CONTINUED_MAX = 20;

/** The first page with a row that `fits`. A long search may answer without rows but with a cursor to continue. */
export async function fetchPage(path, query, fits = () => true) {
  let page = await get(path, query);
  for (let times = 0; !page.data.some(fits) && page.next_cursor && times < CONTINUED_MAX; times += 1) {
    page = await get(path, { ...query, cursor: page.next_cursor });
  }
  return page;
}

/** A list of the admin API. `more` fetches the next page; `moreError` says why it could not. If `cursor` is null, there are no more pages. */
export function useList(path, query) {
  const depends = [path, JSON.stringify(query)];
  const [more, setMore] = useState({ of: null, rows: [], cursor: null, loading: false });
  const first = useLoad(() => fetchPage(path, { limit: 50, ...query }), depends);
  const mine = more.of === first.value ? more : { rows: [], cursor: first.value?.next_cursor ?? null, loading: false };
  const next = async () => {
    setMore({ ...mine, of: first.value, loading: true });
    try {
      const page = await fetchPage(path, { limit: 50, ...query, cursor: mine.cursor });
      setMore({ of: first.value, rows: [...mine.rows, ...page.data], cursor: page.next_cursor, loading: false });
    } catch (error) {
      setMore({ ...mine, of: first.value, loading: false, error });
    }
  };
  const rows = first.value && [...first.value.data, ...mine.rows];
  return { rows, error: first.error, moreError: mine.error, loading: first.loading || mine.loading, cursor: mine.cursor, more: next, reload: first.reload, first: first.value };
}

/** Who is signed in: `{name, role, can(role)}`. */
export const Session = createContext(null);
export const useSession = () => useContext(Session);

const ROLES = ['viewer', 'support', 'operator', 'owner'];
export const covers = (role, needed) => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** Live events: `subscribe(listener)` returns a function that unsubscribes. */
export const Live = createContext({ subscribe: () => () => {}, connected: true });

/** The polling interval of values while live events are not connected; undefined while they are. */
const POLL_MS = 5000;
export const usePolling = () => (useContext(Live).connected ? undefined : POLL_MS);

/** Calls `listener(name, data)` for each live event. */
export function useLive(listener) {
  const { subscribe } = useContext(Live);
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => subscribe((name, data) => latest.current(name, data)), [subscribe]);
}
