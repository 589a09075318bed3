// Overview: problems that need attention, four figures, requests over time, top spenders, and the last calls.

import { html, useState } from '../../preact.js';
import { get } from '../../api.js';
import { count, countShort, creditsOfMicro, creditsShort, duration, percent } from '../../format.js';
import { useLive, useLoad, usePolling } from '../../load.js';
import { address, refine } from '../../router.js';
import { Chart, Spark } from '../../ui/chart.js';
import { Icon } from '../../ui/icon.js';
import { Bar, Card, Code, Empty, Problem, Skeleton, Tabs } from '../../ui/components.js';
import { CallTable } from '../../ui/call-table.js';

const HOUR = 3_600_000;
const RANGES = { '1h': ['Last hour', HOUR, 'minute'], '24h': ['Last 24 hours', 24 * HOUR, 'hour'], '7d': ['Last 7 days', 168 * HOUR, 'hour'], '30d': ['Last 30 days', 720 * HOUR, 'day'] };
const TAIL = 10;

/** The time span in the address: a range up to now, or a span that was selected in the chart. */
function spanOf(query) {
  if (query.from && query.to) {
    const [from, to] = [Number(query.from), Number(query.to)];
    // The gateway keeps minute figures for two days.
    const hasMinutes = from > Date.now() - 47 * HOUR;
    return { from, to, step: hasMinutes && to - from <= 3 * HOUR ? 'minute' : to - from <= 240 * HOUR ? 'hour' : 'day' };
  }
  const [, length, step] = RANGES[query.range] ?? RANGES['24h'];
  const to = Date.now();
  return { from: to - length, to, step };
}

const STEPS = { minute: 60_000, hour: HOUR, day: 24 * HOUR };

/** All buckets of the span, including those without calls, so that the line does not skip them. */
export function filled(rows, from, to, step) {
  const length = STEPS[step];
  const known = new Map(rows.map((row) => [row.at, row]));
  // Align the buckets with the gateway's rows; without rows, with whole steps.
  const first = rows.length ? rows[0].at - Math.ceil((rows[0].at - from) / length) * length : from - (from % length);
  const buckets = [];
  for (let at = first; at < to; at += length) {
    if (at + length <= from) continue;
    buckets.push(known.get(at) ?? { at, requests: 0, errors: 0, input_tokens: 0, output_tokens: 0, charge_micro: '0' });
  }
  return buckets;
}

async function fetchOverview(query) {
  const { from, to, step } = spanOf(query);
  const series = (by, more) => get('/usage', { from, to, by, ...more });
  const [now, totals, before, models, wallets, channels, attention] = await Promise.all([
    series('', { step }), series(''), get('/usage', { from: from - (to - from), to: from }), series('model'), series('wallet'), series('channel'), get('/attention'),
  ]);
  return { rows: filled(now.data, from, to, step), totals: totals.data[0], before: before.data[0], models: models.data, wallets: wallets.data, channels: channels.data, attention: attention.data };
}

function Attention({ rows }) {
  if (!rows.length) return html`<div class="attention"><div class="calm"><${Icon} name="check" />Nothing needs attention.</div></div>`;
  return html`<div class="attention">${rows.map(({ severity, message, link }) => html`
    <a key=${message} class=${severity} href=${link}><${Icon} name="warning" />${message}</a>`)}</div>`;
}

function Figure({ name, value, unit, change, values }) {
  return html`<div class="card figure"><span class="name">${name}</span>
    <span><span class="value">${value}</span>${unit && html`<span class="unit">${unit}</span>`}</span>
    <span class="change">${change}</span><${Spark} values=${values} label=${`${name} over time`} /></div>`;
}

/** The change from the previous span of the same length. */
function changeOf(now, before) {
  if (!before) return now ? 'none in the previous period' : 'as in the previous period';
  const share = (100 * (now - before)) / before;
  if (Math.abs(share) < 0.5) return 'as in the previous period';
  if (share > 900) return `▲ ${count(Math.round(now / before))} times the previous period`;
  return `${share > 0 ? '▲' : '▼'} ${Math.abs(share).toLocaleString('en', { maximumFractionDigits: 0 })} % from the previous period`;
}

