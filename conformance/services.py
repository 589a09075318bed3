"""Runs the services of `deploy/compose/compose.yaml` as processes on this machine, without containers.

Every service has its own loopback address and folder. The folder has the files that compose.yaml mounts, at the same
paths. In these files, addresses, ports and paths are replaced with those of this machine, and the intervals of
Prometheus with shorter ones. Nothing else is changed.
"""

import json
import os
import random
import re
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from collector import Collector, Unavailable
from stage import Stage

HERE = Path(__file__).resolve().parent
COMPOSE = HERE.parent / "deploy/compose"
WAIT_SECONDS_MAX = 90
COMMAND_SECONDS_MAX = 60
# Below the kernel's range for ports of outgoing connections.
PORTS = range(20000, 32000)
# The values of `.env` for the test. The vendors' keys stay empty.
SECRETS = {
    "POSTGRES_PASSWORD": "p@ss:w/rd #1 %41",
    "TOLLGATE_ADMIN_TOKEN": "tg-admin-0123456789abcdef0123456789abcdef",
    "GRAFANA_PASSWORD": "grafana-password",
}
STARTED = {"postgres", "s3", "bucket", "collector", "gateway-1", "gateway-2", "proxy", "prometheus"}
# No package registry has it. The checks send the queries of its dashboard to Prometheus.
NOT_STARTED = {"grafana"}
YAML_TO_JSON = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"


