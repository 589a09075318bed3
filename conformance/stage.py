"""A gateway with its simulated upstream, on free ports and in a folder of its own."""

import json
import subprocess
import tempfile
import time
from pathlib import Path

CONFIG = """
[server]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[store]
url = "sqlite:tollgate.db"
disk_floor_bytes = 0
[timeouts]
shutdown_notice_ms = 0
shutdown_drain_ms = 1000

[[channel]]
name = "sim"
preset = "sim"
base_url = "{upstream}/v1"

[[model]]
id = "maker/chat"
kind = "text"
created = 1767225600
routes = [{{ channel = "sim", model = "sim-chat" }}]
price = {{ input = "1.25", cached_input = "0.125", output = "10" }}
profile = {{ context_tokens = 400000, max_output_tokens = 128000, vision = true, tools = true }}

[[model]]
id = "maker/reason"
kind = "text"
created = 1767225600
routes = [{{ channel = "sim", model = "sim-reason" }}]
price = {{ input = "2", cached_input = "0.2", output = "16" }}
profile = {{ context_tokens = 200000, max_output_tokens = 100000, tools = true, reasoning = true }}
"""


class Stage:
    """Used as a context; `environment` is what a suite is told."""

    def __init__(self, program: Path):
        self.program = program
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
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.folder.cleanup()

    def start(self):
        sim = self.spawn("sim", "--listen", "127.0.0.1:0", "--json", stdout=subprocess.PIPE)
        upstream = "http://" + json.loads(sim.stdout.readline())["address"]
        (self.path / "tollgate.toml").write_text(CONFIG.format(upstream=upstream))
        with (self.path / "log").open("w") as log:
            gateway = self.spawn("serve", stderr=log)
        self.environment = {
            "TOLLGATE_URL": "http://" + self.address(gateway),
            "TOLLGATE_UPSTREAM_URL": upstream,
        }
        self.command("wallet", "create", "rich", "--balance", "1000")
        self.command("wallet", "create", "poor")
        for name, options in {
            "TOLLGATE_KEY": ["--wallet", "rich"],
            "TOLLGATE_KEY_POOR": ["--wallet", "poor"],
            "TOLLGATE_KEY_SLOW": ["--wallet", "rich", "--rpm", "2"],
        }.items():
            self.environment[name] = self.command("key", "create", *options)["secret"]

    def address(self, gateway: subprocess.Popen) -> str:
        """The address in the line that the gateway logs when it serves."""
        with (self.path / "log").open() as log:
            while True:
                line = log.readline()
                if '"serving"' in line:
                    return json.loads(line)["address"]
                if not line and gateway.poll() is not None:
                    raise RuntimeError((self.path / "log").read_text())
                if not line:
                    time.sleep(0.01)

    @property
    def path(self) -> Path:
        return Path(self.folder.name)

    def spawn(self, *arguments: str, **outputs) -> subprocess.Popen:
        process = subprocess.Popen([self.program, *arguments], cwd=self.path, text=True, **outputs)
        self.running.append(process)
        return process

    def command(self, *arguments: str):
        answer = subprocess.run(
            [self.program, *arguments, "--json"],
            cwd=self.path,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return json.loads(answer.stdout)
