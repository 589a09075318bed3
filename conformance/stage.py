"""Runs a gateway with simulated upstreams, on free ports and in a temporary folder."""

import base64
import json
import subprocess
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# The dialects. Clients use all of them, and each has an upstream.
DIALECTS = ["chat", "responses", "messages", "generate", "interactions"]

START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 10

BASE = """
[server]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[store]
url = "sqlite:tollgate.db"
disk_floor_bytes = 0
[outbound]
allow = ["127.0.0.0/8"]
[ledger]
queue_wait_ms = 10000
[timeouts]
shutdown_notice_ms = 0
shutdown_drain_ms = 1000
"""

# An upstream that supports only one dialect.
UPSTREAM = """
[[channel]]
name = "{dialect}"
preset = "sim"
base_url = "{url}/v1"
protocols = ["{dialect}"]
"""
MODEL = """
[[model]]
id = "{dialect}/{name}"
kind = "text"
created = 1767225600
routes = [{{ channel = "{dialect}", model = "{upstream_model}" }}]
price = {{ input = "1.25", cached_input = "0.125", output = "10" }}
profile = {{ context_tokens = 400000, max_output_tokens = 32000, vision = true, tools = true, {more} }}
"""
MODELS = {
    "plain": ("sim-chat+strict", "reasoning = false"),
    "thinker": ("sim-reason+strict+demand-reasoning", 'reasoning = true, thinking = "{thinking}"'),
    "inline": ("sim-chat+strict", "reasoning = false, image_urls = false"),
    "broken": ("sim-chat+error-event=3", "reasoning = false"),
    "busy": ("sim-chat+status=429", "reasoning = false"),
}


def configuration(url: str) -> str:
    parts = [BASE]
    for dialect in DIALECTS:
        parts.append(UPSTREAM.format(dialect=dialect, url=url))
        thinking = "adaptive" if dialect == "messages" else "level"
        for name, (upstream_model, more) in MODELS.items():
            more = more.format(thinking=thinking)
            told = {"dialect": dialect, "name": name, "upstream_model": upstream_model}
            parts.append(MODEL.format(**told, more=more))
    return "".join(parts)


class Pictures(SimpleHTTPRequestHandler):
    """Serves a folder without logging."""

    def log_message(self, *_):
        pass


class Stage:
    """A context manager. `environment` has the variables for drivers."""

    def __init__(self, program: Path, png: str, configuration=configuration):
        self.program = program
        self.png = base64.b64decode(png)
        self.configuration = configuration
        self.pictures = None
        self.running: list[subprocess.Popen] = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tollgate-conformance-")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.pictures:
            self.pictures.shutdown()
            self.pictures.server_close()
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            ended(process)
        self.folder.cleanup()

    def start(self):
        (self.path / "tollgate.toml").write_text(self.configuration(self.start_upstream()))
        self.gateway = self.spawn(self.program, "serve", output="gateway")
        address = self.told("gateway", self.gateway, '"serving"')["address"]
        self.environment = {
            "TOLLGATE_URL": f"http://{address}",
            "TOLLGATE_PICTURE_URL": self.serve_picture(),
        }
        self.command("wallet", "create", "rich", "--balance", "1000")
        self.command("wallet", "create", "poor")
        for name, options in {
            "TOLLGATE_KEY": ["--wallet", "rich"],
            "TOLLGATE_KEY_POOR": ["--wallet", "poor"],
            "TOLLGATE_KEY_SLOW": ["--wallet", "rich", "--rpm", "2"],
        }.items():
            self.environment[name] = self.command("key", "create", *options)["secret"]

    def stop_gateway(self):
        """Stops the gateway. Its records are then complete."""
        self.gateway.terminate()
        ended(self.gateway)

    def start_upstream(self):
        """Starts the upstreams, and returns the argument for `configuration`."""
        sim = self.spawn(self.program, "sim", "--listen", "127.0.0.1:0", "--json", output="sim")
        return "http://" + self.told("sim", sim, '"address"')["address"]

    def serve_picture(self) -> str:
        folder = self.path / "pictures"
        folder.mkdir()
        (folder / "pixel.png").write_bytes(self.png)
        handler = partial(Pictures, directory=folder)
        self.pictures = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.pictures.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.pictures.server_port}/pixel.png"

    def told(self, name: str, process: subprocess.Popen, mark: str) -> dict:
        """Waits for the first output line of a process that contains the marker, and returns its JSON."""
        deadline = time.monotonic() + START_SECONDS_MAX
        with (self.path / name).open() as output:
            while time.monotonic() < deadline:
                line = output.readline()
                if line.endswith("\n") and mark in line:
                    # A library may append its own log output to the line before the line has ended.
                    return json.JSONDecoder().raw_decode(line[line.index("{") :])[0]
                if not line and process.poll() is not None:
                    break
                if not line:
                    time.sleep(0.01)
        raise RuntimeError(f"{name} did not start:\n" + (self.path / name).read_text())

    @property
    def path(self) -> Path:
        return Path(self.folder.name)

    def spawn(self, *command, output: str, **options) -> subprocess.Popen:
        options.setdefault("cwd", self.path)
        with (self.path / output).open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, **options)
        self.running.append(process)
        return process

    def command(self, *arguments: str):
        answer = subprocess.run(
            [self.program, *arguments, "--json"],
            cwd=self.path,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            timeout=START_SECONDS_MAX,
        )
        return json.loads(answer.stdout)


def ended(process: subprocess.Popen):
    """Waits for a process that was asked to stop."""
    try:
        process.wait(timeout=STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