function Figures({ rows, totals, before }) {
  const of = (member) => [Number(totals?.[member] ?? 0), Number(before?.[member] ?? 0)];
  const [requests, requestsBefore] = of('requests');
  const [charge, chargeBefore] = of('charge_micro');
  const [errors, errorsBefore] = of('errors');
  const [wait, waitBefore] = of('first_byte_p95_ms');
  return html`<div class="figures">
    <${Figure} name="Requests" value=${countShort(requests)} change=${changeOf(requests, requestsBefore)} values=${rows.map((row) => row.requests)} />
    <${Figure} name="Charged" value=${creditsShort(charge)} unit="credits" change=${changeOf(charge, chargeBefore)} values=${rows.map((row) => Number(row.charge_micro))} />
    <${Figure} name="Error rate" value=${percent(errors, requests)} change=${changeOf(errors / Math.max(1, requests), errorsBefore / Math.max(1, requestsBefore))} values=${rows.map((row) => row.errors / Math.max(1, row.requests))} />
    <${Figure} name="First byte, 95th percentile" value=${duration(totals?.first_byte_p95_ms)} change=${changeOf(wait, waitBefore)} values=${rows.map((row) => row.first_byte_p95_ms ?? 0)} />
  </div>`;
}

const RANKS = {
  models: ['Models', (row) => row.model, (row) => address('requests', { model: row.model })],
  wallets: ['Wallets', (row) => row.wallet_name ?? row.wallet, (row) => address(['wallets', row.wallet])],
  channels: ['Channels', (row) => row.channel, (row) => address(['channels', row.channel])],
};

/** The models, wallets or channels with the highest charges. */
function Ranking({ value, chosen }) {
  const [, name, link] = RANKS[chosen];
  const rows = value[chosen].filter((row) => name(row)).sort((one, other) => Number(other.charge_micro) - Number(one.charge_micro)).slice(0, 7);
  const top = Number(rows[0]?.charge_micro ?? 0);
  return html`<${Card} pad=${false}>
    <${Tabs} tabs=${Object.entries(RANKS).map(([id, [title]]) => [id, title])} chosen=${chosen} choose=${(id) => refine({ rank: id })} />
    ${rows.length ? html`<table aria-label=${`${RANKS[chosen][0]} by credits`}><thead><tr><th scope="col">Name</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Credits</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${name(row)}><td class="fill"><a class="cut" href=${link(row)} title=${name(row)}>${name(row)}</a><${Bar} label="Share of the first" progress part=${Number(row.charge_micro)} total=${top} /></td><td class="number">${count(row.requests)}</td><td class="number" title=${`${creditsOfMicro(row.charge_micro)} credits`}>${creditsShort(row.charge_micro)}</td></tr>`)}</tbody>
    </table>` : html`<${Empty} title="Nothing in this span of time" />`}
  <//>`;
}

const amount = (row, member) => (row[member] === null || row[member] === undefined ? null : Number(row[member]) / 1e6);
const inCredits = (value) => creditsShort(value * 1e6);
const CHARTS = {
  requests: ['Requests', 'Requests by outcome', (rows) => [
    { label: 'answered', color: '--series-1', values: rows.map((row) => row.requests - row.errors) },
    { label: 'failed', color: '--series-2', values: rows.map((row) => row.errors) }]],
  tokens: ['Tokens', 'Tokens', (rows) => [
    { label: 'in', color: '--series-1', values: rows.map((row) => row.input_tokens), value: countShort },
    { label: 'out', color: '--series-4', values: rows.map((row) => row.output_tokens), value: countShort }]],
  credits: ['Credits', 'Credits charged, and the margin where costs are known', (rows) => [
    { label: 'charged', color: '--series-1', values: rows.map((row) => amount(row, 'charge_micro')), value: inCredits },
    ...(rows.some((row) => amount(row, 'cost_micro')) ? [
      { label: 'cost', color: '--series-3', values: rows.map((row) => amount(row, 'cost_micro')), value: inCredits },
      { label: 'margin', color: '--series-4', values: rows.map((row) => amount(row, 'margin_micro')), value: inCredits }] : [])]],
  latency: ['Latency', 'Time of whole calls', (rows) => percentiles(rows, 'latency')],
  first_byte: ['First byte', 'Time to the first byte', (rows) => percentiles(rows, 'first_byte')],
};

