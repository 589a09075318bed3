// Tests functions of the console's modules in a browser.

import { assert, assertNoProblems } from './stage.mjs';

/** Function, arguments and result. */
const TABLES = [
  ['format.js', 'credits', [[['0'], '0'], [['1234567.500000'], '1,234,567.5'], [['-0.25'], '−0.25'], [['0.000001'], '0.000001'], [[null], '–']]],
  ['format.js', 'creditsOfMicro', [[['1500000'], '1.5'], [['-1'], '−0.000001'], [[0], '0'], [['9007199254740993'], '9,007,199,254.740993']]],
  ['format.js', 'countShort', [[[12345], '12,345'], [[123456], '123 k'], [[1234567], '1.23 M']]],
  ['format.js', 'percent', [[[1, 0], '–'], [[1, 3], '33.3 %'], [[1, 300], '0.33 %']]],
  ['format.js', 'duration', [[[0.25], '250 µs'], [[4.2], '4.2 ms'], [[999], '999 ms'], [[1530], '1.53 s'], [[61000], '1 min 1 s'], [[null], '–']]],
  ['format.js', 'ago', [[[1000, 1500], 'just now'], [[0, 61000], '1 min ago'], [[7200000, 0], 'in 2 h']]],
  ['format.js', 'whenIn', [[[Date.UTC(2026, 6, 1, 15), 'Asia/Tokyo'], '2026-07-02 00:00 (Asia/Tokyo)'], [[0, 'Nowhere/None'], '1970-01-01 00:00 (UTC)']]],
  ['snippets.js', 'pythonOf', [[[{ stream: true, stop: null, note: 'true or null' }], '{\n    "stream": True,\n    "stop": None,\n    "note": "true or null",\n}'], [[[]], '[]']]],
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
    assertNoProblems(window);
  });
  await check('modules: an address that cannot be read names no page', async () => {
    await page.evaluate(() => { location.hash = '#/%'; });
    await page.getByText('There is no such page').waitFor();
    assertNoProblems(window);
  });
  await check('modules: an amount is read exactly, and nothing else is an amount', async () => {
    const got = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { microOf } = await import(`${base}pages/wallets/manual-entry.js`);
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
  await check('modules: a new channel is put into the configuration, and a known model gets a route', async () => {
    const got = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { channelOf, entryOf, missingMembers, savedChannel, withChannel } = await import(`${base}pages/channels/save.js`);
      const channel = channelOf({ name: ' new ', preset: 'openai', base_url: '', credential: 'sk-1' });
      const found = { id: 'large', source: null, entry: { id: 'openai/large', kind: 'text' } };
      const named = savedChannel({ name: 'n', preset: 'openai', base_url: '', credential: 'sk-1', place: 'file', named: ' credentials/n ' });
      const bare = missingMembers(entryOf(found));
      const entry = entryOf(found, { input: '1', output: '2', outputMax: '100' });
      const config = { version: 7, channels: [{ name: 'old' }], models: [{ id: 'a/b', routes: [{ channel: 'old', model: 'b' }] }] };
      const next = withChannel(config, channel, [{ upstream: 'large', entry }, { upstream: 'b', entry: { id: 'a/b' } }], []);
      return [bare.length, missingMembers(entry).length, JSON.stringify(next), config.models[0].routes.length, JSON.stringify(named)].join(' | ');
    });
    const wanted = { version: 7, channels: [{ name: 'old' }, { name: 'new', preset: 'openai', credential: 'sk-1' }], models: [
      { id: 'a/b', routes: [{ channel: 'old', model: 'b' }, { channel: 'new', model: 'b' }] },
      { id: 'openai/large', kind: 'text', price: { input: '1', output: '2' }, profile: { max_output_tokens: 100 }, routes: [{ channel: 'new', model: 'large' }] }] };
    const named = '{"name":"n","preset":"openai","credential":{"file":"credentials/n"}}';
    assert(got === ['2', '0', JSON.stringify(wanted), '1', named].join(' | '), got);
  });
  await check('modules: a realtime conversation is read from its events, and sound survives its coding', async () => {
    const got = await page.evaluate(async () => {
      const base = document.querySelector('script[type=module]').src.replace(/app\.js$/, '');
      const { EMPTY, decodeSound, encodeSound, withEvent, withUserText } = await import(`${base}pages/playground/session.js`);
      const events = [{ type: 'session.created' }, { type: 'response.output_text.delta', item_id: 'i', delta: 'Good ' }, { type: 'response.output_text.delta', item_id: 'i', delta: 'day' },
        { type: 'response.output_audio_transcript.delta', item_id: 'k', delta: 'Bye' }, { type: 'error', error: { message: 'no' } }];
      const state = events.reduce(withEvent, withUserText(EMPTY, 'Hello'));
      const sound = [...decodeSound(encodeSound(new Float32Array([0, 0.5, -0.5, 1, -1, 7])))].map((sample) => sample.toFixed(3));
      return [state.turns.map(({ who, text }) => `${who}: ${text}`).join(', '), state.failure, sound.join(' ')].join(' | ');
    });
    assert(got === 'you: Hello, model: Good day, model: Bye | no | 0.000 0.500 -0.500 1.000 -1.000 1.000', got);
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
