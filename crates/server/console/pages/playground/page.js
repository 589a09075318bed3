// Playground: a call of any dialect to one or two models, with the answer, the raw events, the headers and the code.

import { html, useEffect, useMemo, useRef, useState } from '../../preact.js';
import { get } from '../../api.js';
import { credits, duration } from '../../format.js';
import { useLoad, useSession } from '../../load.js';
import { address } from '../../router.js';
import { asCode } from '../../snippets.js';
import { Badge, Button, Card, Code, Empty, Field, Problem, Tabs } from '../../ui/parts.js';
import { DIALECTS, tidy } from './dialects.js';
import { run } from './run.js';

const FIRST = { dialect: 'chat', model: '', other: '', key: '', system: '', prompt: 'Say hello in one sentence.', outputMax: 256, temperature: '' };

/** The form's values, with those of an earlier call when the address names one. */
function useForm(query, models, keys) {
  const [form, setForm] = useState({ ...FIRST, model: query.model ?? '' });
  useEffect(() => {
    if (!form.model && models.length) setForm((before) => ({ ...before, model: models.find((model) => model.kind === 'text' && model.callable)?.id ?? '' }));
  }, [models]);
  useEffect(() => {
    if (!form.key && keys.length) setForm((before) => ({ ...before, key: keys[0].id }));
  }, [keys]);
  return [form, setForm];
}

function Answer({ outcome, model }) {
  if (!outcome) return html`<${Card} title=${model}><${Empty} title="No answer yet"><p>Press “Send”, or Ctrl-Enter.</p><//><//>`;
  const { text, thought, images, audio, task, failure, status } = outcome;
  return html`<${Card} title=${model} actions=${outcome.status && html`<${Badge} tone=${status < 400 && !failure ? 'good' : 'bad'}>${status}<//>`} pad=${false}>
    <div class="answer" aria-live="polite">
      ${thought && html`<div class="thought">${thought}</div>`}${text}
      ${images.map((source) => html`<img key=${source.slice(-40)} src=${source} alt="The generated picture" />`)}
      ${audio && html`<audio controls src=${audio}></audio>`}
      ${task && html`<p><a class="link" href=${address(['tasks', task])}>Open the task</a></p>`}
      ${failure && html`<div class="problem-box">${failure}</div>`}
    </div>
    <${Figures} outcome=${outcome} />
  <//>`;
}

function Figures({ outcome }) {
  const header = (name) => outcome.headers.find(([key]) => key === name)?.[1];
  const dropped = header('x-dropped-params');
  const parts = [
    outcome.firstMs !== null && `first event after ${duration(outcome.firstMs)}`, outcome.done && `ended after ${duration(outcome.totalMs)}`,
    outcome.charge && `${credits(outcome.charge)} credits`, outcome.tokens,
  ].filter(Boolean);
  return html`<div class="body row wrap muted">${parts.join(' · ')}${dropped && html`<${Badge} tone="warn">dropped: ${dropped}<//>`}</div>`;
}

function Events({ outcome }) {
  if (!outcome?.events.length) return html`<${Empty} title="No event yet" />`;
  return html`<div class="events">${outcome.events.map(({ at, data }, index) => html`<div key=${index}><span class="at">${duration(at)}</span><span class="data">${data}</span></div>`)}</div>`;
}

function Headers({ outcome }) {
  if (!outcome?.headers.length) return html`<${Empty} title="No answer yet" />`;
  return html`<div class="events">${outcome.headers.map(([name, value]) => html`<div key=${name}><span class="at"></span><span class="data">${name}: ${value}</span></div>`)}</div>`;
}

/** The charge stands in the journal a moment after the answer. */
async function withCharge(outcome) {
  const id = outcome.headers.find(([name]) => name === 'x-request-id')?.[1];
  if (!id) return outcome;
  for (const wait of [150, 400, 1000]) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const call = await get(`/calls/${encodeURIComponent(id)}`).catch(() => null);
    if (call) return { ...outcome, charge: call.charge, tokens: call.input_tokens === null ? null : `${call.input_tokens} tokens in, ${call.output_tokens} out` };
  }
  return outcome;
}

