// Calls the gateway with the caller's key, and reads the events of streams.

const STORED = 'tollgate-key';
let key = sessionStorage.getItem(STORED) ?? '';

export const hasKey = () => key !== '';

/** Stores the key for this tab, or removes it if it is empty. */
export function setKey(secret) {
  key = secret;
  if (key) sessionStorage.setItem(STORED, key);
  else sessionStorage.removeItem(STORED);
}

/** An error of the gateway: its code, its message, and the page's advice for the code. */
export class CallError extends Error {
  constructor(status, error) {
    super(error?.message ?? `The gateway answered ${status}.`);
    this.code = error?.code ?? `status ${status}`;
    this.advice = adviceFor(this.code);
  }
}

/** The advice for a code in the page's table of errors. */
function adviceFor(code) {
  const rows = [...document.querySelectorAll('#errors ~ .table-box tbody tr')];
  const row = rows.find((it) => [...it.querySelectorAll('td:nth-child(2) code')].some((cell) => cell.textContent === code));
  return row?.lastElementChild.textContent ?? '';
}

/** Calls an endpoint; throws `CallError` unless the answer is a success. */
export async function call(path, body, signal) {
  const headers = { authorization: `Bearer ${key}` };
  if (body) headers['content-type'] = 'application/json';
  const answer = await fetch(path, { method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal });
  if (answer.ok) return answer;
  let error = null;
  try { error = (await answer.json()).error; } catch { /* not ours: a proxy between us answered */ }
  throw new CallError(answer.status, typeof error?.code === 'number' ? { ...error, code: error.details?.[0]?.reason } : error);
}

/** Yields the data of each event of a stream as it arrives. */
export async function* events(answer) {
  let rest = '';
  for await (const piece of texts(answer.body)) {
    const parts = (rest + piece).split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join('\n');
    }
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
