// Chat completions, through openai.

import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
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
const asked = (model, content, more) => ({ model, messages: [user(content)], ...more });
const ask = (model, content, more, by = client) =>
  by.chat.completions.create(asked(model, content, more));
const tool = (told) => ({ type: "function", function: { ...told, strict: true } });
const called = (message) =>
  message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
const resultsOf = (message, results) =>
  message.tool_calls.map((call, index) => ({
    role: "tool",
    tool_call_id: call.id,
    content: results[index],
  }));

function calledInParallel(message) {
  same(called(message), PROMPTS.parallel.arguments.map((one) => ["get_weather", one]), "calls");
  same(new Set(message.tool_calls.map((call) => call.id)).size, 2, "number of ids");
}

async function sees(model, url) {
  const { prompt, answer } = PROMPTS.image;
  const parts = [{ type: "text", text: prompt }, { type: "image_url", image_url: { url } }];
  has((await ask(model, parts)).choices[0].message.content, answer);
}

// The client runs the functions itself.
async function runsToolLoop(upstream, more) {
  const { prompt, calls, results } = PROMPTS.loop;
  const made = [];
  const runnable = (told) => ({
    type: "function",
    function: {
      ...told,
      parse: JSON.parse,
      function: () => {
        made.push(told.name);
        return results[told.name];
      },
    },
  });
  const tools = [runnable(PROMPTS.weather), runnable(PROMPTS.time)];
  const body = asked(`${upstream}/thinker`, prompt, { tools, reasoning_effort: "high", ...more });
  const answer = await client.chat.completions.runTools(body).finalContent();
  same(made, calls, "calls");
  for (const result of Object.values(results)) has(answer, result);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = PROMPTS.plain;
    const messages = [{ role: "system", content: system }, user(prompt)];
    const told = await client.chat.completions.create({ model: `${upstream}/plain`, messages });
    same(told.choices[0].message.content, answer);
    same([told.choices[0].finish_reason, told.model], ["stop", `${upstream}/plain`]);
    check(told.id.startsWith("chatcmpl_") && told._request_id.startsWith("req_"), told);
  },

  async stream(upstream) {
    const stream = client.chat.completions.stream(asked(`${upstream}/plain`, PROMPTS.stream.prompt));
    let text = "";
    stream.on("content", (delta) => (text += delta));
    const final = await stream.finalChatCompletion();
    has(text, PROMPTS.stream.last);
    same(final.choices[0].message.content, text);
    same([final.choices[0].message.role, final.choices[0].finish_reason], ["assistant", "stop"]);
  },

  async history(upstream) {
    const { first, second, answer } = PROMPTS.history;
    const messages = [user(first)];
    const body = { model: `${upstream}/plain`, messages };
    // As applications do: the whole message object is sent back.
    messages.push((await client.chat.completions.create(body)).choices[0].message, user(second));
    same((await client.chat.completions.create(body)).choices[0].message.content, answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = PROMPTS.tools;
    const body = asked(`${upstream}/plain`, prompt, { tools: [tool(PROMPTS.weather)] });
    const first = (await client.chat.completions.create(body)).choices[0];
    same(first.finish_reason, "tool_calls", "finish reason");
    same(called(first.message), [["get_weather", wanted]], "calls");
    body.messages.push(first.message, ...resultsOf(first.message, [result]));
    const second = (await client.chat.completions.create(body)).choices[0];
    same(second.finish_reason, "stop", "finish reason");
    has(second.message.content, result);
  },

  async tool_choice(upstream) {
    const { forced, prompt, forbidden } = PROMPTS.tool_choice;
    const tools = [tool(PROMPTS.weather), tool(PROMPTS.time)];
    const choice = { type: "function", function: { name: forced } };
    const first = await ask(`${upstream}/plain`, prompt, { tools, tool_choice: choice });
    same(called(first.choices[0].message).map(([name]) => name), [forced], "calls");
    const second = await ask(`${upstream}/plain`, forbidden, { tools, tool_choice: "none" });
    const { content, tool_calls } = second.choices[0].message;
    check(content && !tool_calls?.length, second);
  },

  async parallel(upstream) {
    const { prompt, results } = PROMPTS.parallel;
    const body = asked(`${upstream}/plain`, prompt, { tools: [tool(PROMPTS.weather)] });
    const { message } = (await client.chat.completions.create(body)).choices[0];
    calledInParallel(message);
    body.messages.push(message, ...resultsOf(message, results));
    const answer = (await client.chat.completions.create(body)).choices[0].message.content;
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const body = asked(`${upstream}/plain`, PROMPTS.parallel.prompt, { tools: [tool(PROMPTS.weather)] });
    const final = await client.chat.completions.stream(body).finalChatCompletion();
    same(final.choices[0].finish_reason, "tool_calls", "finish reason");
    calledInParallel(final.choices[0].message);
  },

  async structured(upstream) {
    const response_format = zodResponseFormat(Place, "place");
    const body = asked(`${upstream}/plain`, PROMPTS.structured.prompt, { response_format });
    isPlace((await client.chat.completions.parse(body)).choices[0].message.parsed);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    isPlace(streamed.choices[0].message.parsed);
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
    const more = { max_completion_tokens: output_tokens_max };
    const answer = await ask(`${upstream}/plain`, prompt, more);
    same(answer.choices[0].finish_reason, "length", "finish reason");
    same(answer.usage.completion_tokens, output_tokens_max, "output tokens");
  },

  async usage(upstream) {
    const figures = (usage) => [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens];
    const body = asked(`${upstream}/plain`, PROMPTS.usage.prompt);
    const whole = await client.chat.completions.create(body);
    const options = { stream_options: { include_usage: true } };
    const stream = client.chat.completions.stream({ ...body, ...options });
    isUsage(figures(whole.usage), figures((await stream.finalChatCompletion()).usage));
  },

  async reasoning(upstream) {
    const more = { reasoning_effort: "high" };
    const answer = await ask(`${upstream}/thinker`, PROMPTS.reasoning.prompt, more);
    const { content, reasoning_content } = answer.choices[0].message;
    // Not a member of the protocol, but clients of open models read it.
    if (PROMPTS.reasoning.shown_in_chat) has(reasoning_content, PROMPTS.reasoning.thought);
    check(content, answer);
    isReasoned(answer.usage.completion_tokens_details?.reasoning_tokens);
  },

  async loop(upstream) {
    await runsToolLoop(upstream, { stream: false });
  },

  async loop_stream(upstream) {
    await runsToolLoop(upstream, { stream: true });
  },

  async bad_key(upstream) {
    const by = clientOf(KEY_WRONG);
    const call = () => ask(`${upstream}/plain`, "hello", {}, by);
    for (const one of [call, () => by.models.list()]) {
      same((await raised(OpenAI.AuthenticationError, one)).code, "invalid_api_key", "code");
    }
  },

  async bad_request(upstream) {
    const call = () => client.chat.completions.create({ model: `${upstream}/plain`, messages: [] });
    const error = await raised(OpenAI.BadRequestError, call);
    same([error.code, error.param, error.type], ["invalid_request", "messages", "invalid_request_error"]);
    check(error.requestID.startsWith("req_"), error.requestID);
  },

  async unknown_model(upstream) {
    const error = await raised(OpenAI.NotFoundError, () => ask(`${upstream}/none`, "hello"));
    same(error.code, "model_not_found", "code");
  },

  async rate_limit(upstream) {
    const by = clientOf(KEY_SLOW, { maxRetries: 0 });
    const call = () => ask(`${upstream}/plain`, "hello", {}, by);
    const error = await limited(OpenAI.RateLimitError, call);
    same(error.code, "rate_limit_exceeded", "code");
    check(error.headers.get("retry-after") >= 1, "no retry-after");
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
    const body = { stream: true };
    const call = async () => all(await ask(`${upstream}/broken`, PROMPTS.broken_stream.prompt, body));
    has((await raised(OpenAI.APIError, call)).code, "upstream_");
  },
};

export const sameDialectCells = {
  async models() {
    const listed = (await all(client.models.list())).map((model) => model.id);
    check(listed.includes("chat/plain") && listed.includes("messages/thinker"), listed);
    same((await client.models.retrieve("chat/plain")).id, "chat/plain", "id");
    await raised(OpenAI.NotFoundError, () => client.models.retrieve("chat/none"));
  },
};