class Services(Stage):
    """A context manager: PostgreSQL and the bucket, then the collector, both gateways, the proxy and Prometheus. Simulated
    upstreams replace the vendors. If no collector is available, `collector` is None and `no_collector` says why."""

    def __init__(self, program: Path, python: Path, prometheus: Path, workspace: Path):
        super().__init__(program, "")
        self.python, self.prometheus, self.workspace = python, prometheus, workspace
        self.collector, self.no_collector = None, ""
        self.set = self.yaml(COMPOSE / "compose.yaml")
        services = set(self.set["services"])
        assert services == STARTED | NOT_STARTED, f"other services than are started here: {sorted(services)}"
        self.net = f"127.{random.randrange(1, 255)}.{random.randrange(256)}"
        names = [*sorted(services), "upstream"]
        self.addresses = {name: f"{self.net}.{number}" for number, name in enumerate(names, 1)}
        self.ports: dict[str, str] = {}

    def start(self):
        self.values = {**empty_values(), **SECRETS}
        self.postgres = PostgreSql(self.values["POSTGRES_PASSWORD"], self.set["services"]["postgres"]["environment"])
        self.start_bucket()
        self.start_upstream()
        self.start_collector()
        for name in ("gateway-1", "gateway-2"):
            self.start_gateway(name)
        self.start_proxy()
        self.start_prometheus()

    def __exit__(self, *_):
        # Stop the collector after the gateways, which send their last spans when they stop.
        super().__exit__()
        if self.collector:
            self.collector.__exit__()

    def yaml(self, file: Path):
        return json.loads(output_of([self.python, "-c", YAML_TO_JSON], input=file.read_text()))

    def port(self, number: str) -> str:
        """The port that replaces a port of compose.yaml, the same for all services."""
        if number not in self.ports:
            self.ports[number] = str(free_port(set(self.ports.values())))
        return self.ports[number]

    def at(self, service: str, port: str) -> str:
        return f"{self.addresses[service]}:{self.port(port)}"

    def files(self, service: str) -> Path:
        """Creates the folder that stands for the service's file system, with its volumes."""
        root = self.path / service
        for volume in self.set["services"][service].get("volumes", []):
            source, inside, *_ = volume.split(":")
            place = root / inside.lstrip("/")
            if not source.startswith("."):
                place.mkdir(parents=True, exist_ok=True)
                continue
            source = COMPOSE / source
            for file in [source] if source.is_file() else sorted(source.iterdir()):
                copy = place if source.is_file() else place / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self.rewritten(file.read_text(), service))
        return root

    def rewritten(self, text: str, service: str) -> str:
        """The text of a configuration file with the addresses and paths of this machine."""
        names = "|".join(map(re.escape, self.addresses))
        text = re.sub(rf"\b({names}):(\d+)\b", lambda it: self.at(it[1], it[2]), text)
        text = text.replace("@postgres/", f"@{self.postgres.address}/")
        text = re.sub(r"\b0\.0\.0\.0:(\d+)", lambda it: self.at(service, it[1]), text)
        text = re.sub(r"\blocalhost:(\d+)", lambda it: f"localhost:{self.port(it[1])}", text)
        text = re.sub(r"\bhealth_port (\d+)", lambda it: f"health_port {self.port(it[1])}", text)
        text = text.replace('"/data/', f'"{self.path / service}/data/')
        if service == "prometheus":
            text = re.sub(r"^(\s*)(scrape_interval|evaluation_interval): \w+$", r"\1\2: 1s", text, flags=re.MULTILINE)
            text = re.sub(r"^(\s*)for: \w+$", r"\1for: 2s", text, flags=re.MULTILINE)
        return text

    def environment_of(self, service: str) -> dict:
        """The variables that compose.yaml sets for a service. A required variable without a value ends the test."""
        given = self.set["services"][service].get("environment", {})
        return {name: interpolated(str(text), self.values) for name, text in given.items()}

    def start_bucket(self):
        self.s3 = f"http://{self.at('s3', '9000')}"
        address, port = self.at("s3", "9000").split(":")
        # The server checks signatures only after the requests that create an account.
        variables = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "3"}
        server = self.spawn(self.python.with_name("moto_server"), "-H", address, "-p", port, output="s3.log", env=variables)
        self.ready("s3", server, lambda: socket.create_connection((address, int(port)), timeout=1).close())
        self.values |= self.bucket("create")

    def bucket(self, command: str) -> dict:
        """Runs a command of `python/bucket.py`, in place of the bucket's client in compose.yaml."""
        client = [self.python, "-B", HERE / "python/bucket.py", command, self.s3, "tollgate"]
        return json.loads(output_of(client, env={**os.environ, **self.values}))

    def start_upstream(self):
        self.upstream_url = f"http://{self.at('upstream', '8089')}"
        command = [self.program, "sim", "--listen", self.at("upstream", "8089"), "--json"]
        self.upstream = self.spawn(*command, output="upstream.log")
        self.told("upstream.log", self.upstream, '"address"')

    def start_collector(self):
        """Starts Rotel on the address in the collector's configuration."""
        file = self.files("collector") / "etc/otelcol-contrib/config.yaml"
        listen = self.yaml(file)["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
        try:
            self.collector = Collector(self.workspace, listen).__enter__()
        except Unavailable as reason:
            self.no_collector = str(reason)

    def gateway_command(self, name: str, *arguments) -> tuple:
        """A command of the gateway's image with its variables, both from the image and from compose.yaml."""
        root = self.path / name
        variables = {"TOLLGATE_CONFIG": str(root / "etc/tollgate/tollgate.toml"), **self.environment_of(name)}
        return [self.program, *arguments], {"env": variables, "cwd": root / "data"}

    def start_gateway(self, name: str):
        self.files(name)
        command, options = self.gateway_command(name, "serve")
        gateway = self.spawn(*command, output=f"{name}.log", **options)
        self.told(f"{name}.log", gateway, '"serving"')
        setattr(self, name.replace("-", "_"), gateway)
        # The health check of the image.
        self.ready(name, gateway, lambda: self.run(name, "health"))

    def run(self, name: str, *arguments) -> str:
        """Runs a command as in a gateway's container, and returns its output."""
        command, options = self.gateway_command(name, *arguments)
        return output_of(command, **options)

    def start_proxy(self):
        root = self.files("proxy")
        # The same variables as in Caddy's image.
        variables = {"XDG_DATA_HOME": str(root / "data"), "XDG_CONFIG_HOME": str(root / "config"), "HOME": str(root)}
        caddy = [self.python.with_name("caddy"), "run", "--adapter", "caddyfile", "--config", root / "etc/caddy/Caddyfile"]
        self.proxy = self.spawn(*caddy, output="proxy.log", env=variables)
        self.public_url = f"https://localhost:{self.port('8443')}"
        authority = root / "data/caddy/pki/authorities/local/root.crt"

        def answers():
            self.tls = ssl.create_default_context(cafile=authority)
            self.fetch(self.public_url + "/")

        self.ready("proxy", self.proxy, answers)

    def start_prometheus(self):
        root = self.files("prometheus")
        self.prometheus_url = f"http://{self.at('prometheus', '9090')}"
        # The arguments in compose.yaml, and the address to listen on.
        given = self.set["services"]["prometheus"]["command"]
        arguments = [it.replace("=/", f"={root}/") for it in given]
        listen = f"--web.listen-address={self.at('prometheus', '9090')}"
        process = self.spawn(self.prometheus, *arguments, listen, output="prometheus.log")
        self.ready("prometheus", process, lambda: self.fetch(self.prometheus_url + "/-/ready"))

    def ready(self, name: str, process: subprocess.Popen, probe):
        """Waits until the probe raises nothing."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            try:
                return probe()
            except (OSError, RuntimeError) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    log = (self.path / f"{name}.log").read_text()[-2000:]
                    raise RuntimeError(f"{name} did not start: {error}\n{log}") from error
            time.sleep(0.1)

    def fetch(self, url: str, body=None, secret: str = "", method=None) -> bytes:
        """Sends a request and returns the body of the answer. An error status raises, with the answer."""
        return self.exchange(url, body, secret, method)[0]

    def exchange(self, url: str, body=None, secret: str = "", method=None, **headers) -> tuple:
        """Like `fetch`, but also returns the headers of the answer."""
        headers = {"content-type": "application/json", **headers}
        if secret:
            headers["authorization"] = f"Bearer {secret}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        handlers = [urllib.request.ProxyHandler({})]
        if url.startswith("https"):
            handlers.append(urllib.request.HTTPSHandler(context=self.tls))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=COMMAND_SECONDS_MAX) as answer:
                return answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code} of {url}: {error.read().decode(errors='replace')[:500]}") from error

    def logs(self) -> str:
        """The end of every service's log."""
        logs = sorted(self.path.glob("*.log")) + ([self.collector.path / "collector"] if self.collector else [])
        return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in logs)


