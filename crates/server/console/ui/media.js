// Results of tasks: videos, pictures and audio that play in place.

import { html } from '../preact.js';
import { useSession } from '../load.js';

/** The parsed address, or an empty object for a text that is none. */
function parsed(url) {
  try {
    return new URL(url, location.href);
  } catch {
    return {};
  }
}

/** Plays a result that the gateway stores or that came with the answer. Others are links, because the page loads nothing from other hosts. */
export function Result({ result }) {
  const { public_url: publicUrl } = useSession();
  const { protocol, origin } = parsed(result.url);
  const isOurs = ['data:', 'blob:'].includes(protocol) || (origin && [location.origin, parsed(publicUrl).origin].includes(origin));
  // A text that is no address, and addresses that a browser must not open for an upstream.
  if (!isOurs && !['http:', 'https:'].includes(protocol)) return html`<p>The ${result.kind} has an address that cannot be opened: <span class="mono">${result.url}</span></p>`;
  if (!isOurs) return html`<p>The ${result.kind} is kept by the upstream: <a class="link" href=${result.url} target="_blank" rel="noreferrer">open it</a></p>`;
  if (result.kind === 'video') return html`<video controls preload="metadata" src=${result.url}></video>`;
  if (result.kind === 'image') return html`<img src=${result.url} alt="The generated picture" />`;
  return html`<audio controls src=${result.url}></audio>`;
}
