// Realtime: a conversation by text or voice over a WebSocket, shown with its raw events.

import { html, useEffect, useRef, useState } from '../../preact.js';
import { get } from '../../api.js';
import { credits, duration } from '../../format.js';
import { address } from '../../router.js';
import { sessionCode } from '../../snippets.js';
import { Badge, Button, Card, Code, Empty, Field, Problem, Tabs } from '../../ui/components.js';
import { EMPTY, decodeSound, encodeSound, withEvent, openSession, withUserText, setup, textEvents } from './session.js';
import { Player, listenToMicrophone } from './sound.js';

/** The maximum number of events that are kept. A long conversation has thousands. */
const EVENTS_MAX = 500;
/** The pauses before each look for the charge in the journal. A session is settled shortly after its end. */
const CHARGE_WAITS_MS = [300, 700, 1500, 3000];

/** Shortens base64 audio, which is long and unreadable. */
const shortened = (text) => text.replace(/"(delta|audio)":"([A-Za-z0-9+/=]{80})[A-Za-z0-9+/=]*"/, '"$1":"$2…"');

/** The journal row of the session that has just ended. */
async function findCall(key, model, since) {
  for (const wait of CHARGE_WAITS_MS) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const found = await get('/calls', { key, model, endpoint: '/v1/realtime', from: since, limit: 1 }).catch(() => null);
    if (found?.data.length) return found.data[0];
  }
  return null;
}

/** The session of this page: at most one at a time. */
function useSession({ model, keyId, instructions, spoken }) {
  const [state, setState] = useState('closed');
  const [talk, setTalk] = useState(EMPTY);
  const [events, setEvents] = useState([]);
  const [ended, setEnded] = useState(null);
  const [call, setCall] = useState(null);
  const session = useRef(null);
  const player = useRef(new Player());
  useEffect(() => () => { session.current?.close(); player.current.stop(); }, []);
  const open = () => {
    const begun = performance.now();
    const since = Date.now() - 1000;
    setState('opening'); setTalk(EMPTY); setEvents([]); setEnded(null); setCall(null);
    session.current = openSession({ model, key: keyId, first: setup({ instructions, spoken }) }, {
      opened: () => setState('open'),
      event: (event, text, isOurs) => {
        setEvents((before) => [...before.slice(1 - EVENTS_MAX), { at: performance.now() - begun, data: shortened(text), isOurs }]);
        if (isOurs) return;
        setTalk((before) => withEvent(before, event));
        if (/^response\.(output_)?audio\.delta$/.test(event.type)) player.current.play(decodeSound(event.delta ?? ''));
        // The user begins to speak, so stop playing the previous answer.
        if (event.type === 'input_audio_buffer.speech_started') player.current.stop();
      },
      closed: async (reason) => {
        session.current = null;
        player.current.stop();
        setState('closed');
        setEnded(reason);
        setCall(await findCall(keyId, model, since));
      },
    });
  };
  const say = (text) => { setTalk((before) => withUserText(before, text)); textEvents(text).forEach((event) => session.current?.send(event)); };
  const hear = (samples) => session.current?.send({ type: 'input_audio_buffer.append', audio: encodeSound(samples) });
  return { state, talk, events, ended, call, open, say, hear, close: () => session.current?.close() };
}

/** The microphone, while the session is open. */
function Microphone({ hear }) {
  const [stop, setStop] = useState(null);
  const [error, setError] = useState(null);
  const running = useRef(null);
  useEffect(() => () => running.current?.(), []);
  if (!navigator.mediaDevices || !window.AudioWorkletNode) return html`<p class="muted">The microphone needs a page over HTTPS or on this computer.</p>`;
  const begin = async () => {
    setError(null);
    try {
      running.current = await listenToMicrophone(hear);
      setStop(() => running.current);
    } catch (failure) {
      setError({ message: `The microphone cannot be used: ${failure.message}` });
    }
  };
  const end = () => { running.current?.(); running.current = null; setStop(null); };
  return html`<${Button} icon="audio" onClick=${stop ? end : begin}>${stop ? 'Stop talking' : 'Talk'}<//><${Problem} error=${error} />`;
}

