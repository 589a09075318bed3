// Runs the cells of the dialects named on the command line, against every upstream.
//
// Each outcome is a line of JSON. A dialect is a module whose `cells` hold a function for each
// cell of `prompts.json`, which takes the name of an upstream. Some cells need an upstream of another
// dialect; the cells in `sameDialectCells` need one of the same dialect. Cells run one after the other, or all
// at once if `prompts.json` says so.

import { PROMPTS } from "./shared.mjs";

const CELL_MS_MAX = 90_000;

async function main() {
  const dialects = process.argv.slice(2);
  const upstreams = dialects.pop().split(",");
  const wanted = [];
  for (const dialect of dialects) wanted.push(...(await runs(dialect, upstreams)));
  if (PROMPTS.at_once) await Promise.all(wanted.map((run) => tell(...run)));
  else for (const run of wanted) await tell(...run);
  // Idle connections of the clients would keep the process alive.
  process.exit(0);
}

// The cells of a dialect, each with its upstream, its name and its function.
async function runs(dialect, upstreams) {
  const { cells, sameDialectCells = {} } = await import(`./${dialect}.mjs`);
  const found = upstreams.flatMap((upstream) => {
    const converted = upstream === dialect ? [] : PROMPTS.cells_converted;
    const leftOut = PROMPTS.cells_left_out[`${dialect} to ${upstream}`] ?? [];
    return [...PROMPTS.cells, ...converted]
      .filter((cell) => !leftOut.includes(cell))
      .map((cell) => [dialect, upstream, cell, cells[cell] ?? missing]);
  });
  const alone = PROMPTS.same_dialect_cells ? Object.entries(sameDialectCells) : [];
  return [...found, ...alone.map(([cell, run]) => [dialect, dialect, cell, run])];
}

async function tell(dialect, upstream, cell, run) {
  const outcome = { dialect, upstream, cell, reason: await reason(run, upstream) };
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}

// The reason why a cell failed, or nothing if it passed.
async function reason(run, upstream) {
  let timer;
  const late = new Promise((_, reject) => {
    const error = new Error(`no outcome in ${CELL_MS_MAX} ms`);
    timer = setTimeout(() => reject(error), CELL_MS_MAX);
  });
  try {
    await Promise.race([run(upstream), late]);
    return null;
  } catch (error) {
    return `${error?.name}: ${error?.message} [${place(error)}]`;
  } finally {
    clearTimeout(timer);
  }
}

// The innermost line of our own code in a stack trace.
function place(error) {
  const lines = String(error?.stack).match(/drivers\/\w+\.mjs:\d+/g) ?? [];
  const line = lines.find((line) => !line.includes("shared.mjs")) ?? "drive.mjs";
  return line.replace("drivers/", "");
}

async function missing() {
  throw new Error("this dialect has no such cell");
}

await main();
