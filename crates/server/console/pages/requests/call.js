// Details of one call: its timing, the routes that were tried, its cost and how it was computed.

import { html, useEffect, useRef } from '../../preact.js';
import { get } from '../../api.js';
import { count, credits, creditsOfMicro, duration } from '../../format.js';
import { useLoad, useSession } from '../../load.js';
import { address } from '../../router.js';
import { Badge, Card, Code, CopyButton, Facts, Json, Problem, Skeleton, Time } from '../../ui/components.js';
import { Status } from '../../ui/call-table.js';

/** The spans of a call, in milliseconds from its arrival. The times of the routes that were left are not known. */
function spans(call) {
  const { admitted_ms: admitted, queued_ms: queued, upstream_ms: upstream, first_byte_ms: first, total_ms: total } = call.timings;
  const list = [];
  if (admitted !== null) {
    if (queued) list.push(['Waited for the ledger', admitted - queued, admitted, 'wait']);
    list.push(['Admission', 0, admitted, '']);
  } else {
    list.push(['Refused', 0, total, 'bad']);
  }
  if (upstream !== null) list.push([`Upstream ${call.channel ?? ''}`, admitted ?? 0, upstream, '']);
  if (first !== null) list.push([call.stream ? 'Stream' : 'Answer', first, total, '']);
  return list;
}

function Track({ from, to, total, tone }) {
  const bar = useRef(null);
  useEffect(() => {
    bar.current.style.left = `${(100 * from) / total}%`;
    bar.current.style.width = `${(100 * Math.max(0, to - from)) / total}%`;
  }, [from, to, total]);
  return html`<div class="track"><span ref=${bar} class=${tone}></span></div>`;
}

function Waterfall({ call }) {
  const total = Math.max(call.timings.total_ms, 0.001);
  return html`<div class="waterfall">${spans(call).map(([name, from, to, tone]) => html`
    <span key=${name}>${name}</span><${Track} from=${from} to=${to} total=${total} tone=${tone} /><span class="number">${duration(to - from)}</span>`)}
  </div>`;
}

/** The unit of a price. */
const per = (units) => (units === 1 ? 'each' : units === 1e6 ? 'per million' : `per ${count(units)}`);

function Receipt({ call }) {
  const { price, settlement } = call;
  if (!price) return html`<p class="muted">${settlement ? 'The hold was released. Nothing was charged.' : 'Nothing was held for this call.'}</p>`;
  return html`<table class="receipt" aria-label="Price lines"><thead><tr><th scope="col">What</th><th scope="col" class="number">Credits</th></tr></thead>
    <tbody>${price.lines.map((line) => html`<tr key=${line.name}><td>${line.name}<span class="sub">${count(line.quantity)}${line.price === null ? ', which has no price' : ` at ${line.price} ${per(line.per)}`}</span></td><td class="number">${line.amount ?? '–'}</td></tr>`)}
      <tr class="sum"><td>Exact</td><td class="number">${price.exact ?? '–'}</td></tr>
      <tr><td>Rounded up once, to a micro-credit</td><td class="number">${credits(price.charge)}</td></tr>
      ${call.cost !== null && call.cost !== undefined && html`<tr><td>Cost at the upstream</td><td class="number">${credits(call.cost)}</td></tr><tr><td>Margin</td><td class="number">${creditsOfMicro(BigInt(call.charge_micro) - BigInt(call.cost_micro))}</td></tr>`}</tbody></table>`;
}

/** Links to repeat the call. Without its body, the playground starts with its endpoint, model and key. */
function Replay({ call }) {
  const session = useSession();
  if (!session.can('operator')) return html`<span class="muted">Sending it again needs the role operator.</span>`;
  const title = call.request_body ? 'With the same body' : 'The journal keeps no bodies ([journal] bodies), so only endpoint, model and key are the same';
  return html`<a class="button" title=${title} href=${address('playground', { call: call.request_id })}>Open in playground</a>`;
}

