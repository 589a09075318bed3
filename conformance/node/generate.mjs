// Generate Content, through @google/genai.

import {
  ApiError, FinishReason, FunctionCallingConfigMode, GoogleGenAI, ThinkingLevel,
} from "@google/genai";
import * as z from "zod";
import {
  KEY, KEY_POOR, KEY_SLOW, KEY_WRONG, PICTURE_URL, Place, PROMPTS, TIMEOUT_MS, URL,
  all, check, has, isPlace, isReasoned, isUsage, limited, raised, same,
} from "./shared.mjs";

const clientOf = (apiKey = KEY, options = {}) =>
  new GoogleGenAI({ apiKey, httpOptions: { baseUrl: URL, timeout: TIMEOUT_MS, ...options } });

const client = clientOf();
// Without retries, so that errors which the client would retry become visible.
const clientWithoutRetries = clientOf(KEY, { retryOptions: { attempts: 1 } });

const user = (text) => ({ role: "user", parts: [{ text }] });
const ask = (model, contents, config, by = client) =>
  by.models.generateContent({ model, contents, config });
const streamOf = (model, contents, config) =>
  client.models.generateContentStream({ model, contents, config });
const tool = ({ name, description, parameters }) => ({
  functionDeclarations: [{ name, description, parametersJsonSchema: parameters }],
});
const called = (calls) => calls.map((call) => [call.name, call.args]);
const resultsOf = (calls, results) => ({
  role: "user",
  parts: calls.map(({ id, name }, index) => ({
    functionResponse: { id, name, response: { output: results[index] } },
  })),
});
const partsOf = (answer) => answer.candidates?.[0]?.content?.parts ?? [];

const THINKING = { thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.HIGH } };

function calledInParallel(calls) {
  same(called(calls), PROMPTS.parallel.arguments.map((one) => ["get_weather", one]), "calls");
}

async function refused(call, status, word) {
  const error = await raised(ApiError, call);
  same(error.status, status, "status");
  has(error.message, word);
}

async function sees(model, picture) {
  const { prompt, answer } = PROMPTS.image;
  has((await ask(model, [picture, { text: prompt }])).text, answer);
}

// The client runs the functions of a callable tool itself.
async function runsToolLoop(upstream, answers) {
  const { prompt, calls, results } = PROMPTS.loop;
  const made = [];
  const runnable = (told) => ({
    tool: async () => tool(told),
    callTool: async (asked) =>
      asked
        .filter((call) => call.name === told.name)
        .map(({ id, name }) => {
          made.push(name);
          return { functionResponse: { id, name, response: { output: results[name] } } };
        }),
  });
  const config = { tools: [runnable(PROMPTS.weather), runnable(PROMPTS.time)], ...THINKING };
  const told = await answers(`${upstream}/thinker`, prompt, config);
  const text = told.map((answer) => answer.text ?? "").join("");
  same(made, calls, "calls");
  for (const result of Object.values(results)) has(text, result);
}

