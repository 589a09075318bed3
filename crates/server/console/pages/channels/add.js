// Adding a channel: choose a vendor, give a key, see its models, pick some, try one, save.

import { html, useState } from '../../preact.js';
import { get, post, put } from '../../api.js';
import { duration } from '../../format.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { Button, Field, Problem } from '../../ui/parts.js';
import { toast } from '../../ui/toast.js';

export function AddDialog({ close, done }) {
  const presets = useLoad(() => get('/presets'), []);
  const [channel, setChannel] = useState({ preset: '', name: '', base_url: '', credential: '' });
  const [models, setModels] = useState(null);
  const [picked, setPicked] = useState(new Set());
  const [trial, setTrial] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const preset = presets.value?.data.find(({ name }) => name === channel.preset);
  const set = (member) => (event) => setChannel({ ...channel, [member]: event.target.value });
  const choose = (event) => {
    const chosen = presets.value.data.find(({ name }) => name === event.target.value);
    setChannel({ ...channel, preset: chosen.name, name: channel.name || chosen.name, base_url: chosen.base_url ?? '' });
    setModels(null);
  };
  const attempt = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failure) {
      setError(failure.status === 404 ? { message: 'This gateway cannot ask an upstream for its models. Add the channel and its models under Settings, Configuration.' } : failure);
    } finally {
      setBusy(false);
    }
  };
  const look = () => attempt(async () => setModels((await post('/channels/discover', channel)).data));
  const tryOne = () => attempt(async () => setTrial(await post('/channels/try', { ...channel, model: [...picked][0] })));
  const save = () => attempt(async () => {
    const current = await get('/config');
    const entry = { name: channel.name, preset: channel.preset, base_url: channel.base_url || undefined, credential: channel.credential };
    const added = models.filter(({ id }) => picked.has(id)).map((model) => ({ ...model.entry, routes: [{ channel: channel.name, model: model.id }] }));
    await put('/config', { version: current.version, channels: [...current.channels, entry], models: [...current.models, ...added] });
    toast(`Channel ${channel.name} takes calls for ${added.length} models.`);
    done();
  });
  const toggle = (id) => setPicked((before) => { const next = new Set(before); if (!next.delete(id)) next.add(id); return next; });
  return html`<${Dialog} title="Add a channel" close=${close}>
    <div class="body">
      <div class="form">
        <${Field} label="Vendor"><select value=${channel.preset} onChange=${choose}><option value="" disabled>Choose…</option>${(presets.value?.data ?? []).map(({ name, title }) => html`<option key=${name} value=${name}>${title ?? name}</option>`)}</select><//>
        <${Field} label="Name" hint="As routes call it."><input value=${channel.name} onInput=${set('name')} /><//>
        <${Field} label="Address" whole hint="Only where it differs from the vendor's."><input value=${channel.base_url} onInput=${set('base_url')} placeholder=${preset?.base_url ?? ''} /><//>
        <${Field} label="Key" whole hint="Kept encrypted in the store; never shown again."><input type="password" autocomplete="off" value=${channel.credential} onInput=${set('credential')} /><//>
      </div>
      ${models && html`<div class="stack tight"><h3>${models.length} models</h3><div class="events">${models.map((model) => html`<label key=${model.id} class="row"><input type="checkbox" checked=${picked.has(model.id)} onChange=${() => toggle(model.id)} /> ${model.id}<span class="muted">${model.entry.price ? '' : 'no price known'}</span></label>`)}</div></div>`}
      ${trial && html`<div class="outcome">${trial.ok ? `It answered in ${duration(trial.total_ms)}.` : trial.message}</div>`}
      <${Problem} error=${error ?? presets.error} />
    </div>
    <footer>
      <${Button} onClick=${close}>Cancel<//>
      ${!models ? html`<${Button} kind="primary" busy=${busy || !channel.preset || !channel.name} onClick=${look}>See its models<//>`
        : html`<${Button} busy=${busy || !picked.size} onClick=${tryOne}>Try a call<//><${Button} kind="primary" busy=${busy || !picked.size} onClick=${save}>Save channel<//>`}
    </footer>
  <//>`;
}
