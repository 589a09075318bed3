// Sends a call of the playground and reports its answer piece by piece.

import { request } from '../../api.js';

/** Splits an event stream into events. Its text may arrive in pieces of any size. */
export function splitter(onEvent) {
  let rest = '';
  return (piece) => {
    rest += piece;
    const frames = rest.split(/\r?\n\r?\n/);
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split(/\r?\n/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trimStart()).join('\n');
      if (data) onEvent(data);
    }
  };
}

/** The body as a form, for endpoints that take a file. */
function formOf(body, file) {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) form.append(name, value);
  form.append('file', file);
  return form;
}

/**
 * Runs a call on behalf of `key`. `update` gets the state after each piece: text, thought, images, audio,
 * events with the milliseconds since the call began, headers, status, usage.
 */
export async function run({ path, body, file, headers, key, dialect, signal }, update) {
  const begun = performance.now();
  const state = { text: '', thought: '', images: [], audio: null, task: null, events: [], headers: [], status: null, usage: null, failure: null, firstMs: null, totalMs: null, done: false };
  const take = (data) => {
    const at = performance.now() - begun;
    state.firstMs ??= at;
    state.events.push({ at, data });
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      return;
    }
    if (event.error) state.failure = event.error.message ?? JSON.stringify(event.error);
    const seen = dialect.read(event);
    state.text += seen.text ?? '';
    state.thought += seen.thought ?? '';
    state.images.push(...(seen.images ?? []));
    state.task = seen.task ?? state.task;
    state.usage = seen.usage ?? state.usage;
  };
  const answer = await request('POST', `/play${path}`, file ? formOf(body, file) : body, { headers: { ...headers, 'x-play-key': key }, anyStatus: true, signal });
  state.status = answer.status;
  state.headers = [...answer.headers];
  const kind = answer.headers.get('content-type') ?? '';
  if (kind.startsWith('audio/')) {
    state.audio = URL.createObjectURL(await answer.blob());
  } else if (kind.startsWith('text/event-stream')) {
    const cut = splitter(take);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      cut(piece.value);
      update({ ...state });
    }
    cut('\n\n');
  } else {
    take(await answer.text());
  }
  state.totalMs = performance.now() - begun;
  state.done = true;
  update({ ...state });
  return state;
}
