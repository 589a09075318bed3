// Videos through @google/genai: operations, interactions, files. Each outcome is a line of JSON.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GoogleGenAI } from "@google/genai";

import { runCells } from "./cells.mjs";

const URL = process.env.TOLLGATE_URL;
const client = new GoogleGenAI({
  apiKey: process.env.TOLLGATE_KEY,
  httpOptions: { baseUrl: URL, timeout: 60_000 },
});

// Polls until the operation is done.
const pollUntil = async (poll, isOver) => {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const told = await poll();
    if (isOver(told)) return told;
    await new Promise((resume) => setTimeout(resume, 100));
  }
  throw new Error("it does not end");
};
// The duration in the header of an MP4 file.
const secondsOf = (film) => {
  assert.equal(film.toString("latin1", 4, 8), "ftyp");
  const at = film.indexOf("mvhd") + 4;
  return film.readUInt32BE(at + 16) / film.readUInt32BE(at + 12);
};
const makeVideo = async (prompt, config = {}) => {
  const operation = await client.models.generateVideos({ model: "maker/film", prompt, config });
  return pollUntil(
    () => client.operations.getVideosOperation({ operation }),
    (told) => told.done,
  );
};
const interaction = async (input) => {
  const created = await client.interactions.create({
    model: "maker/omni",
    input,
    background: true,
    response_format: [{ type: "video", duration: "3s" }],
  });
  const running = ["queued", "in_progress"];
  assert.ok(running.includes(created.status), created.status);
  return pollUntil(
    () => client.interactions.get(created.id),
    (told) => !running.includes(told.status),
  );
};

const cells = {
  async operation_and_download() {
    const operation = await makeVideo("a boat", { numberOfVideos: 1, durationSeconds: 4 });
    assert.equal(operation.error, undefined);
    const [made] = operation.response.generatedVideos;
    const folder = await mkdtemp(join(tmpdir(), "tollgate-videos-"));
    try {
      const downloadPath = join(folder, "film.mp4");
      await client.files.download({ file: made, downloadPath });
      assert.equal(secondsOf(await readFile(downloadPath)), 4);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  async operation_that_fails() {
    const operation = await makeVideo("[fail]");
    assert.equal(operation.error.code, 3);
  },
  async operation_that_is_filtered() {
    const { response } = await makeVideo("[refuse]");
    assert.equal(response.raiMediaFilteredCount, 1);
  },
  async operation_refused() {
    await assert.rejects(makeVideo("x", { durationSeconds: 5 }), (error) => error.status === 400);
  },
  async interaction_with_video() {
    const told = await interaction("fog over a lighthouse");
    assert.equal(told.status, "completed");
    const video = told.steps.at(-1).content.at(-1);
    assert.deepEqual([video.type, video.mime_type], ["video", "video/mp4"]);
    const prefix = "https://gateway.example";
    assert.ok(video.uri.startsWith(`${prefix}/media/`), video.uri);
    const answer = await fetch(URL + video.uri.slice(prefix.length));
    assert.equal(secondsOf(Buffer.from(await answer.arrayBuffer())), 3);
  },
  async interaction_that_fails() {
    const told = await interaction("[fail]");
    assert.equal(told.status, "failed");
  },
};

await runCells(cells);
