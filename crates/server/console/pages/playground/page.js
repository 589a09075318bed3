// Playground: a call of any dialect to one or two models, with the answer, the raw events, the headers and the code.

import { html, useEffect, useMemo, useRef, useState } from '../../preact.js';
import { get, getAll } from '../../api.js';
import { useLoad, useSession } from '../../load.js';
import { asCode } from '../../snippets.js';
import { Button, Card, Code, Empty, Field, Picker, Problem, Tabs } from '../../ui/components.js';
import { Answer, Events, Headers } from './answer.js';
import { DIALECTS, dialectOf, withoutEmpty } from './dialects.js';
import { Realtime } from './realtime.js';
import { run } from './run.js';

const FIRST = { dialect: 'chat', model: '', other: '', key: '', system: '', prompt: 'Say hello in one sentence.', outputMax: '256', temperature: '', picture: null, file: null };
/** The pauses before each look for the charge in the journal, whose row is written shortly after the answer. */
const CHARGE_WAITS_MS = [150, 400, 1000, 2000];

const number = (text) => (text.trim() === '' ? undefined : Number(text));
/** The problem of a typed number. It must not be sent, because in JSON it would be null. */
const problemOf = (text) => !Number.isFinite(number(text) ?? 0) && 'This is not a number.';

/** The key that was chosen last in this browser tab, until the user signs out. No other key is chosen for the user, because it pays. */
const PAYER = 'payer';

/** Adds the call's journal row to its answer. */
async function withCall(outcome) {
  const id = outcome.headers.find(([name]) => name === 'x-request-id')?.[1];
  if (!id) return outcome;
  for (const wait of CHARGE_WAITS_MS) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const call = await get(`/calls/${encodeURIComponent(id)}`).catch(() => null);
    if (call) return { ...outcome, call };
  }
  return outcome;
}

const asDataUrl = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

/** Records from the microphone until stopped, and passes the file to `onFile`. */
function Recorder({ onFile }) {
  const [recorder, setRecorder] = useState(null);
  const [error, setError] = useState(null);
  if (!navigator.mediaDevices || !window.MediaRecorder) return null;
  const begin = async () => {
    setError(null);
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const next = new MediaRecorder(stream);
      next.ondataavailable = ({ data }) => onFile(new File([data], 'recording.webm', { type: data.type }));
      next.onstop = () => { stream.getTracks().forEach((track) => track.stop()); setRecorder(null); };
      next.start();
      setRecorder(next);
    } catch (failure) {
      setError({ message: `The microphone cannot be used: ${failure.message}` });
    }
  };
  return html`<div class="stack tight"><${Button} small onClick=${recorder ? () => recorder.stop() : begin}>${recorder ? 'Stop recording' : 'Record'}<//><${Problem} error=${error} /></div>`;
}

const isUsable = ({ enabled }) => enabled;

