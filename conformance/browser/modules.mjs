// Functions of the console's modules, in the browser that runs them.

import { assert, clean } from './stage.mjs';

/** Function, arguments and result. */
const TABLES = [
  ['format.js', 'credits', [[['0'], '0'], [['1234567.500000'], '1,234,567.5'], [['-0.25'], '−0.25'], [['0.000001'], '0.000001'], [[null], '–']]],
  ['format.js', 'creditsOfMicro', [[['1500000'], '1.5'], [['-1'], '−0.000001'], [[0], '0'], [['9007199254740993'], '9,007,199,254.740993']]],
  ['format.js', 'countShort', [[[12345], '12,345'], [[123456], '123 k'], [[1234567], '1.23 M']]],
  ['format.js', 'percent', [[[1, 0], '–'], [[1, 3], '33.3 %'], [[1, 300], '0.33 %']]],
  ['format.js', 'duration', [[[0.25], '250 µs'], [[4.2], '4.2 ms'], [[999], '999 ms'], [[1530], '1.53 s'], [[61000], '1 min 1 s'], [[null], '–']]],
  ['format.js', 'ago', [[[1000, 1500], 'just now'], [[0, 61000], '1 min ago'], [[7200000, 0], 'in 2 h']]],
  ['pages/playground/dialects.js', 'dialectOf', [[['/v1/messages'], 'messages'], [['/v1beta/models/{id}:generateContent'], 'generate'], [['/v1/tts'], 'speech'], [['/nothing'], undefined]]],
];

export async function modules(stage, check) {
  const window = await stage.open();
  const { page } = window;
  await page.goto(stage.origin);
  await page.waitForSelector('.shell');
  await check('modules: amounts, counts, durations and times are written as people read them', async () => {
    for (const [file, name, rows] of TABLES) {
      for (const [given, wanted] of rows) {
        const got = await page.evaluate(async ([file, name, given]) => {
          const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
          return (await import(base + file))[name](...given);
        }, [file, name, given]);
        assert(got === wanted, `${name}(${JSON.stringify(given)}) is ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
      }
    }
    clean(window);
  });
  await check('modules: an amount is read exactly, and nothing else is an amount', async () => {
    const got = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { microOf } = await import(`${base}pages/wallets/money.js`);
      return ['12.5', '-0.000001', '007', '1e3', '1.0000001', '', 'x', '1,5'].map((text) => String(microOf(text)));
    });
    assert(got.join() === '12500000,-1,7000000,null,null,null,null,null', got.join());
  });
  await check('modules: events do not depend on how the stream is cut', async () => {
    const wrong = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { splitter } = await import(`${base}pages/playground/run.js`);
      const text = ': hello\n\ndata: {"a":1}\n\nevent: x\r\ndata: one\r\ndata: two\r\n\r\ndata: [DONE]\n\n';
      const cut = (pieces) => { const seen = []; const take = splitter((data) => seen.push(data)); pieces.forEach(take); return JSON.stringify(seen); };
      const whole = cut([text]);
      const differing = [];
      for (let at = 1; at < text.length; at += 1) if (cut([text.slice(0, at), text.slice(at)]) !== whole) differing.push(at);
      return whole === '["{\\"a\\":1}","one\\ntwo","[DONE]"]' ? differing : [whole];
    });
    assert(!wrong.length, `the events differ when the stream is cut at ${wrong.join(', ')}`);
  });
  await check('modules: a chart has a point for each step, also without calls', async () => {
    const got = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { filled } = await import(`${base}pages/overview/page.js`);
      const hour = 3_600_000;
      return filled([{ at: 2 * hour, requests: 7 }], 1000, 5 * hour, 'hour').map(({ at, requests }) => `${at / hour}:${requests}`);
    });
    assert(got.join() === '0:0,1:0,2:7,3:0,4:0', got.join());
  });
  await window.close();
}
