// Short messages at the edge of the page that disappear by themselves.

import { html, useEffect, useState } from '../preact.js';

const listeners = new Set();
let last = 0;

/** Shows a message of success or, with the tone `bad`, of failure. */
export function toast(text, tone = 'good') {
  const message = { id: ++last, text, tone };
  for (const listener of listeners) listener(message);
}

export function Toasts() {
  const [messages, setMessages] = useState([]);
  useEffect(() => {
    const add = (message) => {
      setMessages((before) => [...before.slice(-3), message]);
      setTimeout(() => setMessages((before) => before.filter(({ id }) => id !== message.id)), 6000);
    };
    listeners.add(add);
    return () => listeners.delete(add);
  }, []);
  return html`<div class="toasts" role="status">${messages.map(({ id, text, tone }) => html`<div key=${id} class="toast ${tone}">${text}</div>`)}</div>`;
}
