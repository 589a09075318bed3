// The same call as curl, Python and Node, for each family of SDKs.

const q = (text) => JSON.stringify(text);

/** First calls with this address, secret and model: pairs of a name and a text. */
export function firstCalls(url, secret, model) {
  return [
    ['curl', `curl ${url}/v1/chat/completions \\\n  -H "authorization: Bearer ${secret}" \\\n  -H "content-type: application/json" \\\n  -d '{"model": ${q(model)}, "messages": [{"role": "user", "content": "Hello"}]}'`],
    ['Python', `from openai import OpenAI\n\nclient = OpenAI(base_url=${q(`${url}/v1`)}, api_key=${q(secret)})\nanswer = client.chat.completions.create(\n    model=${q(model)},\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(answer.choices[0].message.content)`],
    ['Node', `import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: ${q(`${url}/v1`)}, apiKey: ${q(secret)} });\nconst answer = await client.chat.completions.create({\n  model: ${q(model)},\n  messages: [{ role: 'user', content: 'Hello' }],\n});\nconsole.log(answer.choices[0].message.content);`],
    ['Claude Code', `export ANTHROPIC_BASE_URL=${url}\nexport ANTHROPIC_AUTH_TOKEN=${secret}\nexport ANTHROPIC_MODEL=${model}\nclaude`],
  ];
}

/** A request of the playground as curl, Python (httpx) and Node (fetch). */
export function asCode(url, path, body, headers) {
  const json = JSON.stringify(body, null, 2);
  const lines = Object.entries({ authorization: 'Bearer $TOLLGATE_KEY', 'content-type': 'application/json', ...headers });
  const python = json.replace(/\btrue\b/g, 'True').replace(/\bfalse\b/g, 'False').replace(/\bnull\b/g, 'None');
  return [
    ['curl', `curl -N ${url}${path} \\\n${lines.map(([name, value]) => `  -H ${q(`${name}: ${value}`)} \\`).join('\n')}\n  -d @- <<'JSON'\n${json}\nJSON`],
    ['Python', `import os\nimport httpx\n\nbody = ${python}\nheaders = {"authorization": f"Bearer {os.environ['TOLLGATE_KEY']}"}\nwith httpx.stream("POST", ${q(url + path)}, json=body, headers=headers, timeout=600) as answer:\n    for line in answer.iter_lines():\n        print(line)`],
    ['Node', `const body = ${json};\nconst answer = await fetch(${q(url + path)}, {\n  method: 'POST',\n  headers: { authorization: \`Bearer \${process.env.TOLLGATE_KEY}\`, 'content-type': 'application/json' },\n  body: JSON.stringify(body),\n});\nfor await (const piece of answer.body.pipeThrough(new TextDecoderStream())) process.stdout.write(piece);`],
  ];
}
