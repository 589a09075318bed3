// Formats amounts, counts, durations and times for display.

/** Credits from a decimal string: grouped, at most six decimals, without trailing zeros. */
export function credits(text) {
  if (text === null || text === undefined) return '–';
  const [whole, decimals = ''] = String(text).split('.');
  const negative = whole.startsWith('-');
  const grouped = whole.replace('-', '').replace(/\B(?=(\d{3})+$)/g, ',');
  const cut = decimals.slice(0, 6).replace(/0+$/, '');
  return `${negative ? '−' : ''}${grouped}${cut ? `.${cut}` : ''}`;
}

/** Credits from micro-credits, given as a number or an integer string. */
export function creditsOfMicro(micro) {
  let value = BigInt(Math.round(Number(micro)) === Number(micro) ? micro : Math.round(Number(micro)));
  const sign = value < 0n ? '-' : '';
  if (value < 0n) value = -value;
  return credits(`${sign}${value / 1000000n}.${String(value % 1000000n).padStart(6, '0')}`);
}

/** Credits for a headline: two decimals for one credit or more, otherwise more decimals. */
export function creditsShort(micro) {
  const value = Number(micro) / 1e6;
  const size = Math.abs(value);
  const decimals = size === 0 || size >= 100 ? 0 : size >= 1 ? 2 : 4;
  return value.toLocaleString('en', { minimumFractionDigits: decimals === 4 ? 0 : decimals, maximumFractionDigits: decimals }).replace('-', '−');
}

export function count(value) {
  return value === null || value === undefined ? '–' : Number(value).toLocaleString('en');
}

/** A count for a headline: 12,345 or 1.23 M. */
export function countShort(value) {
  if (Math.abs(value) < 100000) return count(value);
  const [size, unit] = value < 1e6 ? [1e3, 'k'] : value < 1e9 ? [1e6, 'M'] : [1e9, 'G'];
  return `${(value / size).toLocaleString('en', { maximumSignificantDigits: 3 })} ${unit}`;
}

export function percent(part, total) {
  if (!total) return '–';
  const value = (100 * part) / total;
  return `${value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 1 })} %`;
}

/** A duration in milliseconds, with three significant digits. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago a time was, in one or two words. */
export function ago(at, now = Date.now()) {
  const past = now - at;
  if (past < 0) return `in ${span(-past)}`;
  if (past < 5000) return 'just now';
  return `${span(past)} ago`;
}

function span(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

const pad = (value) => String(value).padStart(2, '0');

/** Local date and time. */
export function when(at) {
  const date = new Date(at);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Local time and UTC, for a tooltip. */
export function whenExactly(at) {
  return `${when(at)} local\n${new Date(at).toISOString().replace('T', ' ').replace('.000Z', ' UTC').replace('Z', ' UTC')}`;
}

/** Date and time in a time zone, with its name. In UTC if the browser does not know the zone. */
export function whenIn(at, zone) {
  try {
    return `${new Intl.DateTimeFormat('sv', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' }).format(at)} (${zone})`;
  } catch {
    return whenIn(at, 'UTC');
  }
}

/** The day of a time in UTC, such as 2026-11-19. */
export const dayInUtc = (at) => new Date(at).toISOString().slice(0, 10);
