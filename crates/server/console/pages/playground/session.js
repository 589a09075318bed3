// A realtime session: its socket and the conversation that its events describe, without user interface or audio.

import { openSocket } from '../../api.js';

/** Audio is sent and received as 16-bit samples at this rate. */
export const SAMPLE_RATE = 24000;

export const EMPTY = { turns: [], failure: null };

/** The conversation after one more event of the upstream. A pure function, so that a test can drive it. */
export function withEvent(state, event) {
  const say = (who, text, key) => {
    const last = state.turns.at(-1);
    if (last?.key === key) return { ...state, turns: [...state.turns.slice(0, -1), { ...last, text: last.text + text }] };
    return { ...state, turns: [...state.turns, { who, text, key }] };
  };
  switch (event.type) {
    case 'response.output_text.delta': case 'response.text.delta':
    case 'response.output_audio_transcript.delta': case 'response.audio_transcript.delta':
      return say('model', event.delta ?? '', event.item_id ?? event.response_id);
    case 'conversation.item.input_audio_transcription.completed':
      return say('you', event.transcript ?? '', `${event.item_id} heard`);
    case 'error':
      return { ...state, failure: event.error?.message ?? 'The session reports an error.' };
    default:
      return state;
  }
}

/** The conversation after a text that the user typed. */
export function withUserText(state, text) {
  return { ...state, failure: null, turns: [...state.turns, { who: 'you', text, key: `said ${state.turns.length}` }] };
}

/** The events that send a text and request an answer. */
export function textEvents(text) {
  return [
    { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } },
    { type: 'response.create' },
  ];
}

/** The first event: instructions, and whether the answer is spoken. */
export function setup({ instructions, spoken }) {
  return { type: 'session.update', session: { type: 'realtime', ...(instructions ? { instructions } : {}), output_modalities: [spoken ? 'audio' : 'text'] } };
}

/** Encodes samples between -1 and 1 as base64 of 16-bit integers. */
export function encodeSound(samples) {
  const bytes = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((sample, index) => bytes.setInt16(index * 2, Math.max(-1, Math.min(1, sample)) * 0x7fff, true));
  let text = '';
  for (let at = 0; at < bytes.byteLength; at += 1) text += String.fromCharCode(bytes.getUint8(at));
  return btoa(text);
}

/** Decodes base64 of 16-bit integers to samples. */
export function decodeSound(base64) {
  const text = atob(base64);
  const samples = new Float32Array(text.length >> 1);
  for (let at = 0; at < samples.length; at += 1) {
    const value = text.charCodeAt(at * 2) | (text.charCodeAt(at * 2 + 1) << 8);
    samples[at] = (value >= 0x8000 ? value - 0x10000 : value) / 0x8000;
  }
  return samples;
}

/**
 * Opens a session on behalf of a key. `on` has the callbacks `opened`, `event(event, text, isOurs)` and `closed(reason)`.
 * Returns `{send(event), close()}`.
 */
export function openSession({ model, key, first }, on) {
  const socket = openSocket('/play/v1/realtime', { model, play_key: key });
  let opened = false;
  const send = (event) => {
    const text = JSON.stringify(event);
    socket.send(text);
    on.event(event, text, true);
  };
  socket.onopen = () => { opened = true; on.opened(); send(first); };
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') return;
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      event = {};
    }
    on.event(event, data, false);
  };
  socket.onclose = ({ code, reason }) => on.closed(opened ? `The session ended with code ${code}${reason ? `: ${reason}` : ''}.` : 'The session was refused. A model that is not for sessions, a key without credits or a key of another model is refused; the requests page has the reason.');
  return { send, close: () => socket.close(1000) };
}
