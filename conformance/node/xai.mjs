// Videos through @ai-sdk/xai: creates and polls tasks. Each outcome is a line of JSON.

import assert from "node:assert/strict";
import { createXai } from "@ai-sdk/xai";

import { runCells } from "./cells.mjs";

const xai = createXai({
  baseURL: `${process.env.TOLLGATE_URL}/v1`,
  apiKey: process.env.TOLLGATE_KEY,
});
// Uses the model object directly, because the SDK's higher-level functions download from public addresses only.
const makeVideo = (prompt, options = {}, own = {}) =>
  xai.video("maker/video").doGenerate({
    prompt,
    n: 1,
    ...options,
    providerOptions: { xai: { pollIntervalMs: 100, pollTimeoutMs: 60_000, ...own } },
  });

const cells = {
  async a_film_of_words() {
    const told = await makeVideo("a boat", { duration: 5, aspectRatio: "16:9" });
    const { duration, costInUsdTicks, progress } = told.providerMetadata.xai;
    assert.deepEqual([duration, costInUsdTicks, progress], [5, 2_500_000_000, 100]);
    const film = Buffer.from(await (await fetch(told.videos[0].url)).arrayBuffer());
    assert.equal(film.toString("latin1", 4, 8), "ftyp");
  },
  async a_film_from_a_film() {
    const told = await makeVideo("at night", {}, { mode: "edit-video", videoUrl: "https://example.com/v.mp4" });
    assert.equal(told.videos.length, 1);
  },
  async a_task_that_fails() {
    await assert.rejects(makeVideo("[fail]"), { name: "XAI_VIDEO_GENERATION_FAILED" });
  },
  async a_task_that_expires() {
    await assert.rejects(makeVideo("[expire]"), { name: "XAI_VIDEO_GENERATION_EXPIRED" });
  },
  async a_film_that_is_withheld() {
    await assert.rejects(makeVideo("[withhold]"), { name: "XAI_VIDEO_MODERATION_ERROR" });
  },
  async what_is_not_taken() {
    await assert.rejects(makeVideo("x", { duration: 99 }), { statusCode: 400 });
  },
};

await runCells(cells);
