// Results of tasks: videos, pictures and audio that play in place.

import { html } from '../preact.js';
import { useSession } from '../load.js';

/** Plays a result that the gateway stores or that came with the answer. Others are links, because the page loads nothing from other hosts. */
export function Result({ result }) {
  const { public_url: publicUrl } = useSession();
  const { protocol, origin } = new URL(result.url, location.href);
  const isOurs = ['data:', 'blob:'].includes(protocol) || [location.origin, new URL(publicUrl, location.href).origin].includes(origin);
  if (!isOurs) return html`<p>The ${result.kind} is kept by the upstream: <a class="link" href=${result.url} target="_blank" rel="noreferrer">open it</a></p>`;
  if (result.kind === 'video') return html`<video controls preload="metadata" src=${result.url}></video>`;
  if (result.kind === 'image') return html`<img src=${result.url} alt="The generated picture" />`;
  return html`<audio controls src=${result.url}></audio>`;
}
