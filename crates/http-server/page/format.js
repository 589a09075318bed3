// Formats numbers and prices of catalog entries.

const units = JSON.parse(document.getElementById('units').content.textContent);

/** 400000 as "400K", 1048576 as "1.05M". */
export function tokens(count) {
  const [size, sign] = count >= 1e6 ? [1e6, 'M'] : count >= 1e3 ? [1e3, 'K'] : [1, ''];
  return `${Number((count / size).toPrecision(3))}${sign}`;
}

/** The lines of a price card: `{amount, name, unit}`, without steps for long contexts and tools. */
export function priceLines(card) {
  return Object.entries(card)
    .filter(([key]) => key in units)
    .map(([key, price]) => ({ amount: amount(price), name: units[key][0], unit: units[key][1] }));
}

/** A single price, or the range of its tiers. */
function amount(price) {
  if (typeof price === 'string') return price;
  const tiers = Object.values(price).sort((a, b) => a - b);
  const [least, most] = [tiers[0], tiers.at(-1)];
  return least === most ? least : `${least} to ${most}`;
}
