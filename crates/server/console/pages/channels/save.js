// What a proposed channel becomes: the entries of its models, and the configuration with all of them.

/** The members of a channel that have a value. */
export function channelOf({ name, preset, base_url: address, account = {}, credential }) {
  const settings = Object.entries(account).map(([setting, value]) => [setting, value.trim()]).filter(([, value]) => value);
  const members = { name: name.trim(), preset, base_url: address.trim(), account: settings.length && Object.fromEntries(settings), credential: credential.trim() };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value));
}

/** Which price a kind of model needs before it can be called: the members that the form asks for. */
export const PRICES = { text: ['input', 'output'], embedding: ['input'] };

/** A model that was typed in: nothing is known of it. */
export function typedModel(name, channel) {
  const id = name.includes('/') ? name : `${channel}/${name}`;
  return { id: name, title: null, entry: { id, kind: 'text' }, source: null, configured: false, by_id: false, dialect: null };
}

/** Whether the model is saved as it was found. The catalog knows nothing about another id. */
export function isAsFound(model, { id = model.entry.id, kind = model.entry.kind } = {}) {
  return id.trim() === model.entry.id && kind === model.entry.kind;
}

/** Where the price of a model comes from after it was filled in; null if the form must ask for it. */
export function sourceOf(model, filled) {
  return isAsFound(model, filled) ? model.source : null;
}

/** The entry of a found model with what was filled in. */
export function entryOf(model, filled = {}) {
  const { kind = model.entry.kind, id = model.entry.id, outputMax = '' } = filled;
  const entry = { ...model.entry, id: id.trim(), kind };
  const price = (PRICES[kind] ?? []).map((member) => [member, (filled[member] ?? '').trim()]).filter(([, value]) => value);
  if (!sourceOf(model, filled) && price.length) entry.price = Object.fromEntries(price);
  if (kind === 'text' && /^\d+$/.test(outputMax.trim())) entry.profile = { ...entry.profile, max_output_tokens: Number(outputMax) };
  return entry;
}

/** What an entry lacks before callers can use it. The catalog has the rest of an entry whose `source` is known. */
export function lacks(entry, source) {
  if (source) return [];
  const missing = [];
  if (!PRICES[entry.kind]) return entry.price ? [] : [`prices of a model of kind ${entry.kind}, under Settings, Configuration`];
  const price = PRICES[entry.kind].filter((member) => !entry.price?.[member]);
  if (price.length) missing.push(`a price for ${price.join(' and ')}`);
  if (entry.kind === 'text' && !entry.profile?.max_output_tokens && !entry.profile?.context_tokens) missing.push('the most output tokens of an answer');
  return missing;
}

/** What one picked model becomes. `byId`: the channel names it in its `models`. */
export function pickOf(model, filled) {
  const entry = entryOf(model, filled);
  const dialect = entry.kind === 'text' ? model.dialect : null;
  return { upstream: model.id, entry, dialect, byId: model.by_id && isAsFound(model, filled) };
}

/**
 * The configuration with the channel. A model that is there already gets another route and keeps its own. `inForce` are
 * the rows of `/models`: the `models` of channels add some that have no entry, or an entry without routes.
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
    // A route without a name of the model takes everything from the catalog.
    const route = { channel: channel.name, ...!isById && { model: upstream, ...dialect && { dialect } } };
    const added = inForce.find(({ id, source }) => id === entry.id && source.routes === 'channel');
    // An entry that names routes gets none from channels, so it must name those that it has now.
    const own = known?.routes ?? added?.routes.map((other) => ({ channel: other.channel })) ?? [];
    const routes = [...own, route];
    if (known) known.routes = routes;
    else models.push(added ? { id: entry.id, routes } : { ...entry, routes });
  }
  const saved = byId.length ? { ...channel, models: byId } : channel;
  return { version: config.version, channels: [...config.channels, saved], models };
}
