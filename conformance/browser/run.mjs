// Runs all checks and prints the outcome of each. The argument is the stage: browser, addresses, output folder.

import { access } from './access.mjs';
import { alerts } from './alerts.mjs';
import { callers } from './callers.mjs';
import { forms } from './forms.mjs';
import { journey } from './journey.mjs';
import { keyboard } from './keyboard.mjs';
import { live } from './live.mjs';
import { pageChecks } from './page_checks.mjs';
import { modules } from './modules.mjs';
import { play } from './play.mjs';
import { prepare } from './stage.mjs';
import { vendor } from './vendor.mjs';
import { openBrowser } from './window.mjs';

const given = JSON.parse(process.argv[2]);
const browser = await openBrowser(given.browser);
let passed = 0;
const failures = [];

/** Runs one check. It fails if it throws, or if its window has recorded a problem. */
async function check(name, body) {
  if (!name.includes(given.only)) return;
  const begun = performance.now();
  try {
    await body();
    passed += 1;
    console.log(`ok ${name} (${Math.round(performance.now() - begun)} ms)`);
  } catch (error) {
    failures.push(`FAILED ${name}: ${error.message}`);
    console.log(`FAILED ${name}: ${error.message}`);
  }
}

try {
  const stage = await prepare(browser, given);
  for (const group of [modules, access, journey, forms, keyboard, live, play, callers, vendor, alerts, pageChecks]) await group(stage, check);
} catch (error) {
  failures.push(`FAILED before the checks: ${error.stack}`);
  console.log(failures.at(-1));
} finally {
  await browser.close();
}
console.log(`conformance: ${passed} passed, ${failures.length} failed`);
process.exitCode = passed && !failures.length ? 0 : 1;