function percentiles(rows, name) {
  return [['median', 'p50', '--series-1'], ['95th percentile', 'p95', '--series-3']].map(([label, part, color]) => ({
    label, color, values: rows.map((row) => row[`${name}_${part}_ms`] ?? null), value: duration,
  }));
}

function Series({ rows, chosen, brush }) {
  const [, title, series] = CHARTS[chosen];
  return html`<${Card} pad=${false}>
    <${Tabs} tabs=${Object.entries(CHARTS).map(([id, [short]]) => [id, short])} chosen=${chosen} choose=${(id) => refine({ chart: id })} />
    <div class="body"><${Chart} key=${chosen} label=${`${title} over time`} brush=${brush} times=${rows.map((row) => row.at)} series=${series(rows)} /></div>
  <//>`;
}

/** The newest calls, kept current by live events. */
function Tail() {
  const [newCalls, setNewCalls] = useState([]);
  const { value, error } = useLoad(() => get('/calls', { limit: TAIL }), [], { every: usePolling() });
  useLive((name, call) => { if (name === 'call') setNewCalls((before) => [call, ...before].slice(0, TAIL)); });
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<${Skeleton} />`;
  const known = new Set(newCalls.map((call) => call.request_id));
  const rows = [...newCalls, ...value.data.filter((call) => !known.has(call.request_id))].sort((one, other) => other.at - one.at).slice(0, TAIL);
  return html`<${CallTable} list=${{ rows, cursor: null }} keys=${false} />`;
}

export function View({ query }) {
  const { value, error, reload } = useLoad(() => fetchOverview(query), [JSON.stringify(query)], { every: 15000 });
  const brush = (from, to) => refine({ from: Math.floor(from), to: Math.ceil(to), range: undefined });
  const choice = html`<select aria-label="Span of time" value=${query.from ? 'brushed' : query.range ?? '24h'} onChange=${(event) => refine({ range: event.target.value, from: undefined, to: undefined })}>
    ${query.from && html`<option value="brushed">Chosen span</option>`}
    ${Object.entries(RANGES).map(([id, [title]]) => html`<option key=${id} value=${id}>${title}</option>`)}
  </select>`;
  if (!value) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`}</div>`;
  const { rows, totals, before, attention } = value;
  const total = totals?.requests ?? 0;
  return html`<div class="page">
    <div class="row wrap top-aligned"><div class="grow"><${Attention} rows=${attention} /></div><div>${choice}</div></div>
    <${Problem} error=${error} retry=${reload} />
    <${Figures} rows=${rows} totals=${totals} before=${before} />
    ${total === 0 ? html`<${Card}><${Empty} title="No calls in this span of time">
        <p>Create a key, then send a first call. It appears here at once.</p>
        <${Code} text=${'curl "$TOLLGATE/v1/chat/completions" -H "authorization: Bearer $KEY" \\\n  -H "content-type: application/json" \\\n  -d \'{"model": "MAKER/MODEL", "messages": [{"role": "user", "content": "Hello"}]}\''} />
        <p><a class="link" href=${address('keys', { create: 1 })}>Create a key</a> or <a class="link" href=${address('playground')}>try the playground</a>.</p>
      <//><//>` : html`
    <div class="columns wide-first">
      <${Series} rows=${rows} chosen=${CHARTS[query.chart] ? query.chart : 'requests'} brush=${brush} />
      <${Ranking} value=${value} chosen=${RANKS[query.rank] ? query.rank : 'models'} />
    </div>`}
    <${Card} title="Last calls" pad=${false} actions=${html`<a class="link" href="#/requests">All requests</a>`}><${Tail} /><//>
  </div>`;
}
