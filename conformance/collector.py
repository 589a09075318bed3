"""A telemetry collector on free ports: Rotel, which forwards everything to OpenTelemetry's own decoder.

    with Collector(workspace) as collector:
        ...  # a gateway with `[telemetry] otlp_url = collector.url`
        spans = collector.wait_for(lambda told: [it for it in told if "span" in it])

`Collector(workspace, "127.0.0.1:4318")` listens there instead.
"""

import json
import os
import socket
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import install

START_SECONDS_MAX = 20
WAIT_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
# Another process may take the free port before the collector listens on it.
STARTS_MAX = 3


class Unavailable(Exception):
    """The collector cannot run on this machine."""


class Collector:
    """A context manager. Send telemetry to `url`. Metrics as JSON must go to `decoder_url`, because Rotel loses their
    values."""

    def __init__(self, workspace: Path, listen: str = ""):
        """`listen` is an unused address and port. If empty, a free port is chosen."""
        self.listen = listen
        try:
            self.interpreter, *self.arguments = install.python(workspace, "telemetry.txt", "telemetry.py")
        except subprocess.CalledProcessError as error:
            raise Unavailable("the packages of the collector cannot be installed here") from error
        self.running: list[subprocess.Popen] = []

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tollgate-collector-")
        self.path = Path(self.folder.name)
        try:
            self.program = self.find_program()
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
                process.wait(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.folder.cleanup()

    def find_program(self) -> Path:
        """Finds the collector's program and checks that it runs on this machine."""
        home = Path(self.interpreter).parent.parent
        found = sorted(home.glob("lib/python*/site-packages/rotel/rotel-agent"))
        if not found:
            raise Unavailable("there is no package of Rotel for this version of Python")
        tried = subprocess.run(
            [found[0], "--version"], env=self.environment(), stderr=subprocess.PIPE, text=True
        )
        if tried.returncode != 0:
            raise Unavailable(f"Rotel does not start here: {tried.stderr.strip()}")
        return found[0]

    @staticmethod
    def environment() -> dict:
        """The environment of the collector, which is linked with the shared library of this Python installation."""
        folders = [sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH")]
        return os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}

    def start(self):
        receiver = self.spawn(self.interpreter, *self.arguments, output="received")
        address = self.first_line(receiver)["address"]
        self.decoder_url = f"http://{address}"
        for _ in range(STARTS_MAX):
            http, grpc = self.listen or free_address(), free_address()
            collector = self.spawn(
                self.program, "start",
                "--otlp-http-endpoint", http,
                "--otlp-grpc-endpoint", grpc,
                "--exporter", "otlp",
                "--otlp-exporter-protocol", "http",
                "--otlp-exporter-endpoint", f"http://{address}",
                "--pid-file", self.path / "pid",
                "--log-file", self.path / "log",
                output="collector",
            )  # fmt: skip
            if listens(collector, http):
                self.url = f"http://{http}"
                return
        raise RuntimeError("Rotel did not start:\n" + (self.path / "collector").read_text())

    def spawn(self, *command, output: str) -> subprocess.Popen:
        with (self.path / output).open("w") as file:
            process = subprocess.Popen(
                command, cwd=self.path, env=self.environment(), stdout=file, stderr=file
            )
        self.running.append(process)
        return process

    def first_line(self, process: subprocess.Popen) -> dict:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and process.poll() is None:
            if told := self.told():
                return told[0]
            time.sleep(0.01)
        raise RuntimeError("the decoder did not start:\n" + (self.path / "received").read_text())

    def told(self) -> list[dict]:
        """All spans and data points that the collector has forwarded so far."""
        lines = (self.path / "received").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def wait_for(self, wanted):
        """Waits until `wanted` finds something in the forwarded telemetry, and returns it. After the time limit,
        returns what `wanted` gives then."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < deadline:
            if found := wanted(self.told()):
                return found
            time.sleep(0.05)
        return wanted(self.told())


def spans_of_call(told: list[dict], request_id: str) -> tuple[list[dict], list[dict]]:
    """The spans of this call, and the spans of its attempts below them in order of time."""
    spans = [it for it in told if "span" in it]
    calls = [it for it in spans if it["attributes"].get("tollgate.request_id") == request_id]
    ids = {it["id"] for it in calls}
    return calls, sorted((it for it in spans if it["parent"] in ids), key=lambda it: it["begins"])


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def listens(process: subprocess.Popen, address: str) -> bool:
    """Waits until a process listens on an address. Returns false if it does not in time."""
    host, port = address.split(":")
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return True
        except OSError:
            time.sleep(0.02)
    return False
