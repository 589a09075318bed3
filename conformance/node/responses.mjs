// Responses, through openai.

import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import {
  KEY, KEY_POOR, KEY_SLOW, KEY_WRONG, PICTURE_URL, Place, PROMPTS, TIMEOUT_MS, URL,
  all, check, has, isPlace, isReasoned, isUsage, limited, raised, same,
} from "./shared.mjs";

const clientOf = (apiKey = KEY, options = {}) =>
  new OpenAI({ baseURL: `${URL}/v1`, apiKey, timeout: TIMEOUT_MS, ...options });

const client = clientOf();
// Without retries, so that errors which the client would retry become visible.
const clientWithoutRetries = clientOf(KEY, { maxRetries: 0 });

const user = (content) => ({ role: "user", content });
const ask = (model, input, more, by = client) => by.responses.create({ model, input, ...more });
const tool = (told) => ({ type: "function", ...told, strict: true });
const callsOf = (response) => response.output.filter((item) => item.type === "function_call");
const called = (response) =>
  callsOf(response).map((call) => [call.name, JSON.parse(call.arguments)]);
const resultsOf = (response, results) =>
  callsOf(response).map((call, index) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: results[index],
  }));

// SDK helpers add parsed members, which no upstream accepts.
const sent = ({ parsed_arguments, ...item }) => item;

function calledInParallel(response) {
  same(called(response), PROMPTS.parallel.arguments.map((one) => ["get_weather", one]), "calls");
  same(new Set(callsOf(response).map((call) => call.call_id)).size, 2, "number of ids");
}

async function sees(model, image_url) {
  const { prompt, answer } = PROMPTS.image;
  const picture = { type: "input_image", detail: "auto", image_url };
  const input = [user([{ type: "input_text", text: prompt }, picture])];
  has((await ask(model, input)).output_text, answer);
}