export function Call({ id }) {
  const { value: call, error, reload } = useLoad(() => get(`/calls/${encodeURIComponent(id)}`), [id]);
  if (error) return html`<div class="page"><${Problem} error=${error} retry=${reload} /></div>`;
  if (!call) return html`<div class="page"><${Skeleton} lines=${8} /></div>`;
  return html`<div class="page">
    <div class="row wrap"><${Status} call=${call} />${call.code && html`<span class="mono">${call.code}</span>`}<span class="mono muted">${call.request_id}</span><${CopyButton} text=${call.request_id} label="Copy id" /><span class="muted"><${Time} at=${call.at} /></span><span class="grow"></span>
      <${Replay} call=${call} /></div>
    <div class="columns">
      <div class="stack wide-gap">
        <${Card} title="Call"><${Facts} rows=${[
          ['Model', call.model && html`<a class="link" href=${address(['models', ...call.model.split('/')])}>${call.model}</a>`], call.named_model && ['Named by the caller', html`<a class="link" href=${address(['models', ...call.named_model.split('/')])}>${call.named_model}</a>`], ['Endpoint', html`<span class="mono">${call.endpoint}</span>`],
          ['Wallet', call.wallet && html`<a class="link" href=${address(['wallets', call.wallet])}>${call.wallet_name ?? call.wallet}</a>`],
          ['Key', call.key && html`<a class="link" href=${address(['keys', call.key])}>${call.key_name ?? call.key}</a>`],
          [call.code ? 'Failed at' : 'Answered by', call.channel && html`<a class="link" href=${address(['channels', call.channel])}>${call.channel}</a> as <span class="mono">${call.upstream_model}</span>`],
          ['Tokens', call.input_tokens !== null && `${count(call.input_tokens)} in, ${count(call.output_tokens)} out`],
          ['Streamed', call.stream ? 'yes' : 'no'], ['Outcome', call.outcome ?? 'refused before anything was held'],
          ['Dropped parameters', call.dropped_params.length > 0 && call.dropped_params.map((name) => html`<span key=${name} class="chip mono">${name}</span> `)],
        ]} /><//>
        <${Card} title="Receipt" pad=${!call.price}><${Receipt} call=${call} />
          ${call.settlement && html`<div class=${call.price ? 'body muted' : 'muted'}>${call.settlement.held !== null && `Held ${credits(call.settlement.held)}, `}${call.settlement.kind} as <a class="link" href=${address(['wallets', call.wallet])}>entry ${call.settlement.seq}</a>${call.settlement.basis && ` (${call.settlement.basis})`}.</div>`}<//>
      </div>
      <div class="stack wide-gap">
        <${Card} title="Where the time went"><${Waterfall} call=${call} /><//>
        <${Card} title="Routes">${call.attempts.length ? html`<div class="stack tight">${call.attempts.map((attempt, index) => html`
          <div key=${index} class="row wrap"><${Badge} tone=${attempt.reason ? 'warn' : 'good'}>${attempt.passed_over ? 'passed over' : attempt.reason ? 'left' : 'answered'}<//><strong>${attempt.channel}</strong>${attempt.fallback && html`<span class="chip mono">${attempt.fallback}</span>`}<span class="muted">${attempt.reason?.replace(/^passed over \((.*)\)$/, '$1 used up') ?? attempt.model ?? ''}</span></div>`)}</div>`
          : html`<p class="muted">The call ended before a route was tried.</p>`}
          ${call.upstream_text && html`<div class="stack tight"><p class="muted">What the upstream said</p><${Code} text=${call.upstream_text} /></div>`}<//>
      </div>
    </div>
    ${(call.request_body || call.response_body) && html`<div class="columns">
      ${call.request_body && html`<${Card} title="Request"><${Code} text=${call.request_body} /><//>`}
      ${call.response_body && html`<${Card} title="Answer"><${Code} text=${call.response_body} /><//>`}</div>`}
    <${Card} title="The row as JSON"><${Json} value=${call} depth=${1} /><//>
  </div>`;
}
