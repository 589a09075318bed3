// Interactions, through @google/genai.

import { GoogleGenAI } from "@google/genai";
import * as z from "zod";
import {
  KEY, KEY_POOR, KEY_SLOW, KEY_WRONG, PICTURE_URL, Place, PROMPTS, TIMEOUT_MS, URL,
  all, check, has, isPlace, isReasoned, isUsage, limited, raised, same,
} from "./shared.mjs";

const clientOf = (apiKey = KEY) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: URL, timeout: TIMEOUT_MS } });

const client = clientOf();
// Without retries, so that errors which the client would retry become visible.
const HASTY = { retries: { strategy: "none" } };

const text = (text) => ({ type: "text", text });
const user = (...content) => ({ type: "user_input", content });
const ask = (model, input, more, { by = client, ...options } = {}) =>
  by.interactions.create({ model, input, ...more }, options);
const tool = (told) => ({ type: "function", ...told });
const callsOf = (steps) => steps.filter((step) => step.type === "function_call");
const called = (steps) => callsOf(steps).map((call) => [call.name, call.arguments]);
const resultsOf = (steps, results) =>
  callsOf(steps).map(({ id, name }, index) => ({
    type: "function_result",
    call_id: id,
    name,
    result: [text(results[index])],
  }));

const THINKING = { generation_config: { thinking_level: "high", thinking_summaries: "auto" } };

// Builds the interaction from its stream, which the client does not do.
async function answerOfStream(stream) {
  const [kinds, steps] = [[], []];
  let last;
  for await (const event of await stream) {
    kinds.push(event.event_type);
    if (event.event_type === "step.start") steps.push({ ...event.step });
    else if (event.event_type === "step.delta") appendDelta(steps[event.index], event.delta);
    else if (event.event_type === "interaction.completed") last = event.interaction;
  }
  for (const step of steps) {
    if (step.fragments) step.arguments = JSON.parse(step.fragments);
    delete step.fragments;
  }
  return { ...last, kinds, steps };
}

function appendDelta(step, delta) {
  if (delta.type === "text") {
    step.content ??= [text("")];
    step.content[0].text += delta.text;
  } else if (delta.type === "arguments_delta") {
    step.fragments = (step.fragments ?? "") + delta.arguments;
  } else if (delta.type === "thought_summary") {
    step.summary = [...(step.summary ?? []), delta.content];
  } else if (delta.type === "thought_signature") {
    step.signature = delta.signature;
  }
}

const partsOf = (steps, type, member) =>
  steps.filter((step) => step.type === type).flatMap((step) => step[member] ?? []);
const textOf = (steps) => partsOf(steps, "model_output", "content").map((part) => part.text).join("");
const thoughtsOf = (steps) => partsOf(steps, "thought", "summary").map((part) => part.text).join("");

function calledInParallel({ status, steps }) {
  same(status, "requires_action", "status");
  same(called(steps), PROMPTS.parallel.arguments.map((one) => ["get_weather", one]), "calls");
  same(new Set(callsOf(steps).map((call) => call.id)).size, 2, "number of ids");
}

async function sees(model, source) {
  const { prompt, answer } = PROMPTS.image;
  const told = await ask(model, [user(text(prompt), { type: "image", ...source })]);
  has(told.output_text, answer);
}

async function runsToolLoop(upstream, ask) {
  const { prompt, calls, results } = PROMPTS.loop;
  const input = [user(text(prompt))];
  const more = { tools: [tool(PROMPTS.weather), tool(PROMPTS.time)], store: false, ...THINKING };
  for (const name of calls) {
    const { steps } = await ask(`${upstream}/thinker`, input, more);
    same(called(steps).map(([name]) => name), [name], "calls");
    input.push(...steps, ...resultsOf(steps, [results[name]]));
  }
  const answer = textOf((await ask(`${upstream}/thinker`, input, more)).steps);
  for (const result of Object.values(results)) has(answer, result);
}

