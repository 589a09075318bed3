// Adding a channel: choose a vendor, enter a key, see its models, pick some, try one, save. If the vendor lists no models,
// the known ones are shown, and others can be typed in.

import { html, useState } from '../../preact.js';
import { get, getAll, post, put } from '../../api.js';
import { duration } from '../../format.js';
import { useLoad } from '../../load.js';
import { Dialog } from '../../ui/dialog.js';
import { Badge, Button, Field, Problem } from '../../ui/components.js';
import { toast } from '../../ui/toast.js';
import { ModelPicker } from './model-picker.js';
import { channelOf, modelToSave, savedChannel, typedModel, withChannel } from './save.js';

const FIRST = { preset: '', name: '', base_url: '', account: {}, credential: '', place: 'paste', named: '' };
const NEEDED = { always: 'Needed.', address: 'Needed unless the address is given.', credential: 'Only for credentials that use it.' };

/** Where a key may be: title, label and hint of the field that names the place. */
const PLACES = {
  paste: ['Paste it here'],
  none: ['It needs none'],
  env: ['In an environment variable', 'Environment variable', 'Each node of the gateway reads it. A name that ends in _API_KEY, or one that admin.credential_env allows.', 'OPENAI_API_KEY'],
  file: ['In a file', 'File', 'In the folder credentials beside the configuration of each node.', 'credentials/openai'],
};

/** The places that can be chosen. A gateway whose configuration is in the store keeps no pasted key. */
function placesFor(preset, isStored) {
  if (!isStored) return ['paste', 'env', 'file'];
  return preset && !preset.credential ? ['none', 'env', 'file'] : ['env', 'file'];
}

/** A name that no other channel has. */
function freeName(name, channels) {
  const taken = new Set(channels.map((channel) => channel.name));
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (!taken.has(candidate)) return candidate;
  }
}

