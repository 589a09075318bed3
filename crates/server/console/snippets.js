// The same call as curl, Python and Node, for each family of SDKs.

const q = (text) => JSON.stringify(text);

/** Code for first calls with this URL, secret and model: pairs of a name and a text. */
export function firstCalls(url, secret, model) {
  return [
    ['curl', `curl ${url}/v1/chat/completions \\\n  -H "authorization: Bearer ${secret}" \\\n  -H "content-type: application/json" \\\n  -d '{"model": ${q(model)}, "messages": [{"role": "user", "content": "Hello"}]}'`],
    ['Python', `from openai import OpenAI\n\nclient = OpenAI(base_url=${q(`${url}/v1`)}, api_key=${q(secret)})\nanswer = client.chat.completions.create(\n    model=${q(model)},\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.choices[0].message.content)`],
    ['Node', `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: ${q(`${url}/v1`)}, apiKey: ${q(secret)} });\nconst answer = await client.chat.completions.create({\n  model: ${q(model)},\n  messages: [{ role: 'user', content: 'Hello' }],\n});\nconsole.log(answer.choices[0].message.content);`],
    ['Responses', `from openai import OpenAI\n\nclient = OpenAI(base_url=${q(`${url}/v1`)}, api_key=${q(secret)})\nanswer = client.responses.create(model=${q(model)}, input="Hello")\nprint(answer.output_text)`],
    ['Anthropic', `from anthropic import Anthropic\n\nclient = Anthropic(base_url=${q(url)}, auth_token=${q(secret)})\nanswer = client.messages.create(\n    model=${q(model)},\n    max_tokens=500,\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.content[0].text)`],
    ['Google', `from google import genai\n\nclient = genai.Client(api_key=${q(secret)}, http_options={"base_url": ${q(url)}})\nanswer = client.models.generate_content(model=${q(model)}, contents="Hello")\nprint(answer.text)`],
    ['Claude Code', `export ANTHROPIC_BASE_URL=${url}\nexport ANTHROPIC_AUTH_TOKEN=${secret}\nexport ANTHROPIC_MODEL=${model}\nclaude`],
  ];
}

/** A JSON value as a Python literal. */
export function pythonOf(value, indent = '') {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value !== 'object') return q(value);
  const deeper = `${indent}    `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Array.isArray(value) ? value.map((part) => pythonOf(part, deeper)) : Object.entries(value).map(([name, part]) => `${q(name)}: ${pythonOf(part, deeper)}`);
  return parts.length ? `${open}\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}${close}` : open + close;
}

/** A request of the playground as curl, Python (httpx) and Node (fetch). A file is sent as a form. */
export function asCode(url, path, body, headers = {}, { file, sound } = {}) {
  const named = Object.entries(headers);
  const quoted = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;
  const curl = [`curl -N ${quoted(url + path)}`, '-H "authorization: Bearer $TOLLGATE_KEY"', ...named.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  const pythonHeaders = ['"authorization": f"Bearer {os.environ[\'TOLLGATE_KEY\']}"', ...named.map(([name, value]) => `${q(name)}: ${q(value)}`)].join(', ');
  const nodeHeaders = ['authorization: `Bearer ${process.env.TOLLGATE_KEY}`', ...named.map(([name, value]) => `${q(name)}: ${q(value)}`)];
  if (file) {
    const fields = Object.entries(body);
    return [
      ['curl', [...curl, ...fields.map(([name, value]) => `-F ${quoted(`${name}=${value}`)}`), `-F ${quoted(`file=@${file}`)}`].join(' \\\n  ')],
      ['Python', `import os\nimport httpx\n\nheaders = {${pythonHeaders}}\nwith open(${q(file)}, "rb") as file:\n    answer = httpx.post(${q(url + path)}, data=${pythonOf(body, '    ')}, files={"file": file}, headers=headers, timeout=600)\nprint(answer.json())`],
      ['Node', `import { openAsBlob } from 'node:fs';\n\nconst form = new FormData();\n${fields.map(([name, value]) => `form.append(${q(name)}, ${q(value)});\n`).join('')}form.append('file', await openAsBlob(${q(file)}), ${q(file)});\nconst answer = await fetch(${q(url + path)}, { method: 'POST', headers: { ${nodeHeaders.join(', ')} }, body: form });\nconsole.log(await answer.json());`],
    ];
  }
  const json = JSON.stringify(body, null, 2);
  const ends = sound
    ? [' \\\n  -o speech.wav', '    with open("speech.wav", "wb") as file:\n        for piece in answer.iter_bytes():\n            file.write(piece)', "import { writeFile } from 'node:fs/promises';\n\n", "await writeFile('speech.wav', Buffer.from(await answer.arrayBuffer()));"]
    : ['', '    for line in answer.iter_lines():\n        print(line)', '', 'for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) process.stdout.write(piece);'];
  return [
    ['curl', `${[...curl, '-H "content-type: application/json"'].join(' \\\n  ')}${ends[0]} \\\n  -d @- <<'JSON'\n${json}\nJSON`],
    ['Python', `import os\nimport httpx\n\nbody = ${pythonOf(body)}\nheaders = {${pythonHeaders}}\nwith httpx.stream("POST", ${q(url + path)}, json=body, headers=headers, timeout=600) as answer:\n${ends[1]}`],
    ['Node', `${ends[2]}const body = ${json};\nconst answer = await fetch(${q(url + path)}, {\n  method: 'POST',\n  headers: { ${[...nodeHeaders, "'content-type': 'application/json'"].join(', ')} },\n  body: JSON.stringify(body),\n});\n${ends[3]}`],
  ];
}

/** Code for a realtime session with a command-line client, Python (websockets) and Node (ws). */
export function sessionCode(url, model) {
  const socket = `${url.replace(/^http/, 'ws')}/v1/realtime?model=${model}`;
  const say = { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] } };
  const answer = { type: 'response.create' };
  return [
    ['websocat', `websocat -H "authorization: Bearer $TOLLGATE_KEY" '${socket}' <<'JSON'\n${JSON.stringify(say)}\n${JSON.stringify(answer)}\nJSON`],
    ['Python', `import asyncio, json, os\nimport websockets\n\nasync def main():\n    headers = {"authorization": f"Bearer {os.environ['TOLLGATE_KEY']}"}\n    async with websockets.connect(${q(socket)}, additional_headers=headers) as session:\n        await session.send(json.dumps(${pythonOf(say, '        ')}))\n        await session.send(json.dumps(${pythonOf(answer, '        ')}))\n        async for event in session:\n            print(event)\n            if json.loads(event)["type"] == "response.done":\n                break\n\nasyncio.run(main())`],
    ['Node', `import WebSocket from 'ws';\n\nconst headers = { authorization: \`Bearer \${process.env.TOLLGATE_KEY}\` };\nconst session = new WebSocket(${q(socket)}, { headers });\nsession.on('open', () => {\n  session.send(JSON.stringify(${JSON.stringify(say)}));\n  session.send(JSON.stringify(${JSON.stringify(answer)}));\n});\nsession.on('message', (event) => {\n  console.log(String(event));\n  if (JSON.parse(event).type === 'response.done') session.close();\n});`],
  ];
}
