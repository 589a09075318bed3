// The endpoints of the playground: path, request body, and how their events become text.

const text = (value) => (typeof value === 'string' ? value : '');
const join = (parts, pick) => (parts ?? []).map(pick).join('');
/** Splits the data URL of a picture into its media type and its base64. */
const media = (picture) => { const [, type, data] = /^data:([^;]+);base64,(.*)$/.exec(picture); return { type, data }; };

/**
 * `body` builds the request from `{model, system, prompt, outputMax, temperature, picture, file}` of the form. `kinds` are
 * the supported kinds of models. `read` extracts the content of one event or answer.
 */
export const DIALECTS = {
  chat: {
    title: 'Chat completions', kinds: ['text'], path: () => '/v1/chat/completions',
    body: ({ model, system, prompt, outputMax, temperature, picture }) => ({
      model, stream: true, max_tokens: outputMax, temperature,
      messages: [...(system ? [{ role: 'system', content: system }] : []),
        { role: 'user', content: picture ? [{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: picture } }] : prompt }],
    }),
    read: (event) => {
      const delta = event.choices?.[0]?.delta ?? event.choices?.[0]?.message ?? {};
      return { text: text(delta.content), thought: text(delta.reasoning_content) || text(delta.reasoning), usage: event.usage };
    },
  },
  responses: {
    title: 'Responses', kinds: ['text'], path: () => '/v1/responses',
    body: ({ model, system, prompt, outputMax, temperature, picture }) => ({
      model, stream: true, instructions: system || undefined, max_output_tokens: outputMax, temperature,
      input: picture ? [{ role: 'user', content: [{ type: 'input_text', text: prompt }, { type: 'input_image', image_url: picture }] }] : prompt,
    }),
    read: (event) => {
      if (event.type === 'response.output_text.delta') return { text: event.delta };
      if (event.type?.startsWith('response.reasoning') && event.type.endsWith('.delta')) return { thought: text(event.delta) };
      if (event.output) return { text: join(event.output, (item) => join(item.content, (part) => text(part.text))), usage: event.usage };
      return { usage: event.response?.usage };
    },
  },
  messages: {
    title: 'Messages', kinds: ['text'], path: () => '/v1/messages', headers: { 'anthropic-version': '2023-06-01' },
    body: ({ model, system, prompt, outputMax, temperature, picture }) => ({
      model, stream: true, max_tokens: outputMax ?? 1024, temperature, system: system || undefined,
      messages: [{ role: 'user', content: picture ? [{ type: 'image', source: { type: 'base64', media_type: media(picture).type, data: media(picture).data } }, { type: 'text', text: prompt }] : prompt }],
    }),
    read: (event) => {
      if (event.type === 'content_block_delta') return { text: text(event.delta.text), thought: text(event.delta.thinking) };
      if (event.content) return { text: join(event.content, (block) => text(block.text)), usage: event.usage };
      return { usage: event.message?.usage ?? event.usage };
    },
  },
  generate: {
    title: 'Generate Content', kinds: ['text'], path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`, template: '/v1beta/models/{id}:generateContent',
    body: ({ system, prompt, outputMax, temperature, picture }) => ({
      contents: [{ role: 'user', parts: [{ text: prompt }, ...(picture ? [{ inlineData: { mimeType: media(picture).type, data: media(picture).data } }] : [])] }],
      systemInstruction: system ? { parts: [{ text: system }] } : undefined,
      generationConfig: { maxOutputTokens: outputMax, temperature },
    }),
    read: (event) => {
      const parts = event.candidates?.[0]?.content?.parts ?? [];
      return {
        text: join(parts, (part) => (part.thought ? '' : text(part.text))), thought: join(parts, (part) => (part.thought ? text(part.text) : '')),
        images: parts.filter((part) => part.inlineData).map((part) => `data:${part.inlineData.mimeType};base64,${part.inlineData.data}`), usage: event.usageMetadata,
      };
    },
  },
  interactions: {
    title: 'Interactions', kinds: ['text'], path: () => '/v1beta/interactions',
    body: ({ model, system, prompt, outputMax, temperature }) => ({ model, stream: true, input: prompt, system_instruction: system || undefined, generation_config: { max_output_tokens: outputMax, temperature } }),
    read: (event) => {
      const delta = event.delta ?? {};
      if (delta.type === 'thought' || delta.type === 'thought_summary') return { thought: text(delta.text) || text(delta.content?.text) };
      return { text: text(delta.text), usage: event.interaction?.usage ?? event.usage };
    },
  },
  images: {
    title: 'Images', kinds: ['image'], path: () => '/v1/images/generations',
    body: ({ model, prompt }) => ({ model, prompt, n: 1 }),
    read: (event) => ({ images: (event.data ?? []).map((image) => text(image.url) || `data:image/png;base64,${image.b64_json}`), usage: event.usage }),
  },
  video: {
    title: 'Video', kinds: ['video'],
    // A video model has one protocol, which is listed among the model's protocols.
    path: (model, protocols = []) => (protocols.includes('predict') ? `/v1beta/models/${model}:predictLongRunning`
      : protocols.includes('content-task') ? '/v1/contents/generations/tasks' : protocols.includes('omni') ? '/v1beta/interactions' : '/v1/videos/generations'),
    body: ({ model, prompt }, protocols = []) => (protocols.includes('predict') ? { instances: [{ prompt }] }
      : protocols.includes('content-task') ? { model, content: [{ type: 'text', text: prompt }] }
        : protocols.includes('omni') ? { model, input: prompt, background: true } : { model, prompt }),
    read: (event) => ({ task: event.request_id ?? event.id ?? event.name?.split('/').at(-1) }),
  },
  speech: {
    title: 'Speech', kinds: ['audio'], isSound: true, path: () => '/v1/tts',
    body: ({ model, prompt }) => ({ model, text: prompt, language: 'en', output_format: { codec: 'wav' } }),
    read: () => ({}),
  },
  transcript: {
    title: 'Transcript', kinds: ['audio'], path: () => '/v1/stt', takesFile: true,
    body: ({ model }) => ({ model }),
    read: (event) => ({ text: text(event.text) }),
  },
  realtime: { title: 'Realtime', kinds: ['audio'], isSession: true, path: () => '/v1/realtime', body: () => ({}), read: () => ({}) },
  embeddings: {
    title: 'Embeddings', kinds: ['embedding'], path: () => '/v1/embeddings',
    body: ({ model, prompt }) => ({ model, input: prompt }),
    read: (event) => ({ text: (event.data ?? []).map(({ embedding }) => (Array.isArray(embedding) ? `${embedding.length} numbers: ${embedding.slice(0, 8).join(', ')}, …` : 'a vector')).join('\n'), usage: event.usage }),
  },
};

/** The dialect of a journaled call, by its endpoint. */
export function dialectOf(endpoint) {
  const known = Object.entries(DIALECTS).find(([, { template, path }]) => endpoint === (template ?? path('')) || endpoint === path(''));
  return known?.[0];
}

/** Removes members without a value from a request. */
export function withoutEmpty(value) {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== '' && !Number.isNaN(inner)).map(([name, inner]) => [name, withoutEmpty(inner)]).filter(([, inner]) => !(inner && typeof inner === 'object' && !Array.isArray(inner) && !Object.keys(inner).length)));
}