// The client does not export its error classes, so they are compared by name.
async function refused(call, name, status) {
  const error = await raised(Error, call);
  same([error.constructor.name, error.status], [name, status], error.message);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = PROMPTS.plain;
    const told = await ask(`${upstream}/plain`, prompt, { system_instruction: system });
    same(told.output_text, answer);
    same([told.status, told.model], ["completed", `${upstream}/plain`]);
    check(told.id.startsWith("int_"), told.id);
  },

  async stream(upstream) {
    const more = { stream: true };
    const told = await answerOfStream(ask(`${upstream}/plain`, PROMPTS.stream.prompt, more));
    same(told.kinds.slice(0, 2), ["interaction.created", "interaction.status_update"], "events");
    same(told.kinds.at(-1), "interaction.completed", "last event");
    has(textOf(told.steps), PROMPTS.stream.last);
    same(told.status, "completed", "status");
  },

  async history(upstream) {
    const { first, second, answer } = PROMPTS.history;
    const input = [user(text(first))];
    input.push(...(await ask(`${upstream}/plain`, input)).steps, user(text(second)));
    same((await ask(`${upstream}/plain`, input)).output_text, answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = PROMPTS.tools;
    const input = [user(text(prompt))];
    const more = { tools: [tool(PROMPTS.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    same(first.status, "requires_action", "status");
    same(called(first.steps), [["get_weather", wanted]], "calls");
    input.push(...first.steps, ...resultsOf(first.steps, [result]));
    const second = await ask(`${upstream}/plain`, input, more);
    same(second.status, "completed", "status");
    has(second.output_text, result);
  },

  async tool_choice(upstream) {
    const { forced, prompt, forbidden } = PROMPTS.tool_choice;
    const tools = [tool(PROMPTS.weather), tool(PROMPTS.time)];
    const any = { allowed_tools: { mode: "any", tools: [forced] } };
    const first = await ask(`${upstream}/plain`, prompt, { tools, generation_config: { tool_choice: any } });
    same(called(first.steps).map(([name]) => name), [forced], "calls");
    const none = { tools, generation_config: { tool_choice: "none" } };
    const second = await ask(`${upstream}/plain`, forbidden, none);
    check(second.output_text && !called(second.steps).length, second);
  },

  async parallel(upstream) {
    const { prompt, results } = PROMPTS.parallel;
    const input = [user(text(prompt))];
    const more = { tools: [tool(PROMPTS.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    calledInParallel(first);
    input.push(...first.steps, ...resultsOf(first.steps, results));
    const answer = (await ask(`${upstream}/plain`, input, more)).output_text;
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const more = { tools: [tool(PROMPTS.weather)], stream: true };
    calledInParallel(await answerOfStream(ask(`${upstream}/plain`, PROMPTS.parallel.prompt, more)));
  },

  async structured(upstream) {
    // The client has no helper for zod; this is how its documentation does it.
    const schema = z.toJSONSchema(Place);
    const response_format = { type: "text", mime_type: "application/json", schema };
    const prompt = PROMPTS.structured.prompt;
    const answer = await ask(`${upstream}/plain`, prompt, { response_format });
    isPlace(JSON.parse(answer.output_text));
  },

  async image(upstream) {
    const { mime_type, png } = PROMPTS.image;
    await sees(`${upstream}/plain`, { data: png, mime_type });
  },

  async image_url(upstream) {
    await sees(`${upstream}/inline`, { uri: PICTURE_URL });
  },

  async limit(upstream) {
    const { prompt, output_tokens_max } = PROMPTS.limit;
    const more = { generation_config: { max_output_tokens: output_tokens_max } };
    const answer = await ask(`${upstream}/plain`, prompt, more);
    same([answer.status, answer.usage.total_output_tokens], ["incomplete", output_tokens_max]);
  },

  async usage(upstream) {
    const figures = (usage) => [
      usage.total_input_tokens,
      usage.total_output_tokens,
      usage.total_tokens,
    ];
    const whole = await ask(`${upstream}/plain`, PROMPTS.usage.prompt);
    const more = { stream: true };
    const streamed = await answerOfStream(ask(`${upstream}/plain`, PROMPTS.usage.prompt, more));
    isUsage(figures(whole.usage), figures(streamed.usage));
  },

  async reasoning(upstream) {
    const { prompt, thought } = PROMPTS.reasoning;
    const whole = await ask(`${upstream}/thinker`, prompt, THINKING);
    const more = { stream: true, ...THINKING };
    const streamed = await answerOfStream(ask(`${upstream}/thinker`, prompt, more));
    for (const answer of [whole, streamed]) {
      has(thoughtsOf(answer.steps), thought);
      check(textOf(answer.steps), answer);
      isReasoned(answer.usage.total_thought_tokens);
    }
  },

  async loop(upstream) {
    await runsToolLoop(upstream, ask);
  },

  async loop_stream(upstream) {
    await runsToolLoop(upstream, (model, input, more) =>
      answerOfStream(ask(model, input, { ...more, stream: true })),
    );
  },

  async bad_key(upstream) {
    const by = clientOf(KEY_WRONG);
    await refused(() => ask(`${upstream}/plain`, "hello", {}, { by }), "AuthenticationError", 401);
  },

  async bad_request(upstream) {
    await refused(() => ask(`${upstream}/plain`, []), "BadRequestError", 400);
  },

  async unknown_model(upstream) {
    await refused(() => ask(`${upstream}/none`, "hello"), "NotFoundError", 404);
  },

  async rate_limit(upstream) {
    const options = { by: clientOf(KEY_SLOW), ...HASTY };
    const error = await limited(Error, () => ask(`${upstream}/plain`, "hello", {}, options));
    same([error.constructor.name, error.status], ["RateLimitError", 429], error.message);
  },

  async empty_wallet(upstream) {
    // With the client's default retries: it must not retry this error.
    const by = clientOf(KEY_POOR);
    await refused(() => ask(`${upstream}/plain`, "hello", {}, { by }), "APIError", 402);
  },

  async busy(upstream) {
    const call = () => ask(`${upstream}/busy`, "hello", {}, HASTY);
    await refused(call, "InternalServerError", 503);
  },

  async broken_stream(upstream) {
    // The client recognises a failed stream by its last event.
    const more = { stream: true };
    const events = await all(await ask(`${upstream}/broken`, PROMPTS.broken_stream.prompt, more));
    same(events.at(-1).event_type, "error", "last event");
    check(events.at(-1).error.message, events.at(-1));
  },
};
