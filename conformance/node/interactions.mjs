// Interactions, through @google/genai.

import { GoogleGenAI } from "@google/genai";
import * as z from "zod";
import {
  KEY, KEY_POOR, KEY_SLOW, KEY_WRONG, Place, TALK, TIMEOUT_MS, URL,
  all, check, has, isPlace, isUsage, limited, raised, same,
} from "./talk.mjs";

const clientOf = (apiKey = KEY) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: URL, timeout: TIMEOUT_MS } });

const client = clientOf();
// For errors that a client would try again on: they are to be seen.
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

// The kinds, text, calls and last interaction of a stream; the client gathers none of them.
async function gathered(stream) {
  const [kinds, calls] = [[], new Map()];
  let [said, last] = ["", undefined];
  for await (const event of await stream) {
    kinds.push(event.event_type);
    if (event.event_type === "step.start" && event.step.type === "function_call") {
      calls.set(event.index, { name: event.step.name, text: "" });
    } else if (event.event_type === "step.delta" && event.delta.type === "text") {
      said += event.delta.text;
    } else if (event.event_type === "step.delta" && event.delta.type === "arguments_delta") {
      calls.get(event.index).text += event.delta.arguments;
    } else if (event.event_type === "interaction.completed") {
      last = event.interaction;
    }
  }
  return { kinds, said, last, calls: [...calls.values()].map((one) => [one.name, JSON.parse(one.text)]) };
}

function calledInParallel(calls) {
  same(calls, TALK.parallel.arguments.map((one) => ["get_weather", one]), "calls");
}

// The client does not export its error classes; they are known by their names.
async function refused(call, name, status) {
  const error = await raised(Error, call);
  same([error.constructor.name, error.status], [name, status], error.message);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = TALK.plain;
    const told = await ask(`${upstream}/plain`, prompt, { system_instruction: system });
    same(told.output_text, answer);
    same([told.status, told.model], ["completed", `${upstream}/plain`]);
    check(told.id.startsWith("int_"), told.id);
  },

  async stream(upstream) {
    const more = { stream: true };
    const told = await gathered(ask(`${upstream}/plain`, TALK.stream.prompt, more));
    same(told.kinds.slice(0, 2), ["interaction.created", "interaction.status_update"], "events");
    same(told.kinds.at(-1), "interaction.completed", "last event");
    has(told.said, TALK.stream.last);
    same(told.last.status, "completed", "status");
  },

  async history(upstream) {
    const { first, second, answer } = TALK.history;
    const input = [user(text(first))];
    input.push(...(await ask(`${upstream}/plain`, input)).steps, user(text(second)));
    same((await ask(`${upstream}/plain`, input)).output_text, answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = TALK.tools;
    const input = [user(text(prompt))];
    const more = { tools: [tool(TALK.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    same(first.status, "requires_action", "status");
    same(called(first.steps), [["get_weather", wanted]], "calls");
    input.push(...first.steps, ...resultsOf(first.steps, [result]));
    const second = await ask(`${upstream}/plain`, input, more);
    same(second.status, "completed", "status");
    has(second.output_text, result);
  },

  async parallel(upstream) {
    const { prompt, results } = TALK.parallel;
    const input = [user(text(prompt))];
    const more = { tools: [tool(TALK.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    calledInParallel(called(first.steps));
    same(new Set(callsOf(first.steps).map((call) => call.id)).size, 2, "number of ids");
    input.push(...first.steps, ...resultsOf(first.steps, results));
    const answer = (await ask(`${upstream}/plain`, input, more)).output_text;
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const more = { tools: [tool(TALK.weather)], stream: true };
    const told = await gathered(ask(`${upstream}/plain`, TALK.parallel.prompt, more));
    same(told.last.status, "requires_action", "status");
    calledInParallel(told.calls);
  },

  async structured(upstream) {
    // The client has no helper for zod; this is how its documentation does it.
    const schema = z.toJSONSchema(Place);
    const response_format = { type: "text", mime_type: "application/json", schema };
    const prompt = TALK.structured.prompt;
    const answer = await ask(`${upstream}/plain`, prompt, { response_format });
    isPlace(JSON.parse(answer.output_text));
  },

  async image(upstream) {
    const { prompt, mime_type, png, answer } = TALK.image;
    const input = [user(text(prompt), { type: "image", data: png, mime_type })];
    has((await ask(`${upstream}/plain`, input)).output_text, answer);
  },

  async limit(upstream) {
    const { prompt, output_tokens_max } = TALK.limit;
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
    const whole = await ask(`${upstream}/plain`, TALK.usage.prompt);
    const more = { stream: true };
    const { last } = await gathered(ask(`${upstream}/plain`, TALK.usage.prompt, more));
    isUsage(figures(whole.usage), figures(last.usage));
  },

  async reasoning(upstream) {
    const { prompt, thought } = TALK.reasoning;
    const answer = await ask(`${upstream}/thinker`, prompt, THINKING);
    const thoughts = answer.steps.filter((step) => step.type === "thought");
    has(thoughts.flatMap((step) => step.summary ?? []).map((part) => part.text).join(""), thought);
    check(answer.output_text, answer);
    check(answer.usage.total_thought_tokens > 0, answer.usage);
    const events = await all(await ask(`${upstream}/thinker`, prompt, { stream: true, ...THINKING }));
    const summaries = events
      .filter((event) => event.delta?.type === "thought_summary")
      .map((event) => event.delta.content.text);
    has(summaries.join(""), thought);
  },

  async loop(upstream) {
    const { prompt, calls, results } = TALK.loop;
    const input = [user(text(prompt))];
    const more = { tools: [tool(TALK.weather), tool(TALK.time)], store: false, ...THINKING };
    for (const name of calls) {
      const { steps } = await ask(`${upstream}/thinker`, input, more);
      same(called(steps).map(([name]) => name), [name], "calls");
      input.push(...steps, ...resultsOf(steps, [results[name]]));
    }
    const answer = (await ask(`${upstream}/thinker`, input, more)).output_text;
    for (const result of Object.values(results)) has(answer, result);
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
    // With the client's own retries: this is no error to try again on.
    const by = clientOf(KEY_POOR);
    await refused(() => ask(`${upstream}/plain`, "hello", {}, { by }), "APIError", 402);
  },

  async busy(upstream) {
    const call = () => ask(`${upstream}/busy`, "hello", {}, HASTY);
    await refused(call, "InternalServerError", 503);
  },

  async broken_stream(upstream) {
    // The client tells a stream that failed by its last event.
    const more = { stream: true };
    const events = await all(await ask(`${upstream}/broken`, TALK.broken_stream.prompt, more));
    same(events.at(-1).event_type, "error", "last event");
    check(events.at(-1).error.message, events.at(-1));
  },
};