/** Where the key is, its name there, and the key itself for the calls of the form. */
function Key({ preset, places, channel, set, problem }) {
  const [, label, hint, example] = PLACES[channel.place];
  const isPasted = channel.place === 'paste';
  const use = isPasted ? 'Used for the calls of this form. Saving puts it into a file that only the gateway reads; it is never shown again.'
    : 'Used for the calls of this form only, and not saved. Without it, type the names of the models.';
  return html`<${Field} label="Where is the key?" fullWidth><select value=${channel.place} onChange=${set('place')}>${places.map((place) => html`<option key=${place} value=${place}>${PLACES[place][0]}</option>`)}</select><//>
    ${label && html`<${Field} label=${label} fullWidth hint=${hint} problem=${problem('credential')}><input value=${channel.named} onInput=${set('named')} placeholder=${example} spellcheck=${false} /><//>`}
    ${channel.place !== 'none' && html`<${Field} label=${isPasted ? 'Key' : 'Key for a trial'} fullWidth hint=${preset && !preset.credential && isPasted ? 'Only where the upstream asks for one.' : use} problem=${isPasted && problem('credential')}><input type="password" autocomplete="off" value=${channel.credential} onInput=${set('credential')} /><//>`}`;
}

/** Vendor, name, account, address and key. */
function Account({ presets, preset, places, channels, channel, change, error }) {
  const choose = (event) => {
    const chosen = presets.find(({ name }) => name === event.target.value);
    // If the preset has no address, suggest the address of another channel with this preset.
    const address = chosen.base_url ? '' : channels.find((other) => other.preset === chosen.name)?.base_url ?? '';
    // The key of one vendor must not be sent to another.
    change({ ...FIRST, preset: chosen.name, name: freeName(chosen.name, channels), base_url: address });
  };
  const set = (member) => (event) => change({ ...channel, [member]: event.target.value });
  const setAccount = (name) => (event) => change({ ...channel, account: { ...channel.account, [name]: event.target.value } });
  // Account settings of a cloud. Those that are secrets can only be set in the configuration file.
  const settings = (preset?.account ?? []).filter(({ secret }) => !secret);
  const problem = (member) => error?.param?.split('.').at(-1) === member && error.message;
  return html`<div class="form">
    <${Field} label="Vendor" problem=${problem('preset')}><select value=${channel.preset} onChange=${choose}><option value="" disabled>Choose…</option>${presets.map(({ name, title }) => html`<option key=${name} value=${name}>${title ?? name}</option>`)}</select><//>
    <${Field} label="Name" hint="As routes call it." problem=${problem('name')}><input value=${channel.name} onInput=${set('name')} /><//>
    ${settings.map(({ name, needed, default: usual }) => html`<${Field} key=${name} label=${name} hint=${usual ? `${usual} if left out.` : NEEDED[needed]} problem=${problem('account')}><input value=${channel.account[name] ?? ''} onInput=${setAccount(name)} placeholder=${usual ?? ''} /><//>`)}
    <${Key} preset=${preset} places=${places} channel=${channel} set=${set} problem=${problem} />
    <${Field} label="Address" fullWidth hint=${preset?.base_url ? 'Only where it differs from the vendor’s.' : 'Where the upstream listens, such as https://models.example.com/v1. An address that is not public is called here only if outbound.allow has it; such a channel can be saved all the same.'} problem=${problem('base_url')}><input value=${channel.base_url} onInput=${set('base_url')} placeholder=${preset?.base_url ?? ''} /><//>
  </div>`;
}

/** The result of the trial call. */
function Trial({ trial }) {
  if (!trial) return null;
  return html`<div class="outcome row" role="status"><${Badge} tone=${trial.ok ? 'good' : 'bad'}>${trial.ok ? 'answered' : 'failed'}<//>
    <span><span class="mono">${trial.model}</span> ${trial.ok ? `answered in ${duration(trial.total_ms)}. Nobody was charged.` : trial.message}</span></div>`;
}

export function AddDialog({ channels, close, done }) {
  const presets = useLoad(() => getAll('/presets'), []);
  const config = useLoad(() => get('/config'), []);
  const [filled, setFilled] = useState(FIRST);
  // The vendor's answer.
  const [found, setFound] = useState(null);
  // The names that were typed in. With `isTyping`, they can be typed in without a list of the vendor.
  const [typed, setTyped] = useState([]);
  const [isTyping, setIsTyping] = useState(false);
  const [picked, setPicked] = useState(new Map());
  const [trial, setTrial] = useState(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const attempt = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const preset = presets.value?.find(({ name }) => name === filled.preset);
  const places = placesFor(preset, config.value?.kept_in === 'store');
  const place = places.includes(filled.place) ? filled.place : places[0];
  const channel = { ...filled, place, credential: place === 'none' ? '' : filled.credential };
  const isNamed = ['env', 'file'].includes(place);
  const isNameless = isNamed && !channel.named.trim();
  const proposed = channelOf(channel);
  const change = (next) => {
    setFilled(next);
    setError(null);
    // Where the key is kept does not change what the calls of the form answer.
    if (JSON.stringify(channelOf(next)) === JSON.stringify(proposed)) return;
    // A changed account may have other models, so discard what the vendor listed. What was typed in stays, unless the vendor is another.
    const kept = next.preset === channel.preset ? typed : [];
    setTyped(kept);
    setIsTyping(kept.length > 0);
    setFound(null);
    setPicked(new Map([...picked].filter(([id]) => kept.includes(id))));
    setTrial(null);
  };
  const listed = found?.data ?? [];
  const models = [...listed, ...typed.filter((name) => !listed.some(({ id }) => id === name)).map((name) => typedModel(name, proposed.name))];
  // Without the key there is nothing to ask the vendor with. The channel can be saved all the same.
  const isUntried = isNamed && preset?.credential && !proposed.credential;
  const look = () => attempt(async () => {
    if (isUntried) {
      setIsTyping(true);
      return;
    }
    const answer = await post('/channels/discover', proposed);
    setFound(answer);
    if (!answer.ok) throw new Error(`${answer.message} You can go on with the models below, or change the account.`);
  });
  const type = (name) => {
    setTyped([...typed, name]);
    setPicked(new Map(picked).set(name, {}));
    setTrial(null);
  };
  const chosen = models.filter(({ id }) => picked.has(id)).map((model) => modelToSave(model, picked.get(model.id)));
  // There is no cheap trial call for pictures and videos.
  const small = chosen.find(({ entry }) => ['text', 'embedding'].includes(entry.kind));
  const tryOne = () => attempt(async () => {
    setTrial(null);
    setTrial({ model: small.upstream, ...await post('/channels/try', { channel: proposed, model: small.upstream, kind: small.entry.kind, ...small.dialect && { dialect: small.dialect } }) });
  });
  const save = () => attempt(async () => {
    const [current, inForce] = await Promise.all([get('/config'), getAll('/models')]);
    await put('/config', withChannel(current, savedChannel(channel), chosen, inForce));
    toast(`Channel ${proposed.name} serves ${chosen.length} ${chosen.length === 1 ? 'model' : 'models'}.`);
    done();
  });
  const isOpen = found || isTyping;
  return html`<${Dialog} title="Add a channel" className="wide" close=${close} busy=${busy}>
    <div class="body">
      <${Account} presets=${presets.value ?? []} preset=${preset} places=${places} channels=${channels} channel=${channel} change=${change} error=${error} />
      ${isOpen && html`<${ModelPicker} models=${models} listed=${found?.ok} complete=${found?.complete} picked=${picked} change=${(next) => { setPicked(next); setTrial(null); }} type=${type} />`}
      <${Trial} trial=${trial} />
      <${Problem} error=${error ?? presets.error ?? config.error} />
    </div>
    <footer>
      <${Button} busy=${busy} onClick=${close}>Cancel<//>
      ${!found && !(isTyping && isUntried) && html`<${Button} kind=${isOpen ? '' : 'primary'} busy=${busy || !proposed.preset || !proposed.name || isNameless} onClick=${look}>${isUntried ? 'Type its models' : 'See its models'}<//>`}
      ${isOpen && html`<${Button} busy=${busy || !small || isUntried} onClick=${tryOne}>Try a call<//><${Button} kind="primary" busy=${busy || !chosen.length || isNameless} onClick=${save}>Save channel<//>`}
    </footer>
  <//>`;
}