class PostgreSql:
    """The server of `scripts/with-postgres`, with the role, the password and the database of compose.yaml."""

    def __init__(self, password: str, wanted: dict):
        url = os.environ.get("TOLLGATE_TEST_POSTGRES")
        if not url:
            raise RuntimeError("there is no PostgreSQL: start this by scripts/with-postgres")
        self.address = re.search(r"@([^/]+)/", url)[1]
        programs = Path(os.environ["TOLLGATE_TEST_POSTGRES_PROGRAMS"])
        data = Path(os.environ["TOLLGATE_TEST_POSTGRES_DATA"])
        role, database = wanted["POSTGRES_USER"], wanted["POSTGRES_DB"]
        quoted = password.replace("'", "''")
        for statement in (f"ALTER ROLE {role} PASSWORD '{quoted}'", f"CREATE DATABASE {database} OWNER {role}"):
            output_of([programs / "psql", url, "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement])
        # Like the image, require a password for connections over the network.
        (data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
        reload = [*os.environ["TOLLGATE_TEST_POSTGRES_AS"].split(), programs / "pg_ctl", "-D", data, "reload"]
        output_of(reload, cwd=data.parent)


def empty_values() -> dict:
    """The names in `environment.example` with empty values."""
    lines = (COMPOSE / "environment.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def interpolated(text: str, values: dict) -> str:
    """Replaces `${NAME:?}` and `${NAME:-}` like docker compose."""

    def value(match):
        found = values.get(match[1], "")
        if match[2] == "?" and not found:
            raise RuntimeError(f"compose.yaml requires {match[1]}, which environment.example does not have")
        return found

    return re.sub(r"\$\{(\w+):([?-])\}", value, text).replace("$$", "$")


def free_port(taken: set[str]) -> int:
    """A port that is free on all addresses and not in `taken`."""
    while True:
        port = random.choice(PORTS)
        if str(port) in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
                return port
            except OSError:
                continue


def output_of(command, **options) -> str:
    """Runs a command and returns its output. If it fails, raises an error with its last lines."""
    options.setdefault("timeout", COMMAND_SECONDS_MAX)
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if result.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {(result.stderr or result.stdout)[-1000:].strip()}")
    return result.stdout
