// Requests to the admin API: one function per method, one class for errors, sockets and live events.

/** An error answer of the admin API, or a missing answer (status 0). */
export class ApiError extends Error {
  constructor(status, code, message, param, requestId) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.requestId = requestId;
  }
}

// The session's CSRF token. The cookie itself is HttpOnly, so a script never sees it.
let csrf = null;
let onSignedOut = () => {};

export function setCsrf(token) {
  csrf = token;
}

/** Sets the callback for the end of the session. */
export function whenSignedOut(callback) {
  onSignedOut = callback;
}

export const get = (path, query) => send('GET', path, query);
export const post = (path, body) => send('POST', path, null, body ?? {});
export const patch = (path, body) => send('PATCH', path, null, body);
export const put = (path, body) => send('PUT', path, null, body);
export const remove = (path) => send('DELETE', path);

/** The rows of all pages of a list. */
export async function getAll(path, query) {
  const rows = [];
  for (let cursor; ;) {
    const page = await get(path, { limit: 500, ...query, cursor });
    rows.push(...page.data);
    cursor = page.next_cursor;
    if (!cursor) return rows;
  }
}

/** The path with the members of `query` that have a value. */
export function withQuery(path, query) {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

async function send(method, path, query, body) {
  const answer = await request(method, withQuery(path, query), body);
  if (answer.status === 204) return null;
  return answer.json();
}

/** Sends a request and returns the response itself, for streams and files. */
export async function request(method, path, body, options = {}) {
  const headers = { accept: 'application/json', ...options.headers };
  // For a form, the browser sets the content type with its boundary.
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers['content-type'] = 'application/json';
  if (method !== 'GET' && csrf) headers['x-csrf-token'] = csrf;
  let answer;
  try {
    answer = await fetch(`/admin/v1${path}`, {
      method, headers, signal: options.signal, credentials: 'same-origin', cache: 'no-store',
      body: body === undefined || isForm ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'unreachable', 'The gateway does not answer. Check that it runs, then try again.');
  }
  if (answer.ok || options.anyStatus) return answer;
  const { error = {} } = await answer.json().catch(() => ({}));
  if (answer.status === 401 && !path.startsWith('/session')) onSignedOut();
  throw new ApiError(answer.status, error.code ?? 'unknown', error.message ?? `The gateway answered ${answer.status}.`, error.param, error.request_id);
}

/** Opens a WebSocket. Browsers cannot set headers for it, so the CSRF token is one of the offered subprotocols. */
export function openSocket(path, query) {
  const url = new URL(`/admin/v1${withQuery(path, query)}`, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  return new WebSocket(url, ['realtime', `csrf.${csrf}`]);
}

/** The pause before live events are requested again after a refusal. */
const REOPEN_MS = 3000;

/** Listens to live events. `onState` gets whether the connection works. Returns a function that stops listening. */
export function listen(onEvent, onState) {
  let source = null;
  let timer = null;
  const open = () => {
    source = new EventSource('/admin/v1/events');
    source.onopen = () => onState(true);
    source.onerror = () => {
      onState(false);
      // After a broken connection the browser reconnects with the id of the last event. After a refusal it does not.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
    };
    for (const name of ['call', 'task', 'alert', 'channel']) {
      source.addEventListener(name, (event) => onEvent(name, JSON.parse(event.data)));
    }
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
