// Addresses of the console, such as `#/wallets/wal_1?tab=keys`. Every state of a page has one.

import { useEffect, useState } from './preact.js';

/** A part of an address. One that is not encoded correctly stays as it is, so that no page is found for it. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function read(hash = location.hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decoded);
  return { page: parts[0] ?? 'overview', rest: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a page. */
export function address(parts, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const path = [parts].flat().map(encodeURIComponent).join('/');
  return `#/${path}${pairs.length ? `?${new URLSearchParams(pairs)}` : ''}`;
}

export function go(parts, query) {
  location.hash = address(parts, query);
}

/** Changes the query of the current address without a new entry in the browser's history. */
export function refine(change) {
  const { page, rest, query } = read();
  history.replaceState(null, '', address([page, ...rest], { ...query, ...change }));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

/** A hook for the current address. */
export function useRoute() {
  const [route, setRoute] = useState(read());
  useEffect(() => {
    const update = () => setRoute(read());
    window.addEventListener('hashchange', update);
    return () => window.removeEventListener('hashchange', update);
  }, []);
  return route;
}
