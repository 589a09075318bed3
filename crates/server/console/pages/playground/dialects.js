// What each endpoint of the playground takes and says: path, first body, and how its events become text.

const text = (value) => (typeof value === 'string' ? value : '');
const join = (parts, pick) => (parts ?? []).map(pick).join('');

/** Takes `{system, prompt, model, output_max, temperature}` from the form. */
export const DIALECTS = {
  chat: {
    title: 'Chat completions', kind: 'text', path: () => '/v1/chat/completions',
    body: ({ model, system, prompt, outputMax, temperature }) => ({
      model, stream: true, max_tokens: outputMax, temperature,
      messages: [...(system ? [{ role: 'system', content: system }] : []), { role: 'user', content: prompt }],
    }),
    read: (event) => {
      const delta = event.choices?.[0]?.delta ?? event.choices?.[0]?.message ?? {};
      return { text: text(delta.content), thought: text(delta.reasoning_content) || text(delta.reasoning), tools: delta.tool_calls, usage: event.usage };
    },
  },
  responses: {
    title: 'Responses', kind: 'text', path: () => '/v1/responses',
    body: ({ model, system, prompt, outputMax, temperature }) => ({ model, stream: true, input: prompt, instructions: system || undefined, max_output_tokens: outputMax, temperature }),
    read: (event) => {
      if (event.type === 'response.output_text.delta') return { text: event.delta };
      if (event.type?.startsWith('response.reasoning') && event.type.endsWith('.delta')) return { thought: text(event.delta) };
      if (event.output) return { text: join(event.output, (item) => join(item.content, (part) => text(part.text))), usage: event.usage };
      return { usage: event.response?.usage };
    },
  },
  messages: {
    title: 'Messages', kind: 'text', path: () => '/v1/messages', headers: { 'anthropic-version': '2023-06-01' },
    body: ({ model, system, prompt, outputMax, temperature }) => ({ model, stream: true, max_tokens: outputMax ?? 1024, temperature, system: system || undefined, messages: [{ role: 'user', content: prompt }] }),
    read: (event) => {
      if (event.type === 'content_block_delta') return { text: text(event.delta.text), thought: text(event.delta.thinking) };
      if (event.content) return { text: join(event.content, (block) => text(block.text)), usage: event.usage };
      return { usage: event.message?.usage ?? event.usage };
    },
  },
  generate: {
    title: 'Generate Content', kind: 'text', path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: ({ system, prompt, outputMax, temperature }) => ({
      contents: [{ role: 'user', parts: [{ text: prompt }] }], systemInstruction: system ? { parts: [{ text: system }] } : undefined,
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
    title: 'Interactions', kind: 'text', path: () => '/v1beta/interactions',
    body: ({ model, system, prompt, outputMax, temperature }) => ({ model, stream: true, input: prompt, system_instruction: system || undefined, generation_config: { max_output_tokens: outputMax, temperature } }),
    read: (event) => {
      const delta = event.delta ?? {};
      if (delta.type === 'thought' || delta.type === 'thought_summary') return { thought: text(delta.text) || text(delta.content?.text) };
      return { text: text(delta.text), usage: event.interaction?.usage ?? event.usage };
    },
  },
  images: {
    title: 'Images', kind: 'image', path: () => '/v1/images/generations',
    body: ({ model, prompt }) => ({ model, prompt, n: 1, response_format: 'b64_json' }),
    read: (event) => ({ images: (event.data ?? []).map((image) => image.url ?? `data:image/png;base64,${image.b64_json}`), usage: event.usage }),
  },
  video: {
    title: 'Video', kind: 'video', path: () => '/v1/videos/generations',
    body: ({ model, prompt }) => ({ model, prompt }),
    read: (event) => ({ text: event.request_id ? `Task ${event.request_id} was created. Follow it under Tasks.` : '', task: event.request_id }),
  },
  speech: {
    title: 'Speech', kind: 'speech', path: () => '/v1/audio/speech',
    body: ({ model, prompt }) => ({ model, input: prompt, voice: 'alloy' }),
    read: () => ({}),
  },
};

/** Members without a value do not stand in a request. */
export function tidy(value) {
  if (Array.isArray(value)) return value.map(tidy);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== '' && !Number.isNaN(inner)).map(([name, inner]) => [name, tidy(inner)]).filter(([, inner]) => !(inner && typeof inner === 'object' && !Array.isArray(inner) && !Object.keys(inner).length)));
}