export const cells = {
  async plain(upstream) {
    const { system, prompt, answer } = PROMPTS.plain;
    const told = await ask(`${upstream}/plain`, prompt, { systemInstruction: system });
    same(told.text, answer);
    const [finish, model] = [told.candidates[0].finishReason, told.modelVersion];
    same([finish, model], [FinishReason.STOP, `${upstream}/plain`]);
    check(told.responseId, told);
  },

  async stream(upstream) {
    // The chat keeps the streamed answer as its history if every chunk was valid.
    const chat = client.chats.create({ model: `${upstream}/plain` });
    const chunks = await all(await chat.sendMessageStream({ message: PROMPTS.stream.prompt }));
    const text = chunks.map((chunk) => chunk.text ?? "").join("");
    has(text, PROMPTS.stream.last);
    const kept = chat.getHistory(true).slice(1).flatMap((turn) => turn.parts);
    same(kept.map((part) => part.text ?? "").join(""), text, "history");
  },

  async history(upstream) {
    const { first, second, answer } = PROMPTS.history;
    const chat = client.chats.create({ model: `${upstream}/plain` });
    await all(await chat.sendMessageStream({ message: first }));
    same((await chat.sendMessage({ message: second })).text, answer);
  },

  async tools(upstream) {
    const { prompt, arguments: wanted, result } = PROMPTS.tools;
    const contents = [user(prompt)];
    const config = { tools: [tool(PROMPTS.weather)] };
    const asked = await ask(`${upstream}/plain`, contents, config);
    same(asked.candidates[0].finishReason, FinishReason.STOP, "finish reason");
    same(called(asked.functionCalls), [["get_weather", wanted]], "calls");
    contents.push(asked.candidates[0].content, resultsOf(asked.functionCalls, [result]));
    has((await ask(`${upstream}/plain`, contents, config)).text, result);
  },

  async tool_choice(upstream) {
    const { forced, prompt, forbidden } = PROMPTS.tool_choice;
    const tools = [tool(PROMPTS.weather), tool(PROMPTS.time)];
    const config = (calling) => ({ tools, toolConfig: { functionCallingConfig: calling } });
    const any = { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: [forced] };
    const first = await ask(`${upstream}/plain`, prompt, config(any));
    same(called(first.functionCalls).map(([name]) => name), [forced], "calls");
    const none = { mode: FunctionCallingConfigMode.NONE };
    const second = await ask(`${upstream}/plain`, forbidden, config(none));
    check(second.text && !second.functionCalls, second);
  },

  async parallel(upstream) {
    const { prompt, results } = PROMPTS.parallel;
    const contents = [user(prompt)];
    const config = { tools: [tool(PROMPTS.weather)] };
    const asked = await ask(`${upstream}/plain`, contents, config);
    calledInParallel(asked.functionCalls);
    contents.push(asked.candidates[0].content, resultsOf(asked.functionCalls, results));
    const answer = (await ask(`${upstream}/plain`, contents, config)).text;
    for (const result of results) has(answer, result);
  },

  async parallel_stream(upstream) {
    const config = { tools: [tool(PROMPTS.weather)] };
    const chunks = await all(await streamOf(`${upstream}/plain`, PROMPTS.parallel.prompt, config));
    calledInParallel(chunks.flatMap((chunk) => chunk.functionCalls ?? []));
  },

  async structured(upstream) {
    // The client has no helper for zod; this is how its documentation does it.
    const schema = { responseJsonSchema: z.toJSONSchema(Place) };
    const config = { responseMimeType: "application/json", ...schema };
    isPlace(JSON.parse((await ask(`${upstream}/plain`, PROMPTS.structured.prompt, config)).text));
  },

  async image(upstream) {
    const { mime_type, png } = PROMPTS.image;
    await sees(`${upstream}/plain`, { inlineData: { mimeType: mime_type, data: png } });
  },

  async image_url(upstream) {
    const { mime_type } = PROMPTS.image;
    await sees(`${upstream}/inline`, { fileData: { mimeType: mime_type, fileUri: PICTURE_URL } });
  },

  async limit(upstream) {
    const { prompt, output_tokens_max } = PROMPTS.limit;
    const config = { maxOutputTokens: output_tokens_max };
    const answer = await ask(`${upstream}/plain`, prompt, config);
    same(answer.candidates[0].finishReason, FinishReason.MAX_TOKENS, "finish reason");
    same(answer.usageMetadata.candidatesTokenCount, output_tokens_max, "output tokens");
  },

  async usage(upstream) {
    const figures = ({ usageMetadata: usage }) => [
      usage.promptTokenCount,
      usage.candidatesTokenCount,
      usage.totalTokenCount,
    ];
    const whole = await ask(`${upstream}/plain`, PROMPTS.usage.prompt);
    const chunks = await all(await streamOf(`${upstream}/plain`, PROMPTS.usage.prompt));
    isUsage(figures(whole), figures(chunks.at(-1)));
  },

  async reasoning(upstream) {
    const { prompt, thought } = PROMPTS.reasoning;
    const whole = await ask(`${upstream}/thinker`, prompt, THINKING);
    const chunks = await all(await streamOf(`${upstream}/thinker`, prompt, THINKING));
    for (const answers of [[whole], chunks]) {
      const parts = answers.flatMap(partsOf);
      has(parts.map((part) => (part.thought ? part.text : "")).join(""), thought);
      check(parts.some((part) => part.text && !part.thought), parts);
      isReasoned(answers.at(-1).usageMetadata.thoughtsTokenCount);
    }
  },

  async loop(upstream) {
    await runsToolLoop(upstream, async (...asked) => [await ask(...asked)]);
  },

  async loop_stream(upstream) {
    await runsToolLoop(upstream, async (...asked) => all(await streamOf(...asked)));
  },

  async bad_key(upstream) {
    const by = clientOf(KEY_WRONG);
    await refused(() => ask(`${upstream}/plain`, "hello", {}, by), 401, "UNAUTHENTICATED");
  },

  async bad_request(upstream) {
    const contents = [{ role: "user", parts: [] }];
    await refused(() => ask(`${upstream}/plain`, contents), 400, "INVALID_ARGUMENT");
  },

  async unknown_model(upstream) {
    await refused(() => ask(`${upstream}/none`, "hello"), 404, "NOT_FOUND");
  },

  async rate_limit(upstream) {
    const by = clientOf(KEY_SLOW, { retryOptions: { attempts: 1 } });
    const error = await limited(ApiError, () => ask(`${upstream}/plain`, "hello", {}, by));
    same(error.status, 429, "status");
    has(error.message, "RESOURCE_EXHAUSTED");
  },

  async empty_wallet(upstream) {
    // With the client's default retries: it must not retry this error.
    const by = clientOf(KEY_POOR);
    await refused(() => ask(`${upstream}/plain`, "hello", {}, by), 402, "RESOURCE_EXHAUSTED");
  },

  async busy(upstream) {
    await refused(() => ask(`${upstream}/busy`, "hello", {}, clientWithoutRetries), 503, "UNAVAILABLE");
  },

  async broken_stream(upstream) {
    const prompt = PROMPTS.broken_stream.prompt;
    const error = await raised(ApiError, async () => all(await streamOf(`${upstream}/broken`, prompt)));
    check(error.status >= 500, error.status);
  },
};
