// The prompts and expected answers of all dialects, and shared checks.

import { readFileSync } from "node:fs";
import * as z from "zod";

const env = (name) => {
  if (!process.env[name]) throw new Error(`${name} is not set`);
  return process.env[name];
};

export const PROMPTS = JSON.parse(readFileSync(env("TOLLGATE_PROMPTS"), "utf8"));
export const URL = env("TOLLGATE_URL");
export const PICTURE_URL = env("TOLLGATE_PICTURE_URL");
export const KEY = env("TOLLGATE_KEY");
export const KEY_POOR = env("TOLLGATE_KEY_POOR");
export const KEY_SLOW = env("TOLLGATE_KEY_SLOW");
export const KEY_WRONG = "sk-tg-wrong";

// The timeout of a client for one answer.
export const TIMEOUT_MS = 60_000;
// This many requests exceed two per minute, wherever the minute starts.
const CALLS_UNTIL_LIMITED = 5;

// A schema with a nested object, a list, an enumeration and an optional member.
export const Place = z.object({
  city: z.string(),
  people: z.int(),
  kind: z.enum(["town", "village"]),
  streets: z.array(z.string()),
  river: z.object({ name: z.string(), length_km: z.number() }),
  mayor: z.string().nullable(),
});

export function isPlace(place) {
  same(Place.parse(place).city, PROMPTS.structured.city, "city");
}

const shown = (value) => String(JSON.stringify(value)).slice(0, 300);

export function check(holds, why) {
  if (!holds) throw new Error(typeof why === "string" ? why : shown(why));
}

export function same(got, wanted, what = "answer") {
  const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)];
  check(left === right, `${what} is ${shown(got)}, not ${shown(wanted)}`);
}

export function has(got, part) {
  check(got?.includes(part), `${shown(part)} is not in ${shown(got)}`);
}

// The error of a call, which must be an instance of `kind`.
export async function raised(kind, call) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error(`${kind.name} was expected, not ${shown(answer)}`);
}

// Repeats a call until the key's rate limit refuses it, and returns that error.
export function limited(kind, call) {
  return raised(kind, async () => {
    for (let count = 0; count < CALLS_UNTIL_LIMITED; count += 1) await call();
  });
}

export async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

// Upstreams that count reasoning tokens must report some.
export function isReasoned(tokens) {
  check(!PROMPTS.reasoning.tokens_reported || tokens > 0, `${tokens} tokens of thoughts`);
}

// Checks input, output and total of the same call, buffered and streamed.
export function isUsage(whole, streamed) {
  same(streamed, whole, "streamed usage");
  const [input, output, total] = whole;
  const told = PROMPTS.usage;
  check(told.input_min <= input && input <= told.input_max, `${input} input tokens`);
  same(output, told.output, "output tokens");
  same(total, input + output, "total tokens");
}
