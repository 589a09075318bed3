// Messages, through @anthropic-ai/sdk.

import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import * as z from "zod";
import {
  KEY, KEY_POOR, KEY_SLOW, KEY_WRONG, PICTURE_URL, Place, PROMPTS, TIMEOUT_MS, URL,
  check, has, isPlace, isUsage, limited, raised, same,
} from "./shared.mjs";

const clientOf = (apiKey = KEY, options = {}) =>
  new Anthropic({ baseURL: URL, apiKey, timeout: TIMEOUT_MS, ...options });

const client = clientOf();
// Without retries, so that errors which the client would retry become visible.
const clientWithoutRetries = clientOf(KEY, { maxRetries: 0 });

const user = (content) => ({ role: "user", content });
const asked = (model, content, more) => ({
  model,
  messages: [user(content)],
  max_tokens: PROMPTS.output_tokens_max,
  ...more,
});
const ask = (model, content, more, by = client) => by.messages.create(asked(model, content, more));
const tool = ({ name, description, parameters }) => ({ name, description, input_schema: parameters });
const textOf = (message) =>
  message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
const callsOf = (message) => message.content.filter((block) => block.type === "tool_use");
const called = (message) => callsOf(message).map((call) => [call.name, call.input]);
const turnOf = (message) => ({ role: "assistant", content: message.content });
const resultsOf = (message, results) =>
  user(
    callsOf(message).map((call, index) => ({
      type: "tool_result",
      tool_use_id: call.id,
      content: results[index],
    })),
  );

const THINKING = { thinking: { type: "adaptive" }, output_config: { effort: "high" } };

function calledInParallel(message) {
  same(message.stop_reason, "tool_use", "stop reason");
  same(called(message), PROMPTS.parallel.arguments.map((one) => ["get_weather", one]), "calls");
  same(new Set(callsOf(message).map((call) => call.id)).size, 2, "number of ids");
}

async function sees(model, source) {
  const { prompt, answer } = PROMPTS.image;
  const content = [{ type: "image", source }, { type: "text", text: prompt }];
  has(textOf(await ask(model, content)), answer);
}

