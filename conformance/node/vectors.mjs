// Embeddings, through openai and @google/genai.

import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { KEY, TIMEOUT_MS, URL, check, same } from "./shared.mjs";

const TEXTS = ["the cat sleeps", "the cat slept", "STOCKS FELL"];

const client = new OpenAI({ baseURL: `${URL}/v1`, apiKey: KEY, timeout: TIMEOUT_MS });
const google = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: URL } });

const near = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);

// The first two vectors must be closer to each other than to the third.
function areNear([first, second, third]) {
  check(Math.abs(near(first, first) - 1) < 1e-3, near(first, first));
  check(near(first, second) > near(first, third), [near(first, second), near(first, third)]);
}

async function areEmbedded(upstream, more) {
  const model = `${upstream}/plain`;
  const answer = await client.embeddings.create({ model, input: TEXTS, ...more });
  same(answer.model, model, "model");
  areNear(answer.data.map((item) => item.embedding));
  const { prompt_tokens, total_tokens } = answer.usage;
  check(prompt_tokens === total_tokens && total_tokens > 0, answer.usage);
}

export const cells = {
  async floats(upstream) {
    await areEmbedded(upstream, { encoding_format: "float" });
  },

  async base64(upstream) {
    // By default, the client requests base64 and decodes it.
    await areEmbedded(upstream, {});
  },

  async contents(upstream) {
    const answer = await google.models.embedContent({ model: `${upstream}/plain`, contents: TEXTS });
    areNear(answer.embeddings.map((one) => one.values));
  },
};