/** The fields of the form, which depend on the endpoint. */
function Fields({ form, set, dialect, choices }) {
  const isText = dialect.kinds.includes('text');
  const change = (member) => (event) => set({ [member]: event.target.value });
  const choosePayer = (key) => { if (key) sessionStorage.setItem(PAYER, key); set({ key }); };
  const option = ({ id, callable }) => html`<option key=${id} value=${id} disabled=${!callable}>${id}</option>`;
  return html`<div class="form">
    <${Field} label="Endpoint"><select value=${form.dialect} onChange=${change('dialect')}>${Object.entries(DIALECTS).map(([id, { title }]) => html`<option key=${id} value=${id}>${title}</option>`)}</select><//>
    <${Picker} path="/keys" label="Pays" hint=${form.key ? 'The wallet of this key is charged.' : html`<strong>Choose the key that pays.</strong>`} chosen=${form.key} choose=${choosePayer} fits=${isUsable} title=${({ name, prefix, wallet_name: wallet }) => `${name ?? prefix} (${wallet})`} />
    <${Field} label="Model" problem=${!choices.length && 'No model is for this endpoint.'}><select value=${form.model} onChange=${change('model')}>${choices.map(option)}</select><//>
    ${!dialect.isSession && html`<${Field} label="Beside it"><select value=${form.other} onChange=${change('other')}><option value="">No second model</option>${choices.map(option)}</select><//>`}
    ${isText && html`<${Field} label="System" fullWidth><textarea rows="2" value=${form.system} onInput=${change('system')}></textarea><//>`}
    ${dialect.isSession ? null : dialect.takesFile ? html`<div class="field full-width"><${Field} label="Recording" hint=${form.file ? form.file.name : 'A sound file.'}><input type="file" accept="audio/*,video/*" onChange=${(event) => set({ file: event.target.files[0] ?? null })} /><//><${Recorder} onFile=${(file) => set({ file })} /></div>`
      : html`<${Field} label=${dialect.kinds.includes('audio') || dialect.kinds.includes('embedding') ? 'Text' : 'Prompt'} fullWidth><textarea rows="4" value=${form.prompt} onInput=${change('prompt')}></textarea><//>`}
    ${isText && html`<${Field} label="Output tokens at most" problem=${problemOf(form.outputMax)}><input inputmode="numeric" value=${form.outputMax} onInput=${change('outputMax')} /><//>
      <${Field} label="Temperature" problem=${problemOf(form.temperature)}><input inputmode="decimal" value=${form.temperature} onInput=${change('temperature')} placeholder="the model's own" /><//>
      ${form.dialect !== 'interactions' && html`<${Field} label="Picture" fullWidth hint="For models that read images."><input type="file" accept="image/png,image/jpeg,image/webp" onChange=${async (event) => { const [file] = event.target.files; set({ picture: file ? await asDataUrl(file) : null }); }} /><//>`}`}
  </div>`;
}

/** The form's values: defaults once the models are known, or the values of an earlier call. */
function useForm(query, models) {
  const [form, setForm] = useState({ ...FIRST, dialect: DIALECTS[query.dialect] ? query.dialect : FIRST.dialect, model: query.model ?? '', key: sessionStorage.getItem(PAYER) ?? '' });
  const [json, setJson] = useState(null);
  const [error, setError] = useState(null);
  const kinds = DIALECTS[form.dialect].kinds;
  const choices = useMemo(() => models.filter((model) => kinds.includes(model.kind)), [models, form.dialect]);
  useEffect(() => {
    if (!choices.length || choices.some(({ id }) => id === form.model)) return;
    setForm((before) => ({ ...before, model: (choices.find(({ callable }) => callable) ?? choices[0]).id, other: '' }));
  }, [choices, form.model]);
  useEffect(() => {
    if (!query.call) return;
    get(`/calls/${encodeURIComponent(query.call)}`).then((call) => {
      setForm((before) => ({ ...before, dialect: dialectOf(call.endpoint) ?? before.dialect, model: call.model || before.model, key: call.key ?? before.key }));
      if (call.request_body) setJson(pretty(call.request_body));
    }).catch(setError);
  }, [query.call]);
  // The body that was edited stays if only the key changes.
  const set = (change) => { setForm((before) => ({ ...before, ...change })); if (change.key === undefined) setJson(null); };
  return { form, set, json, setJson, choices, error };
}

/** Formats a stored body. A truncated body is not valid JSON and stays as it is. */
function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

/** The body that the user has edited, if it is valid JSON. */
function bodyOf(json) {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

/** Sends the call to each model and keeps the answers by model id. */
function useCalls() {
  const [outcomes, setOutcomes] = useState({});
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const cancel = useRef(null);
  useEffect(() => () => cancel.current?.abort(), []);
  const send = (calls) => {
    // Each call is paid, so an earlier one that still runs is stopped.
    cancel.current?.abort();
    const mine = new AbortController();
    cancel.current = mine;
    setBusy(true);
    setError(null);
    setOutcomes({});
    let running = calls.length;
    const one = async ({ model, prepare }) => {
      const keep = (outcome) => cancel.current === mine && setOutcomes((before) => ({ ...before, [model]: outcome }));
      let outcome = null;
      try {
        outcome = await run({ ...prepare(), signal: mine.signal }, keep);
      } catch (failure) {
        if (failure.name !== 'AbortError') setError(failure instanceof SyntaxError ? { message: `The body is not JSON: ${failure.message}` } : failure);
      }
      running -= 1;
      if (!running && cancel.current === mine) setBusy(false);
      if (outcome) keep(await withCall(outcome));
    };
    calls.forEach(one);
  };
  return { outcomes, busy, error, send, stop: () => cancel.current?.abort() };
}

function Playground({ query }) {
  const session = useSession();
  const models = useLoad(() => getAll('/models'), []);
  const keys = useLoad(() => get('/keys', { limit: 1 }), []);
  const all = useMemo(() => models.value ?? [], [models.value]);
  const { form, set, json, setJson, choices, error } = useForm(query, all);
  const calls = useCalls();
  const [tab, setTab] = useState('answer');
  const dialect = DIALECTS[form.dialect];
  const protocols = (id) => all.find((model) => model.id === id)?.protocols;
  const bodyFor = (model) => withoutEmpty(dialect.body({ ...form, model, outputMax: number(form.outputMax), temperature: number(form.temperature) }, protocols(model)));
  const chosen = [form.model, form.other].filter((model, index, list) => model && list.indexOf(model) === index);
  const send = () => calls.send(chosen.map((model) => ({
    model,
    prepare: () => {
      const path = dialect.path(model, protocols(model));
      const given = json === null ? bodyFor(model) : JSON.parse(json);
      const body = json !== null && 'model' in given ? { ...given, model } : given;
      return { path, body, file: dialect.takesFile ? form.file : null, headers: dialect.headers, key: form.key, dialect };
    },
  })));
  const isWrong = dialect.kinds.includes('text') && [form.outputMax, form.temperature].some(problemOf);
  const ready = chosen.length && form.key && !isWrong && (!dialect.takesFile || form.file);
  const press = (event) => { if ((event.ctrlKey || event.metaKey) && event.key === 'Enter' && ready && !calls.busy) { event.preventDefault(); send(); } };
  const fields = html`<${Fields} form=${form} set=${set} dialect=${dialect} choices=${choices} />
    ${keys.value && !keys.value.data.length && html`<div class="warning">A call is paid by a key, and there is none. <a class="link" href="#/keys?create=1">Create a key</a></div>`}`;
  // A change of the model or the key starts a new session. The fields stay, so that they keep their focus and what was searched.
  if (dialect.isSession) {
    return html`<div class="page"><div class="playground of-session">
      <div class="stack">${fields}<${Problem} error=${models.error ?? keys.error} /></div>
      <${Realtime} key=${`${form.model} ${form.key}`} model=${form.model} keyId=${form.key} url=${session.public_url} />
    </div></div>`;
  }
  const shown = json ?? JSON.stringify(bodyFor(form.model), null, 2);
  return html`<div class="page"><div class="playground" onKeyDown=${press}>
    <div class="stack">
      ${fields}
      <details open=${json !== null}><summary>Body as JSON</summary><textarea rows="14" aria-label="Body as JSON" spellcheck=${false} value=${shown} onInput=${(event) => setJson(event.target.value)}></textarea></details>
      <${Problem} error=${calls.error ?? error ?? models.error ?? keys.error} />
      <div class="row end">${!form.key && html`<span class="muted">Choose the key that pays.</span>`}${calls.busy && html`<${Button} onClick=${calls.stop}>Stop<//>`}<${Button} kind="primary" icon="play" busy=${calls.busy || !ready} onClick=${send}>Send<//></div>
    </div>
    <div class="stack">
      <${Tabs} tabs=${[['answer', 'Answer'], ['events', 'Events'], ['headers', 'Headers'], ['code', 'Code']]} chosen=${tab} choose=${setTab} />
      ${tab === 'answer' && html`<div class="answers">${chosen.map((model) => html`<${Answer} key=${model} model=${model} outcome=${calls.outcomes[model]} />`)}</div>`}
      ${tab === 'events' && chosen.map((model) => html`<${Card} key=${model} title=${model} pad=${false}><${Events} outcome=${calls.outcomes[model]} /><//>`)}
      ${tab === 'headers' && chosen.map((model) => html`<${Card} key=${model} title=${model} pad=${false}><${Headers} outcome=${calls.outcomes[model]} /><//>`)}
      ${tab === 'code' && asCode(session.public_url, dialect.path(form.model, protocols(form.model)), json === null ? bodyFor(form.model) : bodyOf(json) ?? bodyFor(form.model), dialect.headers, { file: dialect.takesFile && (form.file?.name ?? 'recording.wav'), sound: dialect.isSound }).map(([name, text]) => html`<h3 key=${name}>${name}</h3><${Code} text=${text} />`)}
    </div>
  </div></div>`;
}

export function View({ query }) {
  const session = useSession();
  if (!session.can('operator')) return html`<div class="page"><${Card}><${Empty} title="The playground spends credits"><p>It needs the role operator or owner. You are signed in as ${session.role}.</p><//><//></div>`;
  return html`<${Playground} query=${query} />`;
}
