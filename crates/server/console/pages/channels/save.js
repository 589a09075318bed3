// Turns a proposed channel into configuration: the entries of its models, and the configuration with all of them.

/** The members of a channel that have a value, with the pasted key, for the calls of the form. */
export function channelOf({ name, preset, base_url: address, account = {}, credential }) {
  const settings = Object.entries(account).map(([setting, value]) => [setting, value.trim()]).filter(([, value]) => value);
  const members = { name: name.trim(), preset, base_url: address.trim(), account: settings.length && Object.fromEntries(settings), credential: credential.trim() };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value));
}

/** The channel as it is saved: a key that is not pasted is named by its environment variable or file. */
export function savedChannel(channel) {
  const { credential, ...rest } = channelOf(channel);
  const { place = 'paste', named = '' } = channel;
  if (['env', 'file'].includes(place)) return { ...rest, credential: { [place]: named.trim() } };
  return credential ? { ...rest, credential } : rest;
}

/** The prices that a kind of model needs before it can be called. The form asks for them. */
export const PRICES = { text: ['input', 'output'], embedding: ['input'] };

/** A model that was typed in, about which nothing is known. */
export function typedModel(name, channel) {
  const id = name.includes('/') ? name : `${channel}/${name}`;
  return { id: name, title: null, entry: { id, kind: 'text' }, source: null, configured: false, by_id: false, dialect: null };
}

/** Whether id and kind of the model are unchanged. The catalog knows nothing about a changed id. */
export function isAsFound(model, { id = model.entry.id, kind = model.entry.kind } = {}) {
  return id.trim() === model.entry.id && kind === model.entry.kind;
}

/** The source of a model's price, given the filled-in fields; null if the form must ask for the price. */
export function sourceOf(model, filled) {
  return isAsFound(model, filled) ? model.source : null;
}

/** The entry of a found model with the filled-in fields. */
export function entryOf(model, filled = {}) {
  const { kind = model.entry.kind, id = model.entry.id, outputMax = '' } = filled;
  const entry = { ...model.entry, id: id.trim(), kind };
  const price = (PRICES[kind] ?? []).map((member) => [member, (filled[member] ?? '').trim()]).filter(([, value]) => value);
  if (!sourceOf(model, filled) && price.length) entry.price = Object.fromEntries(price);
  if (kind === 'text' && /^\d+$/.test(outputMax.trim())) entry.profile = { ...entry.profile, max_output_tokens: Number(outputMax) };
  return entry;
}

/** What an entry still needs before callers can use it. If its `source` is known, the catalog provides the rest. */
export function missingMembers(entry, source) {
  if (source) return [];
  const missing = [];
  if (!PRICES[entry.kind]) return entry.price ? [] : [`prices of a model of kind ${entry.kind}, under Settings, Configuration`];
  const price = PRICES[entry.kind].filter((member) => !entry.price?.[member]);
  if (price.length) missing.push(`a price for ${price.join(' and ')}`);
  if (entry.kind === 'text' && !entry.profile?.max_output_tokens && !entry.profile?.context_tokens) missing.push('the most output tokens of an answer');
  return missing;
}

/** The data to save for one picked model. With `byId`, the channel lists it in its `models`. */
export function modelToSave(model, filled) {
  const entry = entryOf(model, filled);
  const dialect = entry.kind === 'text' ? model.dialect : null;
  return { upstream: model.id, entry, dialect, byId: model.by_id && isAsFound(model, filled) };
}

/**
 * The configuration with the channel. An existing model keeps its routes and gets another one. `inForce` are the rows of
 * `/models`, which include models that come from the `models` of channels and have no entry, or no routes in their entry.
 */
export function withChannel(config, channel, picked, inForce) {
  const models = config.models.map((model) => ({ ...model }));
  const byId = [];
  for (const { upstream, entry, dialect, byId: isById } of picked) {
    const known = models.find(({ id }) => id === entry.id);
    if (isById && !known?.routes) {
      byId.push(entry.id);
      continue;
    }
    // A route without the upstream's name takes everything from the catalog.
    const route = { channel: channel.name, ...!isById && { model: upstream, ...dialect && { dialect } } };
    const added = inForce.find(({ id, source }) => id === entry.id && source.routes === 'channel');
    // An entry with routes gets none from the `models` of channels, so it must list the current ones.
    const own = known?.routes ?? added?.routes.map((other) => ({ channel: other.channel })) ?? [];
    const routes = [...own, route];
    if (known) known.routes = routes;
    else models.push(added ? { id: entry.id, routes } : { ...entry, routes });
  }
  const saved = byId.length ? { ...channel, models: byId } : channel;
  return { version: config.version, channels: [...config.channels, saved], models };
}
