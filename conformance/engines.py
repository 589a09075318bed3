"""A gateway in front of real engines: servers of llama.cpp with a scripted model."""

import json
import subprocess
import urllib.request
from pathlib import Path

from stage import BASE, START_SECONDS_MAX, Stage

# What the engine speaks of what we call.
UPSTREAMS = ["chat", "responses", "messages"]
ASK_SECONDS_MAX = 10
# A stream is in its middle when the engine has put out so many tokens of it.
MIDDLE_TOKENS = 20

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
profile = {{ context_tokens = 16384, max_output_tokens = 16000, tools = true, {more} }}
"""
VECTORS = """
[[model]]
id = "embeddings/plain"
kind = "embedding"
routes = [{ channel = "embeddings", model = "scripted" }]
price = { input = "0.1" }
profile = { context_tokens = 16384 }
"""


def configuration(engines: dict) -> str:
    """`engines` has the address of each; one is killed for each language."""
    parts = [BASE, CHANNEL.format(name="embeddings", url=engines["vectors"], protocol="embeddings"), VECTORS]
    for protocol in UPSTREAMS:
        parts.append(CHANNEL.format(name=protocol, url=engines["serving"], protocol=protocol))
        parts.append(MODEL.format(channel=protocol, name="plain", more="reasoning = false"))
        thinking = "adaptive" if protocol == "messages" else "level"
        more = f'reasoning = true, thinking = "{thinking}"'
        parts.append(MODEL.format(channel=protocol, name="thinker", more=more))
        for language in engines.keys() - {"serving", "vectors"}:
            name = killed_name(protocol, language)
            parts.append(CHANNEL.format(name=name, url=engines[language], protocol=protocol))
            parts.append(MODEL.format(channel=name, name="broken", more="reasoning = false"))
    return "".join(parts)


def killed_name(protocol: str, language: str) -> str:
    """The name of the channel to the engine that is killed for the drivers of a language."""
    return f"{protocol}-killed-for-{language}"


class EngineStage(Stage):
    """One engine serves, one makes vectors, and one for each language is killed while it serves."""

    def __init__(self, program: Path, engine: list, model: bytes, languages: list[str]):
        super().__init__(program, "", configuration)
        self.engine = engine
        self.model = model
        self.languages = languages
        self.engines: dict[str, subprocess.Popen] = {}
        self.addresses: dict[str, str] = {}

    def start_upstream(self) -> dict:
        (self.path / "scripted.gguf").write_bytes(self.model)
        kinds = {"serving": "text", "vectors": "vectors"}
        for name, kind in [*kinds.items(), *((language, "text") for language in self.languages)]:
            command = [*self.engine, "scripted.gguf", kind]
            self.engines[name] = self.spawn(*command, output=name)
            self.addresses[name] = self.told(name, self.engines[name], '"address"')["address"]
        return self.addresses

    def ask(self, name: str, path: str, body=None) -> str:
        """What an engine answers when it is asked without the gateway."""
        data = None if body is None else json.dumps(body).encode()
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(self.addresses[name] + path, data, timeout=ASK_SECONDS_MAX) as answer:
            return answer.read().decode()

    def prompt_tokens(self, prompt: str) -> int:
        """How many tokens the engine makes of a conversation with this one message."""
        asked = {"messages": [{"role": "user", "content": prompt}]}
        rendered = json.loads(self.ask("serving", "/apply-template", asked))["prompt"]
        asked = {"content": rendered, "parse_special": True}
        return len(json.loads(self.ask("serving", "/tokenize", asked))["tokens"])

    def streams(self, name: str) -> int:
        """How many calls of an engine are in the middle of their answers."""
        slots = json.loads(self.ask(name, "/slots"))
        decoded = [token["n_decoded"] for slot in slots for token in slot.get("next_token", [])]
        return sum(count >= MIDDLE_TOKENS for count in decoded)

    def counters(self, name: str) -> dict[str, int]:
        """What an engine has counted since its start."""
        lines = self.ask(name, "/metrics").splitlines()
        pairs = (line.split(" ") for line in lines if not line.startswith("#"))
        return {counter.removeprefix("llamacpp:"): int(float(value)) for counter, value in pairs}

    def rows(self, *command: str) -> list[dict]:
        """What a command of the gateway tells in lines of JSON."""
        run = subprocess.run(
            [self.program, *command, "--json"],
            cwd=self.path,
            text=True,
            stdout=subprocess.PIPE,
            timeout=START_SECONDS_MAX,
        )
        return [json.loads(line) for line in run.stdout.splitlines()]