// The runner first asks the server to store the thread, and continues without it if that is refused.
async function runsToolLoop(upstream, more) {
  const { prompt, calls, results } = PROMPTS.loop;
  const made = [];
  const runnable = ({ name, description }) =>
    betaZodTool({
      name,
      description,
      inputSchema: z.object({ city: z.string() }),
      run: () => {
        made.push(name);
        return results[name];
      },
    });
  const tools = [runnable(PROMPTS.weather), runnable(PROMPTS.time)];
  const options = { tools, max_iterations: 5, ...THINKING, ...more };
  const body = asked(`${upstream}/thinker`, prompt, options);
  const final = await client.beta.messages.toolRunner(body).runUntilDone();
  same(made, calls, "calls");
  for (const result of Object.values(results)) has(textOf(final), result);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = PROMPTS.plain;
    const told = await ask(`${upstream}/plain`, prompt, { system });
    same(textOf(told), answer);
    same([told.stop_reason, told.model], ["end_turn", `${upstream}/plain`]);
    check(told.id.startsWith("msg_") && told._request_id.startsWith("req_"), told);
  },

  async stream(upstream) {
    const stream = client.messages.stream(asked(`${upstream}/plain`, PROMPTS.stream.prompt));
    let text = "";
    stream.on("text", (delta) => (text += delta));
    const final = await stream.finalMessage();
    has(text, PROMPTS.stream.last);
    same(textOf(final), text);
    same([final.role, final.stop_reason], ["assistant", "end_turn"]);
  },

  async history(upstream) {
    const { first, second, answer } = PROMPTS.history;
    const body = asked(`${upstream}/plain`, first);
    body.messages.push(turnOf(await client.messages.create(body)), user(second));
    same(textOf(await client.messages.create(body)), answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = PROMPTS.tools;
    const body = asked(`${upstream}/plain`, prompt, { tools: [tool(PROMPTS.weather)] });
    const first = await client.messages.create(body);
    same(first.stop_reason, "tool_use", "stop reason");
    same(called(first), [["get_weather", wanted]], "calls");
    body.messages.push(turnOf(first), resultsOf(first, [result]));
    const second = await client.messages.create(body);
    same(second.stop_reason, "end_turn", "stop reason");
    has(textOf(second), result);
  },

  async tool_choice(upstream) {
    const { forced, prompt, forbidden } = PROMPTS.tool_choice;
    const tools = [tool(PROMPTS.weather), tool(PROMPTS.time)];
    const choice = { type: "tool", name: forced };
    const first = await ask(`${upstream}/plain`, prompt, { tools, tool_choice: choice });
    same(called(first).map(([name]) => name), [forced], "calls");
    const none = { type: "none" };
    const second = await ask(`${upstream}/plain`, forbidden, { tools, tool_choice: none });
    check(textOf(second) && !called(second).length, second);
  },

  async parallel(upstream) {
    const { prompt, results } = PROMPTS.parallel;
    const body = asked(`${upstream}/plain`, prompt, { tools: [tool(PROMPTS.weather)] });
    const first = await client.messages.create(body);
    calledInParallel(first);
    body.messages.push(turnOf(first), resultsOf(first, results));
    const answer = textOf(await client.messages.create(body));
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const body = asked(`${upstream}/plain`, PROMPTS.parallel.prompt, { tools: [tool(PROMPTS.weather)] });
    calledInParallel(await client.messages.stream(body).finalMessage());
  },

  async structured(upstream) {
    const output_config = { format: zodOutputFormat(Place) };
    const body = asked(`${upstream}/plain`, PROMPTS.structured.prompt, { output_config });
    isPlace((await client.messages.parse(body)).parsed_output);
    isPlace((await client.messages.stream(body).finalMessage()).parsed_output);
  },

  async image(upstream) {
    const { mime_type, png } = PROMPTS.image;
    await sees(`${upstream}/plain`, { type: "base64", media_type: mime_type, data: png });
  },

  async image_url(upstream) {
    await sees(`${upstream}/inline`, { type: "url", url: PICTURE_URL });
  },

  async limit(upstream) {
    const { prompt, output_tokens_max } = PROMPTS.limit;
    const answer = await ask(`${upstream}/plain`, prompt, { max_tokens: output_tokens_max });
    same([answer.stop_reason, answer.usage.output_tokens], ["max_tokens", output_tokens_max]);
  },

  async usage(upstream) {
    // The protocol reports cached input separately, without a total.
    const figures = ({ input_tokens, cache_read_input_tokens, output_tokens: output }) => {
      const input = input_tokens + (cache_read_input_tokens ?? 0);
      return [input, output, input + output];
    };
    const body = asked(`${upstream}/plain`, PROMPTS.usage.prompt);
    const whole = await client.messages.create(body);
    const streamed = await client.messages.stream(body).finalMessage();
    isUsage(figures(whole.usage), figures(streamed.usage));
  },

  async reasoning(upstream) {
    const body = asked(`${upstream}/thinker`, PROMPTS.reasoning.prompt, THINKING);
    const whole = await client.messages.create(body);
    const streamed = await client.messages.stream(body).finalMessage();
    for (const answer of [whole, streamed]) {
      const thoughts = answer.content.filter((block) => block.type === "thinking");
      has(thoughts.map((block) => block.thinking).join(""), PROMPTS.reasoning.thought);
      check(textOf(answer), answer);
    }
  },

  async loop(upstream) {
    await runsToolLoop(upstream, { stream: false });
  },

  async loop_stream(upstream) {
    await runsToolLoop(upstream, { stream: true });
  },

  async bad_key(upstream) {
    const call = () => ask(`${upstream}/plain`, "hello", {}, clientOf(KEY_WRONG));
    same((await raised(Anthropic.AuthenticationError, call)).type, "authentication_error", "type");
  },

  async bad_request(upstream) {
    const call = () => ask(`${upstream}/plain`, "hello", { messages: [] });
    const error = await raised(Anthropic.BadRequestError, call);
    same(error.type, "invalid_request_error", "type");
    check(error.requestID.startsWith("req_"), error.requestID);
  },

  async unknown_model(upstream) {
    const error = await raised(Anthropic.NotFoundError, () => ask(`${upstream}/none`, "hello"));
    same(error.type, "not_found_error", "type");
  },

  async rate_limit(upstream) {
    const by = clientOf(KEY_SLOW, { maxRetries: 0 });
    const call = () => ask(`${upstream}/plain`, "hello", {}, by);
    same((await limited(Anthropic.RateLimitError, call)).type, "rate_limit_error", "type");
  },

  async empty_wallet(upstream) {
    // With the client's default retries: it must not retry this error.
    const call = () => ask(`${upstream}/plain`, "hello", {}, clientOf(KEY_POOR));
    const error = await raised(Anthropic.APIError, call);
    same([error.status, error.type], [402, "billing_error"]);
  },

  async busy(upstream) {
    const call = () => ask(`${upstream}/busy`, "hello", {}, clientWithoutRetries);
    const error = await raised(Anthropic.InternalServerError, call);
    same([error.status, error.type], [503, "overloaded_error"]);
  },

  async broken_stream(upstream) {
    const body = asked(`${upstream}/broken`, PROMPTS.broken_stream.prompt);
    const error = await raised(Anthropic.APIError, () => client.messages.stream(body).finalMessage());
    check(["api_error", "overloaded_error"].includes(error.type), error.type);
  },
};
