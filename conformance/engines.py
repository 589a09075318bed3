"""A gateway in front of real engines: llama.cpp servers with a scripted model."""

import json
import subprocess
import urllib.request
from pathlib import Path

from stage import BASE, START_SECONDS_MAX, Stage

# The dialects that the engine serves.
UPSTREAMS = ["chat", "responses", "messages"]
REQUEST_SECONDS_MAX = 10
# A stream counts as in progress when the engine has generated this many tokens.
PROGRESS_TOKENS = 20

CHANNEL = """
[[channel]]
name = "{name}"
preset = "openai-compatible"
base_url = "{url}/v1"
protocols = ["{protocol}"]
"""
MODEL = """
[[model]]
id = "{channel}/{name}"
kind = "text"
routes = [{{ channel = "{channel}", model = "scripted" }}]
price = {{ input = "1.25", cached_input = "0.125", output = "10" }}
profile = {{ context_tokens = 65536, max_output_tokens = 60000, tools = true, {more} }}
"""
VECTORS = """
[[model]]
id = "embeddings/plain"
kind = "embedding"
routes = [{ channel = "embeddings", model = "scripted" }]
price = { input = "0.1" }
profile = { context_tokens = 65536 }
"""


def configuration(addresses: dict) -> str:
    """`addresses` has the URL of each engine by its name."""
    vectors = {"name": "embeddings", "url": addresses["vectors"], "protocol": "embeddings"}
    parts = [BASE, CHANNEL.format(**vectors), VECTORS]
    for protocol in UPSTREAMS:
        parts.append(CHANNEL.format(name=protocol, url=addresses["serving"], protocol=protocol))
        parts.append(MODEL.format(channel=protocol, name="plain", more="reasoning = false"))
        thinking = "adaptive" if protocol == "messages" else "level"
        more = f'reasoning = true, thinking = "{thinking}"'
        parts.append(MODEL.format(channel=protocol, name="thinker", more=more))
        for language in addresses.keys() - {"serving", "vectors"}:
            channel = killed_channel(protocol, language)
            parts.append(CHANNEL.format(name=channel, url=addresses[language], protocol=protocol))
            parts.append(MODEL.format(channel=channel, name="broken", more="reasoning = false"))
    return "".join(parts)


def killed_channel(protocol: str, language: str) -> str:
    """The channel to the engine that is killed while the drivers of a language read its streams."""
    return f"{protocol}-killed-for-{language}"


class EngineStage(Stage):
    """Runs an engine "serving", an engine "vectors", and one engine to kill for each language."""

    def __init__(self, program: Path, server: list, model: bytes, languages: list[str]):
        super().__init__(program, "", configuration)
        self.server = server
        self.model = model
        self.kinds = {"serving": "text", "vectors": "vectors", **dict.fromkeys(languages, "text")}
        self.engines: dict[str, subprocess.Popen] = {}
        self.addresses: dict[str, str] = {}

    def start_upstream(self) -> dict:
        (self.path / "scripted.gguf").write_bytes(self.model)
        for name, kind in self.kinds.items():
            self.engines[name] = self.spawn(*self.server, "scripted.gguf", kind, output=name)
            self.addresses[name] = self.told(name, self.engines[name], '"address"')["address"]
        return self.addresses

    def request(self, engine: str, path: str, body=None) -> str:
        """Sends a request directly to an engine, and returns the body of its answer."""
        data = None if body is None else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.addresses[engine] + path, data, REQUEST_SECONDS_MAX) as answer:
            return answer.read().decode()

    def prompt_tokens(self, prompt: str) -> int:
        """The number of tokens of a conversation that consists of this user message."""
        body = {"messages": [{"role": "user", "content": prompt}]}
        rendered = json.loads(self.request("serving", "/apply-template", body))["prompt"]
        body = {"content": rendered, "parse_special": True}
        return len(json.loads(self.request("serving", "/tokenize", body))["tokens"])

    def streams_in_progress(self, engine: str) -> int:
        slots = json.loads(self.request(engine, "/slots"))
        decoded = [token["n_decoded"] for slot in slots for token in slot.get("next_token", [])]
        return sum(tokens >= PROGRESS_TOKENS for tokens in decoded)

    def counters(self, engine: str) -> dict[str, int]:
        """The metrics that an engine has counted since its start."""
        lines = self.request(engine, "/metrics").splitlines()
        pairs = (line.split(" ") for line in lines if not line.startswith("#"))
        return {name.removeprefix("llamacpp:"): int(float(value)) for name, value in pairs}

    def rows(self, *command: str) -> list[dict]:
        """Runs a command of the gateway that prints lines of JSON."""
        run = subprocess.run(
            [self.program, *command, "--json"],
            cwd=self.path,
            text=True,
            stdout=subprocess.PIPE,
            timeout=START_SECONDS_MAX,
        )
        return [json.loads(line) for line in run.stdout.splitlines()]
