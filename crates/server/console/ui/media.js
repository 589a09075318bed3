// Results of tasks: videos, pictures and audio that play in place.

import { html } from '../preact.js';
import { useSession } from '../load.js';

/** Plays a result that the gateway stores. Others are links, because the page loads nothing from other hosts. */
export function Result({ result }) {
  const { public_url: publicUrl } = useSession();
  const isOurs = [location.origin, new URL(publicUrl, location.href).origin].includes(new URL(result.url, location.href).origin);
  if (!isOurs) return html`<p>The ${result.kind} is kept by the upstream: <a class="link" href=${result.url} target="_blank" rel="noreferrer">open it</a></p>`;
  if (result.kind === 'video') return html`<video controls preload="metadata" src=${result.url}></video>`;
  if (result.kind === 'image') return html`<img src=${result.url} alt="The task's picture" />`;
  return html`<audio controls src=${result.url}></audio>`;
}