async function runsToolLoop(upstream, create) {
  const { prompt, calls, results } = PROMPTS.loop;
  const body = {
    model: `${upstream}/thinker`,
    input: [user(prompt)],
    reasoning: { effort: "high" },
    tools: [tool(PROMPTS.weather), tool(PROMPTS.time)],
    store: false,
    include: ["reasoning.encrypted_content"],
  };
  for (const name of calls) {
    const asked = await create(body);
    same(called(asked).map(([name]) => name), [name], "calls");
    body.input.push(...asked.output.map(sent), ...resultsOf(asked, [results[name]]));
  }
  const answer = await create(body);
  for (const result of Object.values(results)) has(answer.output_text, result);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = PROMPTS.plain;
    const told = await ask(`${upstream}/plain`, prompt, { instructions: system });
    same(told.output_text, answer);
    same([told.status, told.model], ["completed", `${upstream}/plain`]);
    check(told.id.startsWith("resp_") && told._request_id.startsWith("req_"), told);
  },

  async stream(upstream) {
    const body = { model: `${upstream}/plain`, input: PROMPTS.stream.prompt };
    const stream = client.responses.stream(body);
    const kinds = (await all(stream)).map((event) => event.type);
    same([kinds.at(0), kinds.at(-1)], ["response.created", "response.completed"], "events");
    const final = await stream.finalResponse();
    has(final.output_text, PROMPTS.stream.last);
    same(final.status, "completed", "status");
  },

  async history(upstream) {
    const { first, second, answer } = PROMPTS.history;
    const input = [user(first)];
    // As applications do: all items are sent back.
    input.push(...(await ask(`${upstream}/plain`, input)).output, user(second));
    same((await ask(`${upstream}/plain`, input)).output_text, answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = PROMPTS.tools;
    const input = [user(prompt)];
    const more = { tools: [tool(PROMPTS.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    same(called(first), [["get_weather", wanted]], "calls");
    input.push(...first.output, ...resultsOf(first, [result]));
    const second = await ask(`${upstream}/plain`, input, more);
    same(second.status, "completed", "status");
    has(second.output_text, result);
  },

  async tool_choice(upstream) {
    const { forced, prompt, forbidden } = PROMPTS.tool_choice;
    const tools = [tool(PROMPTS.weather), tool(PROMPTS.time)];
    const choice = { type: "function", name: forced };
    const first = await ask(`${upstream}/plain`, prompt, { tools, tool_choice: choice });
    same(called(first).map(([name]) => name), [forced], "calls");
    const second = await ask(`${upstream}/plain`, forbidden, { tools, tool_choice: "none" });
    check(second.output_text && !called(second).length, second);
  },

  async parallel(upstream) {
    const { prompt, results } = PROMPTS.parallel;
    const input = [user(prompt)];
    const more = { tools: [tool(PROMPTS.weather)] };
    const first = await ask(`${upstream}/plain`, input, more);
    calledInParallel(first);
    input.push(...first.output, ...resultsOf(first, results));
    const answer = (await ask(`${upstream}/plain`, input, more)).output_text;
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const more = { input: PROMPTS.parallel.prompt, tools: [tool(PROMPTS.weather)] };
    const stream = client.responses.stream({ model: `${upstream}/plain`, ...more });
    calledInParallel(await stream.finalResponse());
  },

  async structured(upstream) {
    const text = { format: zodTextFormat(Place, "place") };
    const body = { model: `${upstream}/plain`, input: PROMPTS.structured.prompt, text };
    isPlace((await client.responses.parse(body)).output_parsed);
    isPlace((await client.responses.stream(body).finalResponse()).output_parsed);
  },

  async image(upstream) {
    const { mime_type, png } = PROMPTS.image;
    await sees(`${upstream}/plain`, `data:${mime_type};base64,${png}`);
  },

  async image_url(upstream) {
    await sees(`${upstream}/inline`, PICTURE_URL);
  },

  async limit(upstream) {
    const { prompt, output_tokens_max } = PROMPTS.limit;
    const more = { max_output_tokens: output_tokens_max };
    const answer = await ask(`${upstream}/plain`, prompt, more);
    const why = answer.incomplete_details.reason;
    same([answer.status, why], ["incomplete", "max_output_tokens"]);
    same(answer.usage.output_tokens, output_tokens_max, "output tokens");
  },

  async usage(upstream) {
    const figures = (usage) => [usage.input_tokens, usage.output_tokens, usage.total_tokens];
    const body = { model: `${upstream}/plain`, input: PROMPTS.usage.prompt };
    const whole = await client.responses.create(body);
    const streamed = await client.responses.stream(body).finalResponse();
    isUsage(figures(whole.usage), figures(streamed.usage));
  },

  async reasoning(upstream) {
    const reasoning = { effort: "high", summary: "auto" };
    const body = { model: `${upstream}/thinker`, input: PROMPTS.reasoning.prompt, reasoning };
    const whole = await client.responses.create(body);
    const streamed = await client.responses.stream(body).finalResponse();
    for (const answer of [whole, streamed]) {
      const thoughts = answer.output.filter((item) => item.type === "reasoning");
      // Open models return their thoughts instead of a summary.
      const parts = thoughts.flatMap((item) => (item.summary.length ? item.summary : item.content ?? []));
      has(parts.map((part) => part.text).join(""), PROMPTS.reasoning.thought);
      check(answer.output_text, answer);
      isReasoned(answer.usage.output_tokens_details?.reasoning_tokens);
    }
  },

  async loop(upstream) {
    await runsToolLoop(upstream, (body) => client.responses.create(body));
  },

  async loop_stream(upstream) {
    await runsToolLoop(upstream, (body) => client.responses.stream(body).finalResponse());
  },

  async bad_key(upstream) {
    const call = () => ask(`${upstream}/plain`, "hello", {}, clientOf(KEY_WRONG));
    same((await raised(OpenAI.AuthenticationError, call)).code, "invalid_api_key", "code");
  },

  async bad_request(upstream) {
    const error = await raised(OpenAI.BadRequestError, () => ask(`${upstream}/plain`, []));
    same([error.code, error.param, error.type], ["invalid_request", "input", "invalid_request_error"]);
    check(error.requestID.startsWith("req_"), error.requestID);
  },

  async unknown_model(upstream) {
    const error = await raised(OpenAI.NotFoundError, () => ask(`${upstream}/none`, "hello"));
    same(error.code, "model_not_found", "code");
  },

  async rate_limit(upstream) {
    const by = clientOf(KEY_SLOW, { maxRetries: 0 });
    const call = () => ask(`${upstream}/plain`, "hello", {}, by);
    same((await limited(OpenAI.RateLimitError, call)).code, "rate_limit_exceeded", "code");
  },

  async empty_wallet(upstream) {
    // With the client's default retries: it must not retry this error.
    const call = () => ask(`${upstream}/plain`, "hello", {}, clientOf(KEY_POOR));
    const error = await raised(OpenAI.APIError, call);
    same([error.status, error.code], [402, "insufficient_quota"]);
  },

  async busy(upstream) {
    const call = () => ask(`${upstream}/busy`, "hello", {}, clientWithoutRetries);
    const error = await raised(OpenAI.InternalServerError, call);
    same([error.status, error.code], [503, "upstream_overloaded"]);
  },

  async broken_stream(upstream) {
    // The client recognises a failed stream by its last event.
    const body = { stream: true };
    const events = await all(await ask(`${upstream}/broken`, PROMPTS.broken_stream.prompt, body));
    const last = events.at(-1);
    same([last.type, last.response?.status], ["response.failed", "failed"], "last event");
    check(last.response.error.message, last);
  },
};
