// The answer of a playground call: rendered, as events with the times between them, and its headers.

import { html, useEffect, useState } from '../../preact.js';
import { get } from '../../api.js';
import { count, credits, duration } from '../../format.js';
import { address } from '../../router.js';
import { Result } from '../../ui/media.js';
import { Badge, Bar, Card, Empty, Problem } from '../../ui/components.js';

/** The polling interval of a task. */
const TASK_POLL_MS = 1500;

const header = (outcome, name) => outcome.headers.find(([key]) => key === name)?.[1];

export function Answer({ outcome, model }) {
  if (!outcome) return html`<${Card} title=${model}><${Empty} title="No answer yet"><p>Press “Send”, or Ctrl-Enter.</p><//><//>`;
  const { text, thought, images, audio, task, failure, status } = outcome;
  return html`<${Card} title=${model} actions=${status && html`<${Badge} tone=${status < 400 && !failure ? 'good' : 'bad'}>${status}<//>`} pad=${false}>
    <div class="answer" aria-live="polite">
      ${thought && html`<div class="thought">${thought}</div>`}${text}
      ${images.map((source) => html`<${Result} key=${source.slice(-40)} result=${{ kind: 'image', url: source }} />`)}
      ${audio && html`<audio controls src=${audio}></audio>`}
      ${task && html`<${Task} key=${task} id=${task} />`}
      ${failure && html`<div class="problem-box">${failure}</div>`}
    </div>
    <${Figures} outcome=${outcome} />
  <//>`;
}

/** The task that the call created: its progress, then its result. */
function Task({ id }) {
  const [task, setTask] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let timer = null;
    let gone = false;
    const look = async () => {
      try {
        const now = await get(`/tasks/${encodeURIComponent(id)}`);
        if (gone) return;
        setError(null);
        setTask(now);
        if (now.ended_at) return;
      } catch (failure) {
        if (gone) return;
        setError(failure);
      }
      timer = setTimeout(look, TASK_POLL_MS);
    };
    look();
    return () => { gone = true; clearTimeout(timer); };
  }, [id]);
  return html`<div class="stack tight"><p>Task <a class="link mono" href=${address(['tasks', id])}>${id}</a> ${task ? html`<${Badge} tone=${task.status === 'done' ? 'good' : task.ended_at ? 'bad' : ''}>${task.status}<//>` : 'was created.'}</p>
    ${task && !task.ended_at && task.progress !== null && html`<${Bar} label="Progress" progress part=${task.progress} total=${100} />`}
    ${(task?.results ?? []).map((result) => html`<${Result} key=${result.url} result=${result} />`)}${task?.error && html`<div class="problem-box">${task.error}</div>`}<${Problem} error=${error} /></div>`;
}

/** Times, tokens and credits of the call, and the dropped members of the request. */
function Figures({ outcome }) {
  const dropped = header(outcome, 'x-dropped-params');
  const id = header(outcome, 'x-request-id');
  const parts = [
    outcome.firstMs !== null && `first event after ${duration(outcome.firstMs)}`, outcome.done && `ended after ${duration(outcome.totalMs)}`,
    outcome.call?.input_tokens != null && `${count(outcome.call.input_tokens)} tokens in, ${count(outcome.call.output_tokens)} out`,
    outcome.call && `${credits(outcome.call.charge)} credits`,
  ].filter(Boolean);
  return html`<div class="body stack tight muted"><div>${parts.join(' · ')}${outcome.call && html` · <a class="link" href=${address(['requests', id])}>explained</a>`}</div>
    ${dropped && html`<div>Dropped, because the upstream cannot take it: ${dropped.split(',').map((name) => html`<span key=${name} class="chip mono">${name.trim()}</span> `)}</div>`}</div>`;
}

export function Events({ outcome }) {
  if (!outcome?.events.length) return html`<${Empty} title="No event yet"><p>The raw events of the answer appear here, with the time since the one before.</p><//>`;
  return html`<div class="events" tabindex="0" role="region" aria-label="Raw events">${outcome.events.map(({ at, data }, index) => html`<div key=${index}><span class="at">${index ? `+${duration(at - outcome.events[index - 1].at)}` : duration(at)}</span><span class="data">${data}</span></div>`)}</div>`;
}

export function Headers({ outcome }) {
  if (!outcome?.headers.length) return html`<${Empty} title="No answer yet"><p>The headers of the answer appear here.</p><//>`;
  return html`<div class="events" tabindex="0" role="region" aria-label="Headers of the answer">${outcome.headers.map(([name, value]) => html`<div key=${name}><span class="data"><strong>${name}</strong>: ${value}</span></div>`)}</div>`;
}
