// Embeddings and pictures, through openai. Each outcome is a line of JSON.

import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import OpenAI, { toFile } from "openai";

import { runCells } from "./cells.mjs";

const client = new OpenAI({
  baseURL: `${process.env.TOLLGATE_URL}/v1`,
  apiKey: process.env.TOLLGATE_KEY,
  timeout: 60_000,
  maxRetries: 0,
});

const crc = (bytes) => {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
};
const chunk = (kind, data) => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  const body = Buffer.concat([Buffer.from(kind), data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([head, body, sum]);
};
// A PNG of one colour.
const png = (side, colour) => {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 6], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.concat(Array(side).fill(Buffer.from(colour)))]);
  const rows = deflateSync(Buffer.concat(Array(side).fill(row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))]);
};
const file = (side, name = "a.png", colour = [1, 2, 3, 255]) =>
  toFile(png(side, colour), name, { type: "image/png" });
const sizeOf = (picture) => {
  const data = Buffer.from(picture, "base64");
  return [data.readUInt32BE(16), data.readUInt32BE(20)];
};
const all = async (stream) => {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
};

const cells = {
  async embeddings() {
    const asked = { model: "maker/embed", input: ["hello", "goodbye"], dimensions: 8 };
    const plain = await client.embeddings.create(asked);
    const floats = await client.embeddings.create({ ...asked, encoding_format: "float" });
    assert.equal(plain.model, "maker/embed");
    for (const [index, item] of plain.data.entries()) {
      assert.equal(item.index, index);
      item.embedding.forEach((value, at) =>
        assert.ok(Math.abs(value - floats.data[index].embedding[at]) < 1e-6));
    }
    const tokens = await client.embeddings.create({ model: "maker/embed", input: [[1, 2], [3]] });
    assert.equal(tokens.usage.prompt_tokens, 3);
  },
  async generate() {
    const asked = { model: "maker/gpt", prompt: "a red circle", size: "64x64" };
    const whole = await client.images.generate(asked);
    assert.deepEqual(sizeOf(whole.data[0].b64_json), [64, 64]);
    const events = await all(await client.images.generate({ ...asked, stream: true, partial_images: 1 }));
    assert.deepEqual(
      events.map((event) => event.type),
      ["image_generation.partial_image", "image_generation.completed"],
    );
    assert.ok(events[1].usage.total_tokens > 0);
  },
  async edit() {
    const asked = { model: "maker/gpt", prompt: "a yellow star" };
    const mask = await file(32, "m.png", [0, 0, 0, 0]);
    const one = await client.images.edit({ ...asked, image: await file(32), mask });
    assert.deepEqual(sizeOf(one.data[0].b64_json), [32, 32]);
    const several = await client.images.edit({ ...asked, image: [await file(32), await file(16)] });
    assert.ok(several.data[0].b64_json);
    const events = await all(await client.images.edit({ ...asked, image: await file(32), stream: true }));
    assert.equal(events.at(-1).type, "image_edit.completed");
  },
  async edit_json() {
    const link = (colour) => {
      const data = png(16, colour).toString("base64");
      return { type: "image_url", url: `data:image/png;base64,${data}` };
    };
    const [image, mask] = [link([9, 9, 9, 255]), link([0, 0, 0, 0])];
    for (const pictures of [{ image }, { image, mask }, { images: [image, image] }]) {
      const body = { model: "maker/gpt", prompt: "x", ...pictures };
      const answer = await client.post("/images/edits", { body });
      assert.deepEqual(sizeOf(answer.data[0].b64_json), [16, 16]);
    }
  },
};

await runCells(cells);
