// Requests to the admin API: one function per method, errors as values of one class, lists page by page.

/** An answer of the admin API that is not a success, or no answer at all (status 0). */
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

/** Tells what happens when the session has ended. */
export function whenSignedOut(callback) {
  onSignedOut = callback;
}

export const get = (path, query) => send('GET', path, query);
export const post = (path, body) => send('POST', path, null, body ?? {});
export const patch = (path, body) => send('PATCH', path, null, body);
export const put = (path, body) => send('PUT', path, null, body);
export const remove = (path) => send('DELETE', path);

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

/** Sends a request and gives the response itself, for streams and files. */
export async function request(method, path, body, options = {}) {
  const headers = { accept: 'application/json', ...options.headers };
  // A form sets its own type, with its boundary.
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

/** Opens a socket. Browsers set no header of one, so the CSRF token is one of the subprotocols that it offers. */
export function openSocket(path, query) {
  const url = new URL(`/admin/v1${withQuery(path, query)}`, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  return new WebSocket(url, ['realtime', `csrf.${csrf}`]);
}

/** When events are asked for again after a refusal. */
const REOPEN_MS = 3000;

/** Live events. `onState` hears whether they come. Gives a function that ends them. */
export function listen(onEvent, onState) {
  let source = null;
  let timer = null;
  const open = () => {
    source = new EventSource('/admin/v1/events');
    source.onopen = () => onState(true);
    source.onerror = () => {
      onState(false);
      // After a broken connection the browser asks again by itself, with the id of the last event. A refusal is final for it.
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
