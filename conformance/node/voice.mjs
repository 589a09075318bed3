// Realtime sessions, through openai. Each outcome is a line of JSON.

import assert from "node:assert/strict";
import { connect } from "node:net";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

import { runCells } from "./cells.mjs";

const SECONDS_MAX = 60;
const model = "maker/voice";
const url = new URL(process.env.TOLLGATE_URL);
const client = new OpenAI({
  baseURL: `${process.env.TOLLGATE_URL}/v1`,
  apiKey: process.env.TOLLGATE_KEY,
  maxRetries: 0,
});

// The SDK always uses TLS, even if its base URL does not. This replaces its socket with a plain
// connection, as behind a proxy that terminates TLS.
const plain = () => connect({ host: url.hostname, port: Number(url.port) });

class RealtimeSession {
  #seen = [];
  #waiting = null;

  constructor() {
    this.session = new OpenAIRealtimeWS({ model, options: { createConnection: plain } }, client);
    this.session.on("event", (event) => this.#take(event));
    // An error of the session is an event. An error of the connection ends the session.
    this.session.on("error", (error) => error.error || this.#take({ type: "lost", message: error.message }));
  }

  send(event) {
    this.session.send(event);
  }

  // All events up to the first of a type.
  async until(kind) {
    const events = [];
    for (;;) {
      while (this.#seen.length) {
        const event = this.#seen.shift();
        events.push(event);
        if (event.type === kind) return events;
        assert.ok(!["error", "lost"].includes(event.type), JSON.stringify(event));
      }
      await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`no ${kind}`)), SECONDS_MAX * 1000);
        this.#waiting = () => {
          clearTimeout(late);
          resolve();
        };
      });
    }
  }

  #take(event) {
    this.#seen.push(event);
    this.#waiting?.();
  }
}

const withSession = async (run) => {
  const held = new RealtimeSession();
  try {
    const created = (await held.until("session.created")).at(-1);
    assert.equal(created.session.model, model);
    await run(held);
  } finally {
    held.session.close();
  }
};

const cells = {
  realtime_text: () =>
    withSession(async (connection) => {
      const audio = { input: { turn_detection: null } };
      const session = { type: "realtime", model, output_modalities: ["text"], audio };
      connection.send({ type: "session.update", session });
      assert.equal((await connection.until("session.updated")).at(-1).session.model, model);
      for (const text of ["Hi", "Once more"]) {
        const content = [{ type: "input_text", text }];
        connection.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
        connection.send({ type: "response.create" });
        const events = await connection.until("response.done");
        const deltas = events.filter((event) => event.type === "response.output_text.delta");
        assert.ok(deltas.map((event) => event.delta).join("").includes(text));
        assert.equal(events.at(-1).response.status, "completed");
      }
    }),
  realtime_audio: () =>
    withSession(async (connection) => {
      // With voice activity detection, a second of speech is a turn.
      const audio = Buffer.alloc(48_000).toString("base64");
      connection.send({ type: "input_audio_buffer.append", audio });
      const events = await connection.until("response.done");
      const deltas = events.filter((event) => event.type === "response.output_audio.delta");
      const bytes = deltas.map((event) => Buffer.from(event.delta, "base64").length);
      assert.ok(bytes.reduce((sum, count) => sum + count, 0) > 10_000);
    }),
  realtime_refusals: () =>
    withSession(async (connection) => {
      const tools = [{ type: "file_search", vector_store_ids: ["x"] }];
      connection.send({ type: "session.update", event_id: "mine", session: { tools } });
      const { error } = (await connection.until("error")).at(-1);
      assert.deepEqual([error.code, error.event_id], ["stateful_not_supported", "mine"]);
      // The session continues.
      connection.send({ type: "session.update", session: { type: "realtime" } });
      await connection.until("session.updated");
    }),
};

await runCells(cells);
