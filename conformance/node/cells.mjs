// Runs cells one after the other and prints each outcome as a line of JSON.

export async function runCells(cells) {
  for (const [cell, run] of Object.entries(cells)) {
    let reason = null;
    try {
      await run();
    } catch (error) {
      reason = `${error.name}: ${error.message}`;
    }
    console.log(JSON.stringify({ cell, reason }));
  }
}
