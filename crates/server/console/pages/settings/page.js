// Settings: admin tokens, and the configuration with the problems found in it.

import { html, useState } from '../../preact.js';
import { get, post, put, remove } from '../../api.js';
import { useList, useLoad, useSession } from '../../load.js';
import { address, refine } from '../../router.js';
import { FormDialog, SecretDialog } from '../../ui/dialog.js';
import { Badge, Button, Card, Empty, Facts, Field, Problem, Secret, Skeleton, Tabs, Time } from '../../ui/components.js';
import { PriceShort } from '../../ui/price.js';
import { Table } from '../../ui/table.js';
import { toast } from '../../ui/toast.js';

const ROLES = { viewer: 'sees everything but secrets', support: 'also tops up wallets', operator: 'also changes wallets, keys and probes channels', owner: 'also changes tokens and the configuration' };

function Tokens({ query }) {
  const list = useList('/tokens', {});
  const [dialog, setDialog] = useState(query.create ? 'create' : null);
  const [secret, setSecret] = useState(null);
  const columns = [
    { title: 'Name', cell: (token) => html`${token.name}<span class="sub mono">${token.prefix}…</span>` },
    { title: 'Role', cell: (token) => html`${token.role}<span class="sub optional">${ROLES[token.role]}</span>` },
    { title: 'Created', minor: true, cell: (token) => html`<${Time} at=${token.created_at} />` },
    { title: 'Last used', cell: (token) => html`<${Time} at=${token.last_used_at} />` },
    { title: 'Status', number: true, cell: (token) => (token.revoked_at ? html`<${Badge} tone="bad">revoked<//>` : html`<${Button} small kind="danger" onClick=${() => setDialog(token)}>Revoke<//>`) },
  ];
  const create = async (form) => {
    const token = await post('/tokens', { name: form.get('name').trim(), role: form.get('role') });
    setDialog(null);
    setSecret(token.secret);
    list.reload();
  };
  const revoke = async () => {
    await remove(`/tokens/${dialog.id}`);
    toast(`The token ${dialog.name} no longer works.`);
    setDialog(null);
    list.reload();
  };
  return html`<${Card} title="Admin tokens" pad=${false} actions=${html`<${Button} small icon="plus" onClick=${() => setDialog('create')}>Create token<//>`}>
    <${Table} label="Admin tokens" columns=${columns} list=${list} rowKey=${(token) => token.id} empty=${html`<${Empty} title="No token"><p>The token of the configuration file is in use.</p><//>`} />
    ${dialog === 'create' && html`<${FormDialog} title="Create an admin token" action="Create token" send=${create} close=${() => setDialog(null)}>${(error) => html`
      <${Field} label="Name" hint="Who or what uses it; the audit shows it." problem=${error?.param === 'name' && error.message}><input name="name" required autofocus /><//>
      <${Field} label="Role"><select name="role">${Object.entries(ROLES).map(([role, text]) => html`<option key=${role} value=${role}>${role}: ${text}</option>`)}</select><//>`}<//>`}
    ${dialog && dialog !== 'create' && html`<${FormDialog} title=${`Revoke ${dialog.name}`} action="Revoke token" danger send=${revoke} close=${() => setDialog(null)}><p>Requests and sessions with this token are refused at once. This cannot be undone.</p><//>`}
    ${secret && html`<${SecretDialog} title="The token was created" close=${() => setSecret(null)}><p>Copy it now. It is not shown again.</p><${Secret} text=${secret} /><//>`}
  <//>`;
}

const CHANNEL_COLUMNS = [
  { title: 'Channel', cell: (channel) => html`${channel.name}<span class="sub mono">${channel.base_url ?? ''}</span>` },
  { title: 'Preset', cell: (channel) => channel.preset },
  { title: 'Protocols', minor: true, cell: (channel) => channel.protocols?.join(', ') ?? html`<span class="muted">those of the preset</span>` },
];

const MODEL_COLUMNS = [
  { title: 'Model', cell: (model) => html`${model.id}<span class="sub">${[model.kind, model.enabled === false && 'disabled'].filter(Boolean).join(' · ')}</span>` },
  { title: 'Routes', cell: (model) => model.routes?.map((route) => html`<div key=${`${route.channel} ${route.model}`}>${route.channel}<span class="sub mono">${route.model}</span></div>`) },
  { title: 'Price', minor: true, number: true, cell: (model) => model.price ? html`<${PriceShort} card=${model.price} />` : html`<span class="muted">that of the catalog</span>` },
];

/** A list whose rows are all loaded. */
const loadedList = (rows) => ({ rows, loading: false });

/** The entries as tables. A button shows the text in which they can be changed. */
function Entries({ value }) {
  return html`<${Card} title="Channels" pad=${false}><${Table} label="Channels" keys=${false} columns=${CHANNEL_COLUMNS} list=${loadedList(value.channels)} rowKey=${(channel) => channel.name} href=${() => address('channels')} empty=${html`<${Empty} title="No channel yet"><p>Add one on the page of channels.</p><//>`} /><//>
    <${Card} title="Models" pad=${false}><${Table} label="Models" columns=${MODEL_COLUMNS} list=${loadedList(value.models)} rowKey=${(model) => model.id} href=${() => address('models')} empty=${html`<${Empty} title="No model yet"><p>Models come with their channels.</p><//>`} /><//>`;
}

function Configuration() {
  const session = useSession();
  const { value, error, reload } = useLoad(() => get('/config'), []);
  const [isText, setIsText] = useState(false);
  const [text, setText] = useState(null);
  const [problems, setProblems] = useState(null);
  const [failure, setFailure] = useState(null);
  if (!value) return error ? html`<${Problem} error=${error} retry=${reload} />` : html`<${Skeleton} lines=${8} />`;
  const shown = text ?? JSON.stringify({ channels: value.channels, models: value.models }, null, 2);
  // The text stays, and the next save replaces the version that is read now.
  const readAgain = () => { setFailure(null); reload(); };
  const act = (work) => async () => {
    setFailure(null);
    try {
      await work(JSON.parse(shown));
    } catch (problem) {
      setFailure(problem instanceof SyntaxError ? { message: `This is not JSON: ${problem.message}` } : problem);
    }
  };
  const check = act(async (body) => setProblems((await post('/config/check', body)).problems));
  const save = act(async (body) => {
    await put('/config', { version: value.version, ...body });
    toast('The configuration is in use.');
    setText(null);
    setProblems(null);
    reload();
  });
  const title = `Channels and models, version ${value.version}`;
  const place = html`<span class="muted">kept in ${value.kept_in === 'store' ? 'the store' : 'the file'}</span>`;
  if (!isText) {
    return html`<${Card} title=${title} actions=${html`${place}<${Button} small onClick=${() => setIsText(true)}>${session.can('owner') ? 'Change as text' : 'Show as text'}<//>`}>
        <p class="muted">Credentials are not shown. The other settings of the gateway are in its configuration file; <span class="mono">tollgate check</span> explains them.</p><//>
      <${Entries} value=${value} />`;
  }
  return html`<${Card} title=${title} actions=${html`${place}<${Button} small onClick=${() => setIsText(false)}>Show as tables<//>`}>
    <div class="stack">
      <p class="muted">Credentials are not shown. An entry without one keeps the one it has.</p>
      <textarea rows="22" aria-label="Channels and models as JSON" spellcheck=${false} readonly=${!session.can('owner')} value=${shown} onInput=${(event) => { setText(event.target.value); setProblems(null); }}></textarea>
      ${problems && (problems.length ? html`<div class="problem-box">${problems.map((problem) => html`<div key=${problem}>${problem}</div>`)}</div>` : html`<div class="outcome">No problem was found.</div>`)}
      <${Problem} error=${failure} /><${Problem} error=${error} retry=${reload} />
      ${failure?.code === 'version_conflict' && html`<div class="warning row wrap"><span class="grow">Somebody else has changed the configuration. Read it again to save your text over that change. Your text stays as it is, so add what it lacks first.</span><${Button} small onClick=${readAgain}>Read again<//></div>`}
      ${session.can('owner') && html`<div class="row end"><${Button} onClick=${check}>Check<//><${Button} kind="primary" busy=${text === null} onClick=${save}>Save<//></div>`}
    </div>
  <//>`;
}

/** The current user and role, for roles that may not see the tokens. */
function Role() {
  const session = useSession();
  return html`<${Card} title="Your role"><div class="stack"><${Facts} rows=${[['Signed in as', session.name], ['Role', `${session.role}: ${ROLES[session.role]}`]]} />
    <p class="muted">Admin tokens are shown to owners only.</p></div><//>`;
}

export function View({ query }) {
  const session = useSession();
  const tab = query.tab ?? 'tokens';
  return html`<div class="page">
    <${Tabs} tabs=${[['tokens', 'Tokens'], ['configuration', 'Configuration']]} chosen=${tab} choose=${(chosen) => refine({ tab: chosen })} />
    ${tab === 'configuration' ? html`<${Configuration} />` : session.can('owner') ? html`<${Tokens} query=${query} />` : html`<${Role} />`}
  </div>`;
}
