// Line icons on a grid of 16 by 16.

import { html } from '../preact.js';

/** The URL of the logo beside the name. */
export const MARK = new URL('../icon.svg', import.meta.url).href;

const PATHS = {
  overview: 'M2 13V3M2 13h12M5 10l3-3 2 2 4-4',
  requests: 'M2 4h12M2 8h12M2 12h8',
  wallets: 'M2 5h10a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2zm0 0a2 2 0 0 1 2-2h7M11 9h.01',
  keys: 'M9.5 6.5a3 3 0 1 0-2.8 3L8 8.2h2V10h2v2h2v-2.2L9.4 6.9',
  models: 'M8 2l6 3v6l-6 3-6-3V5zM2 5l6 3 6-3M8 8v6',
  channels: 'M4 4h8M4 12h8M8 4v8M2 4h.01M14 4h.01M2 12h.01M14 12h.01',
  tasks: 'M3 3h10v10H3zM6.5 6v4l3.5-2z',
  playground: 'M3 4l4 4-4 4M9 12h4',
  alerts: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2',
  audit: 'M4 2h6l3 3v9H4zM7 7h3M7 10h3',
  settings: 'M3 5h6M12 5h1M3 11h1M7 11h6M10.5 3.5v3M5.5 9.5v3',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.5 10.5L14 14',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M6 6h7v7H6zM3 10V3h7',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  warning: 'M8 2.5l6 11H2zM8 7v3M8 12h.01',
  play: 'M5 3l8 5-8 5z',
  plus: 'M8 3v10M3 8h10',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
  text: 'M3 4h10M8 4v9', image: 'M2 3h12v10H2zM2 11l4-4 3 3 2-2 3 3', audio: 'M3 6v4h2l4 3V3L5 6zM12 6a3 3 0 0 1 0 4',
  video: 'M2 4h8v8H2zM10 7l4-2v6l-4-2', tools: 'M10 3a3 3 0 0 0-3 4L3 11l2 2 4-4a3 3 0 0 0 4-3l-2 1-2-2z', thinking: 'M5 11a4 4 0 1 1 6 0v1H5zM6 14h4',
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name] ?? PATHS.more} /></svg>`;
}