function Talk({ talk, ended, call, state }) {
  if (!talk.turns.length && !ended) return html`<${Empty} title="Nobody has spoken yet"><p>${state === 'open' ? 'Write something, or press “Talk”.' : 'Press “Connect”. A session is charged while it is open.'}</p><//>`;
  return html`<div class="talk" aria-live="polite">${talk.turns.map(({ who, text, key }) => html`<div key=${key} class=${who}><span class="who">${who === 'you' ? 'You' : 'Model'}</span>${text}</div>`)}
    ${talk.failure && html`<div class="problem-box">${talk.failure}</div>`}
    ${ended && html`<p class="muted">${ended}${call && html` It lasted ${duration(call.total_ms)} and cost ${credits(call.charge)} credits. <a class="link" href=${address(['requests', call.request_id])}>explained</a>`}</p>`}</div>`;
}

function Events({ events }) {
  if (!events.length) return html`<${Empty} title="No event yet"><p>The events of both sides appear here, with the time since the one before.</p><//>`;
  return html`<div class="events" tabindex="0" role="region" aria-label="Raw events">${events.map(({ at, data, isOurs }, index) => html`<div key=${index}><span class="at">${isOurs ? '→' : '←'} ${index ? `+${duration(at - events[index - 1].at)}` : duration(at)}</span><span class="data">${data}</span></div>`)}</div>`;
}

/** The controls below the playground's form, and the conversation beside both. */
export function Realtime({ model, keyId, url }) {
  const [instructions, setInstructions] = useState('');
  const [spoken, setSpoken] = useState(true);
  const [text, setText] = useState('');
  const [tab, setTab] = useState('talk');
  const session = useSession({ model, keyId, instructions, spoken });
  const { state, talk, events, ended, call } = session;
  const isOpen = state === 'open';
  const send = (event) => { event.preventDefault(); if (text.trim() && isOpen) { session.say(text.trim()); setText(''); } };
  return html`<div class="stack">
    <div class="form">
      <${Field} label="Instructions" fullWidth><textarea rows="2" value=${instructions} disabled=${state !== 'closed'} onInput=${(event) => setInstructions(event.target.value)}></textarea><//>
      <${Field} label="Answers"><select value=${spoken ? 'audio' : 'text'} disabled=${state !== 'closed'} onChange=${(event) => setSpoken(event.target.value === 'audio')}><option value="audio">spoken</option><option value="text">written</option></select><//>
    </div>
    <div class="row end">${state === 'closed' ? html`<${Button} kind="primary" icon="play" busy=${!model || !keyId} onClick=${session.open}>Connect<//>` : html`<${Button} onClick=${session.close}>Disconnect<//>`}</div>
  </div>
  <div class="stack conversation">
    <${Tabs} tabs=${[['talk', 'Conversation'], ['events', 'Events'], ['code', 'Code']]} chosen=${tab} choose=${setTab} />
    ${tab === 'talk' && html`<${Card} title=${model} actions=${html`<${Badge} tone=${isOpen ? 'good' : ''}>${state}<//>`} pad=${false}>
      <${Talk} talk=${talk} ended=${ended} call=${call} state=${state} />
      <form class="body row wrap say" onSubmit=${send}><input class="grow" aria-label="Say something" placeholder="Say something" value=${text} disabled=${!isOpen} onInput=${(event) => setText(event.target.value)} /><${Button} type="submit" kind="primary" busy=${!isOpen || !text.trim()}>Say it<//>${isOpen && html`<${Microphone} hear=${session.hear} />`}</form><//>`}
    ${tab === 'events' && html`<${Card} title=${model} pad=${false}><${Events} events=${events} /><//>`}
    ${tab === 'code' && sessionCode(url, model).map(([name, code]) => html`<h3 key=${name}>${name}</h3><${Code} text=${code} />`)}
  </div>`;
}
