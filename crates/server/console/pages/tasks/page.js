// Tasks: rows with live progress, and results that play in place.

import { html, useState } from '../../preact.js';
import { get } from '../../api.js';
import { credits, when } from '../../format.js';
import { useList, useLive, useLoad, usePolling } from '../../load.js';
import { address, refine } from '../../router.js';
import { Result } from '../../ui/media.js';
import { Badge, Bar, Card, Empty, Facts, Json, Problem, Skeleton, Time } from '../../ui/components.js';
import { Table } from '../../ui/table.js';

const TONES = { done: 'good', failed: 'bad', cancelled: 'warn', running: '', queued: '' };
const STATUSES = ['queued', 'running', 'done', 'failed', 'cancelled'];

const COLUMNS = [
  { title: 'Task', cell: (task) => html`${task.model}<span class="sub mono">${task.id}</span>` },
  { title: 'Status', cell: (task) => html`<${Badge} tone=${TONES[task.status] ?? ''}>${task.status}<//>${task.error && html`<span class="sub">${task.error}</span>`}` },
  { title: 'Progress', minor: true, cell: (task) => (task.progress === null ? '–' : html`<${Bar} label="Progress" progress part=${task.progress} total=${100} />`) },
  { title: 'Wallet', minor: true, cell: (task) => task.wallet_name ?? task.wallet },
  { title: 'Channel', minor: true, cell: (task) => task.channel },
  { title: 'Credits', minor: true, number: true, cell: (task) => credits(task.charge) },
  { title: 'Created', number: true, cell: (task) => html`<${Time} at=${task.created_at} />` },
];

function One({ id }) {
  const { value: task, error, reload } = useLoad(() => get(`/tasks/${encodeURIComponent(id)}`), [id], { every: usePolling() });
  useLive((name, data) => { if (name === 'task' && data.id === id) reload(); });
  if (!task) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${6} />`}</div>`;
  return html`<div class="page">
    <div class="row wrap"><h2 class="grow">${task.model} <span class="muted mono">${task.id}</span></h2><${Badge} tone=${TONES[task.status] ?? ''}>${task.status}<//></div>
    ${task.error && html`<div class="problem-box">${task.error}</div>`}
    <div class="columns">
      <${Card} title="Result"><div class="answer">${task.results.length ? task.results.map((result) => html`<${Result} key=${result.url} result=${result} />`) : html`<p class="muted">${task.status === 'failed' ? 'There is none.' : 'It appears here when the task is done.'}</p>`}</div><//>
      <${Card} title="Task"><${Facts} rows=${[['Protocol', task.protocol], ['Channel', task.channel], ['Wallet', html`<a class="link" href=${address(['wallets', task.wallet])}>${task.wallet_name ?? task.wallet}</a>`],
        ['Progress', task.progress !== null && `${task.progress} %`], ['Created', when(task.created_at)], ['Ended', task.ended_at && when(task.ended_at)], ['Charged', credits(task.charge)], ['Polls', task.polls]]} /><//>
    </div>
    <${Card} title="The row as JSON"><${Json} value=${task} /><//>
  </div>`;
}

function List({ query }) {
  const list = useList('/tasks', { status: query.status });
  const [moved, setMoved] = useState({});
  useLive((name, task) => { if (name === 'task') setMoved((before) => ({ ...before, [task.id]: task })); });
  const rows = list.rows?.map((task) => ({ ...task, ...moved[task.id] }));
  const newTasks = Object.values(moved).filter((task) => !query.status && rows && !rows.some(({ id }) => id === task.id));
  return html`<div class="page">
    <div class="filters"><select aria-label="Status" value=${query.status ?? ''} onChange=${(event) => refine({ status: event.target.value })}><option value="">Every status</option>${STATUSES.map((status) => html`<option key=${status} value=${status}>${status}</option>`)}</select></div>
    <${Card} pad=${false}><${Table} label="Tasks" columns=${COLUMNS} list=${{ ...list, rows: rows && [...newTasks, ...rows] }} rowKey=${(task) => task.id} href=${(task) => address(['tasks', task.id])}
      empty=${html`<${Empty} title="No task"><p>Video calls make tasks. Try one in the <a class="link" href=${address('playground', { kind: 'video' })}>playground</a>.</p><//>`} /><//>
  </div>`;
}

export function View({ rest, query }) {
  return rest[0] ? html`<${One} key=${rest[0]} id=${rest[0]} />` : html`<${List} query=${query} />`;
}
