// Channels: health over the last hour, a probe call, and adding a vendor with its models.

import { html, useState } from '../../preact.js';
import { getAll, patch, post } from '../../api.js';
import { count, duration, percent, when } from '../../format.js';
import { useLive, useLoad, useSession } from '../../load.js';
import { address, refine } from '../../router.js';
import { Badge, Button, Card, Code, Empty, Facts, Problem, Skeleton } from '../../ui/components.js';
import { FormDialog } from '../../ui/dialog.js';
import { toast } from '../../ui/toast.js';
import { AddDialog } from './add.js';

const STATES = { up: ['good', 'up'], degraded: ['warn', 'degraded'], down: ['bad', 'down'], paused: ['warn', 'paused'], off: ['', 'off'] };

/** One mark for each minute: no calls, no failures, some failures, mostly failures. */
function Strip({ minutes }) {
  const tone = ({ requests, errors }) => (requests === 0 ? '' : errors * 2 > requests ? 'bad' : errors > 0 ? 'warn' : 'good');
  const failed = minutes.reduce((total, minute) => total + minute.errors, 0);
  return html`<div class="strip" role="img" aria-label=${`Health over the last hour: ${failed} failed calls`}>${minutes.map((minute) => html`
    <span key=${minute.at} class=${tone(minute)} title=${`${when(minute.at)}: ${minute.requests} calls, ${minute.errors} failed`}></span>`)}</div>`;
}

/** Asks for confirmation before a channel is disabled or enabled. */
function SwitchDialog({ channel, close, done }) {
  const enabled = !channel.enabled;
  const send = async () => {
    const { models_out: out } = await patch(`/channels/${encodeURIComponent(channel.name)}`, { enabled });
    toast(enabled ? `${channel.name} is in use again.` : `${channel.name} is out of use.${out.length ? ` Not callable now: ${out.join(', ')}.` : ''}`);
    done();
  };
  const title = enabled ? 'Enable channel' : 'Disable channel';
  return html`<${FormDialog} title=${title} action=${title} danger=${!enabled} send=${send} close=${close}>
    <p>${enabled ? `New calls may be sent to ${channel.name} again.` : `No new call is sent to ${channel.name}. Calls that run and tasks that are open there finish. Models without another route cannot be called until it is enabled.`}</p>
  <//>`;
}

function ChannelCard({ channel, session, reload }) {
  const [switching, setSwitching] = useState(false);
  const [probing, setProbing] = useState(false);
  const [probe, setProbe] = useState(null);
  const [tone, word] = STATES[channel.state] ?? ['', channel.state];
  const run = async () => {
    setProbing(true);
    try {
      const outcome = await post(`/channels/${encodeURIComponent(channel.name)}/probe`);
      setProbe(outcome);
      toast(outcome.ok ? `${channel.name} answered in ${duration(outcome.total_ms)}.` : `${channel.name} failed: ${outcome.message}`, outcome.ok ? 'good' : 'bad');
    } catch (error) {
      toast(error.message, 'bad');
    } finally {
      setProbing(false);
    }
  };
  const { requests, errors } = channel.last_hour;
  return html`<${Card} title=${html`<a href=${address('requests', { channel: channel.name })}>${channel.name}</a>`} actions=${html`<${Badge} tone=${tone}>${word}<//>`}>
    <div class="stack">
      <${Strip} minutes=${channel.minutes} />
      ${channel.reason && html`<p class=${tone === 'bad' ? 'problem-box' : 'warning'}>${channel.reason}</p>`}
      <${Facts} rows=${[
        ['Preset', channel.preset], ['Protocols', channel.protocols.join(', ')], ['Calls', `${count(requests)} in the last hour, ${percent(errors, requests)} failed`],
        ['First byte', `${duration(channel.first_byte_p50_ms)} median, ${duration(channel.first_byte_p95_ms)} 95th percentile`],
        ['Errors', Object.entries(channel.errors_by_kind).map(([kind, number]) => `${kind} ${number}`).join(', ')],
        ['Connections', `${count(channel.connections_open)} open`], ['Models', count(channel.models)],
        probe && ['Probe', probe.ok ? `answered with ${probe.status} in ${duration(probe.total_ms)}` : probe.message],
      ]} />
      ${session.can('operator') && html`<div class="row end"><${Button} small onClick=${() => setSwitching(true)}>${channel.enabled ? 'Disable' : 'Enable'}<//><${Button} small busy=${probing} onClick=${run}>Probe<//></div>`}
    </div>
    ${switching && html`<${SwitchDialog} channel=${channel} close=${() => setSwitching(false)} done=${() => { setSwitching(false); reload(); }} />`}
  <//>`;
}

export function View({ rest, query }) {
  const session = useSession();
  const { value, error, reload } = useLoad(() => getAll('/channels'), [], { every: 15000 });
  useLive((name) => { if (name === 'channel') reload(); });
  if (!value) return html`<div class="page">${error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`}</div>`;
  const rows = value.filter((channel) => !rest[0] || channel.name === rest[0]);
  const close = () => refine({ add: undefined });
  return html`<div class="page">
    <div class="row"><p class="grow muted">${rest[0] ? html`<a class="link" href=${address('channels')}>All channels</a>` : 'Each channel is one upstream with its credential.'}</p>
      ${session.can('owner') && html`<${Button} kind="primary" icon="plus" onClick=${() => refine({ add: 1 })}>Add channel<//>`}</div>
    ${rows.length ? html`<div class="channel-grid">${rows.map((channel) => html`<${ChannelCard} key=${channel.name} channel=${channel} session=${session} reload=${reload} />`)}</div>`
      : html`<${Card}>${rest[0] ? html`<${Empty} title="No such channel"><p>No channel has the name ${rest[0]}.</p><//>`
        : html`<${Empty} title="No channel yet"><p>Add one with a vendor's key, or write it into the configuration:</p><${Code} text=${'[[channel]]\nname = "main"\npreset = "openai"\ncredential = { env = "OPENAI_API_KEY" }'} /><//>`}<//>`}
    ${query.add && session.can('owner') && html`<${AddDialog} channels=${value} close=${close} done=${() => { close(); reload(); }} />`}
  </div>`;
}