export function View({ query }) {
  const session = useSession();
  const models = useLoad(() => get('/models', { limit: 500 }), []);
  const keys = useLoad(() => get('/keys', { limit: 200 }), []);
  const [form, setForm] = useForm(query, models.value?.data ?? [], keys.value?.data ?? []);
  const [json, setJson] = useState(null);
  const [outcomes, setOutcomes] = useState({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [tab, setTab] = useState('answer');
  const stop = useRef(null);
  const dialect = DIALECTS[form.dialect];
  const bodyFor = (model) => tidy(dialect.body({ ...form, model, outputMax: form.outputMax === '' ? undefined : Number(form.outputMax), temperature: form.temperature === '' ? undefined : Number(form.temperature) }));
  const shown = json ?? JSON.stringify(bodyFor(form.model), null, 2);
  const set = (member) => (event) => { setForm({ ...form, [member]: event.target.value }); setJson(null); };
  useEffect(() => {
    if (!query.call) return;
    get(`/calls/${encodeURIComponent(query.call)}`).then((call) => {
      const known = Object.entries(DIALECTS).find(([, one]) => one.path('').split('?')[0].replace('/models/', '') && call.endpoint.startsWith(one.path('').split(':')[0]));
      setForm((before) => ({ ...before, dialect: known?.[0] ?? before.dialect, model: call.model, key: call.key ?? before.key }));
      setJson(JSON.stringify(JSON.parse(call.request_body), null, 2));
    }).catch(setError);
  }, [query.call]);
  const send = async () => {
    setBusy(true);
    setError(null);
    setOutcomes({});
    const cancel = new AbortController();
    stop.current = cancel;
    const one = async (model) => {
      const body = json === null ? bodyFor(model) : { ...JSON.parse(json), ...(dialect.path('') === dialect.path('x') ? { model } : {}) };
      const outcome = await run({ path: dialect.path(model), body, headers: dialect.headers, key: form.key, dialect, signal: cancel.signal }, (state) => setOutcomes((before) => ({ ...before, [model]: state })));
      const charged = await withCharge(outcome);
      setOutcomes((before) => ({ ...before, [model]: charged }));
    };
    try {
      await Promise.all([form.model, form.other].filter(Boolean).map(one));
    } catch (failure) {
      if (failure.name !== 'AbortError') setError(failure instanceof SyntaxError ? { message: `The body is not JSON: ${failure.message}` } : failure);
    } finally {
      setBusy(false);
    }
  };
  const press = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === 'Enter') { event.preventDefault(); send(); } };
  const choices = useMemo(() => (models.value?.data ?? []).filter((model) => model.kind === dialect.kind || (dialect.kind === 'text' && model.kind === 'multimodal')), [models.value, dialect]);
  const option = ({ id, callable }) => html`<option key=${id} value=${id} disabled=${!callable}>${id}</option>`;
  if (!session.can('operator')) return html`<div class="page"><${Card}><${Empty} title="The playground spends credits"><p>It needs the role operator or owner. You are signed in as ${session.role}.</p><//><//></div>`;
  return html`<div class="page"><div class="playground" onKeyDown=${press}>
    <div class="stack">
      <div class="form">
        <${Field} label="Endpoint"><select value=${form.dialect} onChange=${set('dialect')}>${Object.entries(DIALECTS).map(([id, { title }]) => html`<option key=${id} value=${id}>${title}</option>`)}</select><//>
        <${Field} label="Pays"><select value=${form.key} onChange=${set('key')}>${(keys.value?.data ?? []).map(({ id, name, prefix, wallet_name: wallet }) => html`<option key=${id} value=${id}>${name ?? prefix} (${wallet})</option>`)}</select><//>
        <${Field} label="Model"><select value=${form.model} onChange=${set('model')}>${choices.map(option)}</select><//>
        <${Field} label="Beside it"><select value=${form.other} onChange=${set('other')}><option value="">No second model</option>${choices.map(option)}</select><//>
        ${dialect.kind === 'text' && html`<${Field} label="System" whole><textarea rows="2" value=${form.system} onInput=${set('system')}></textarea><//>`}
        <${Field} label="Prompt" whole><textarea rows="4" value=${form.prompt} onInput=${set('prompt')}></textarea><//>
        ${dialect.kind === 'text' && html`<${Field} label="Output tokens at most"><input inputmode="numeric" value=${form.outputMax} onInput=${set('outputMax')} /><//>
          <${Field} label="Temperature"><input inputmode="decimal" value=${form.temperature} onInput=${set('temperature')} placeholder="the model's own" /><//>`}
      </div>
      <details open=${json !== null}><summary>Body as JSON</summary><textarea rows="14" aria-label="Body as JSON" spellcheck="false" value=${shown} onInput=${(event) => setJson(event.target.value)}></textarea></details>
      <${Problem} error=${error ?? models.error ?? keys.error} />
      <div class="row end">${busy && html`<${Button} onClick=${() => stop.current?.abort()}>Stop<//>`}<${Button} kind="primary" icon="play" busy=${busy || !form.model || !form.key} onClick=${send}>Send<//></div>
    </div>
    <div class="stack">
      <${Tabs} tabs=${[['answer', 'Answer'], ['events', 'Events'], ['headers', 'Headers'], ['code', 'Code']]} chosen=${tab} choose=${setTab} />
      ${tab === 'answer' && html`<div class="answers">${[form.model, form.other].filter(Boolean).map((model) => html`<${Answer} key=${model} model=${model} outcome=${outcomes[model]} />`)}</div>`}
      ${tab === 'events' && html`<${Card} pad=${false}><${Events} outcome=${outcomes[form.model]} /><//>`}
      ${tab === 'headers' && html`<${Card} pad=${false}><${Headers} outcome=${outcomes[form.model]} /><//>`}
      ${tab === 'code' && asCode(session.public_url, dialect.path(form.model), bodyFor(form.model), dialect.headers).map(([name, text]) => html`<h3 key=${name}>${name}</h3><${Code} text=${text} />`)}
    </div>
  </div></div>`;
}
