// The playground: conversations through chat completions, pictures through the endpoint that the model supports.

import { call, CallError, events } from './client.js';
import { byId, element } from './dom.js';

const CHAT = '/v1/chat/completions';
const IMAGES = '/v1/images/generations';
const GENERATE = '/v1beta/models/{model}:generateContent';

let messages = [];
let running = null;

/** Shows the playground with the models that it can call. */
export function openPlayground(models, settled) {
  const callable = models.filter((model) => endpointOf(model));
  const options = callable.map((model) => element('option', { value: model.id }, model.id));
  const chosen = byId('play-model').value;
  byId('play-model').replaceChildren(...options);
  if (callable.some((model) => model.id === chosen)) byId('play-model').value = chosen;
  byId('play').hidden = callable.length === 0;
  byId('play-locked').hidden = callable.length > 0;
  byId('clear').onclick = clear;
  byId('prompt').onkeydown = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) byId('play').requestSubmit();
  };
  byId('play').onsubmit = (event) => {
    event.preventDefault();
    if (running) running.abort();
    else send(callable.find((model) => model.id === byId('play-model').value)).then(settled);
  };
}

/** Hides the playground and forgets the conversation. */
export function closePlayground() {
  clear();
  byId('play').hidden = true;
  byId('play-locked').hidden = false;
}

const withoutVersion = (path) => path.replace(/^\/v1(beta)?\//, '');
const endpointOf = (model) =>
  [CHAT, IMAGES, GENERATE].find((path) => model.supported_endpoints.includes(withoutVersion(path)));

function clear() {
  running?.abort();
  messages = [];
  byId('turns').replaceChildren();
  byId('play-status').textContent = '';
}

async function send(model) {
  const prompt = byId('prompt').value.trim();
  if (!prompt || !model) return;
  const turn = element('div', { class: 'turn' });
  byId('turns').append(element('div', { class: 'turn user' }, prompt), turn);
  byId('prompt').value = '';
  byId('send').textContent = 'Stop';
  byId('play-status').textContent = 'Waiting for the first token…';
  running = new AbortController();
  const began = performance.now();
  try {
    const facts = await ANSWERS[endpointOf(model)](model.id, prompt, turn, began);
    turn.append(element('span', { class: 'facts-line' }, [...facts, `${Math.round(performance.now() - began)} ms`].join(' · ')));
  } catch (error) {
    turn.append(refusal(error));
  } finally {
    running = null;
    byId('send').textContent = 'Send';
    byId('play-status').textContent = '';
  }
}

function refusal(error) {
  if (error.name === 'AbortError') return element('span', { class: 'facts-line' }, 'Stopped.');
  const text = error instanceof CallError ? `${error.code}: ${error.message} ${error.advice}` : `The call broke off: ${error.message}`;
  return element('p', { class: 'problem' }, text);
}

const ANSWERS = {
  async [CHAT](model, prompt, turn, began) {
    messages.push({ role: 'user', content: prompt });
    const body = { model, messages, stream: true, stream_options: { include_usage: true } };
    const answer = await call(CHAT, body, running.signal);
    const [thought, text] = [element('span', { class: 'thought', hidden: true }), element('span')];
    turn.append(thought, text);
    let usage = null;
    let first = null;
    for await (const data of events(answer)) {
      if (data === '[DONE]') break;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new CallError(answer.status, chunk.error);
      usage = chunk.usage ?? usage;
      const delta = chunk.choices?.[0]?.delta ?? {};
      if (delta.reasoning_content) { thought.hidden = false; thought.append(delta.reasoning_content); }
      if (delta.content) {
        first ??= performance.now() - began;
        byId('play-status').textContent = '';
        text.append(delta.content);
      }
    }
    messages.push({ role: 'assistant', content: text.textContent });
    return [
      usage && `${usage.prompt_tokens} tokens in, ${usage.completion_tokens} out`,
      first != null && `first after ${Math.round(first)} ms`,
      ...dropped(answer),
    ].filter(Boolean);
  },
  async [IMAGES](model, prompt, turn) {
    const answer = await call(IMAGES, { model, prompt }, running.signal);
    const { data, output_format: format } = await answer.json();
    for (const picture of data) {
      turn.append(picture.b64_json ? image(`data:image/${format ?? 'png'};base64,${picture.b64_json}`, prompt)
        : element('a', { class: 'link', href: picture.url, rel: 'noreferrer', target: '_blank' }, 'Open the picture'));
    }
    return [`${data.length} ${data.length === 1 ? 'picture' : 'pictures'}`, ...dropped(answer)];
  },
  async [GENERATE](model, prompt, turn) {
    const body = { contents: [{ role: 'user', parts: [{ text: prompt }] }], generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } };
    const path = GENERATE.replace('{model}', model.split('/').map(encodeURIComponent).join('/'));
    const answer = await call(path, body, running.signal);
    for (const part of (await answer.json()).candidates?.[0]?.content?.parts ?? []) {
      if (part.text) turn.append(part.text);
      if (part.inlineData) turn.append(image(`data:${part.inlineData.mimeType};base64,${part.inlineData.data}`, prompt));
    }
    return dropped(answer);
  },
};

function image(source, prompt) {
  return element('img', { src: source, alt: prompt });
}

/** A sentence about the members that the conversion dropped. */
function dropped(answer) {
  const names = answer.headers.get('x-dropped-params');
  return names ? [`left out: ${names}`] : [];
}
