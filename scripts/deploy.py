#!/usr/bin/env python3
"""Checks `deploy/`: names of metrics, alert rules, the service, the container files, the chart, and the release files,
including the first call of a new user.

    scripts/deploy.py PRODUCTION DEMO WORKSPACE        # programs to pack, without and with the simulator

WORKSPACE keeps the tools between runs: linters from PyPI, locked in `conformance/python/packages.txt`, and promtool from
Debian's package, which is unpacked but not installed. Checks that need systemd or dpkg-dev are skipped and named where
these are missing. The alert rules are skipped where there is neither promtool nor apt-get.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
sys.path.insert(0, str(ROOT / "conformance"))
sys.dont_write_bytecode = True

import install  # noqa: E402

SECONDS_MAX = 120
# Packing compresses the program and reads the licences of all crates.
PACKING_SECONDS_MAX = 900
PACKING = [sys.executable, ROOT / "scripts/release", "--dirty", "--level", "1"]
# The maximum exposure score of `systemd-analyze security` for a safe service. Ours is 1.2.
EXPOSURE_MAX = 2.0
# The oldest version that the chart accepts, and the newest one that the validator knows.
KUBERNETES = ("1.27", "1.37")
# Every optional part of the chart.
CHART_VALUES = {
    "imagePullSecrets": [{"name": "registry"}],
    "secretEnvironment": ["tollgate", "vendors"],
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "annotations": {"a.example/b": "c"}},
    "autoscaling": {"enabled": True},
    "podAnnotations": {"a.example/b": "c"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "only", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "tollgate"}}},
    ]}},
}
# The chart with all optional parts left out.
CHART_VALUES_LEAST = {"secretEnvironment": [], "scrape": False, "podDisruptionBudget": {"enabled": False}}


def run(*command, **options):
    options = {"timeout": SECONDS_MAX, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    return subprocess.run([str(it) for it in command], text=True, **options)


def passes(*command, **options):
    result = run(*command, **options)
    assert result.returncode == 0, f"{command[0]}: {result.stdout}"
    return result.stdout


def skipped(what):
    print(f"left out, because it cannot be had here: {what}")


def check_metrics():
    """Rules and dashboards use only metrics that the program has, and the dashboard shows each of them. The suffixes
    are those of histograms."""
    known = set(re.findall(r"`(tollgate_\w+)`", (ROOT / "docs/metrics.md").read_text()))
    for file in [*sorted(DEPLOY.glob("prometheus/*.yml")), *sorted(DEPLOY.glob("grafana/*.json"))]:
        named = set(re.findall(r"tollgate_\w+", file.read_text()))
        unknown = {it for it in named if it not in known and re.sub("_(bucket|sum|count)$", "", it) not in known}
        assert not unknown, f"{file}: no such metrics: {sorted(unknown)}"
    shown = (DEPLOY / "grafana/tollgate.json").read_text()
    missing = {it for it in known if it not in shown}
    assert not missing, f"the dashboard does not show {sorted(missing)}"


def check_containers(tools):
    passes(tools / "hadolint", DEPLOY / "docker/Dockerfile")
    passes(tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose/compose.yaml")


def check_collector(python):
    """Every part of the collector's pipelines is declared, and every declared part is used. The gateways send to the
    address on which it listens, and its file is mounted where the image expects it. The collector's own `validate` command
    is not available from any package registry. Every image in compose.yaml, except ours, has a version."""
    read = "import json, sys, yaml; json.dump([yaml.safe_load(open(it)) for it in sys.argv[1:]], sys.stdout)"
    file = DEPLOY / "compose/collector.yaml"
    collector, compose = json.loads(passes(python, "-c", read, file, DEPLOY / "compose/compose.yaml"))
    assert set(collector) == {"receivers", "processors", "exporters", "service"}, sorted(collector)
    assert set(collector["service"]) == {"pipelines"}, sorted(collector["service"])
    pipelines = collector["service"]["pipelines"]
    assert set(pipelines) == {"traces"}, sorted(pipelines)
    for kind in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines.values() for name in pipeline[kind]}
        assert used and used == set(collector[kind]), f"{kind}: {sorted(used ^ set(collector[kind]))}"
    assert pipelines["traces"]["processors"][0] == "memory_limiter", "the limit of memory must come first"
    (port,) = re.findall(r'^otlp_url = "http://collector:(\d+)"$', (DEPLOY / "compose/tollgate.toml").read_text(), re.MULTILINE)
    assert collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"] == f"0.0.0.0:{port}", port
    service = compose["services"]["collector"]
    assert service["volumes"] == ["./collector.yaml:/etc/otelcol-contrib/config.yaml:ro"], service["volumes"]
    for name, service in compose["services"].items():
        image = service["image"]
        pinned = image == "tollgate" or re.search(r":[^:/]*\d[^:/]*$", image)
        assert pinned, f"{name}: {image} has no version"


def check_chart(tools, scratch):
    """The chart installs the version of this tree, and renders valid Kubernetes objects with all of its options."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    chart = DEPLOY / "helm/tollgate"
    assert f'appVersion: "{version}"' in (chart / "Chart.yaml").read_text(), version
    environment = {"HOME": str(scratch)}
    for number, values in enumerate(({}, CHART_VALUES, CHART_VALUES_LEAST)):
        file = scratch / f"values-{number}.json"
        file.write_text(json.dumps(values))
        passes(tools / "helm", "lint", "--strict", "--values", file, chart, env=environment)
        for kubernetes in KUBERNETES:
            options = ["--values", file, "--kube-version", kubernetes]
            rendered = scratch / f"rendered-{number}.yaml"
            rendered.write_text(passes(tools / "helm", "template", "tollgate", chart, *options, env=environment))
            told = passes(tools / "kubernetes-validate", "--strict", "--kubernetes-version", kubernetes, rendered)
            assert told.count(" passed for resource ") >= 4, told


def check_rules(workspace):
    try:
        promtool = install.debian(workspace, "prometheus", "promtool")
    except install.NotDebian:
        return skipped("promtool")
    passes(promtool, "check", "rules", DEPLOY / "prometheus/alerts.yml")
    passes(promtool, "test", "rules", DEPLOY / "prometheus/alerts.test.yml")


def check_service(unpacked):
    if not shutil.which("systemd-analyze"):
        return skipped("systemd-analyze")
    unit = "usr/lib/systemd/system/tollgate.service"
    told = passes("systemd-analyze", "security", "--offline=true", unpacked / unit)
    exposure = float(re.search(r"Overall exposure level for tollgate.service: ([\d.]+)", told)[1])
    assert exposure <= EXPOSURE_MAX, told
    # The unit of the package, with the path of the unpacked program.
    copy = unpacked / "tollgate.service"
    copy.write_text((unpacked / unit).read_text().replace("/usr/bin/tollgate", str(unpacked / "usr/bin/tollgate")))
    told = run("systemd-analyze", "verify", "--man=no", copy)
    assert "tollgate.service:" not in told.stdout, told.stdout


def check_installed(unpacked):
    """The packaged program runs with the packaged configuration, started, reloaded and stopped as the unit does it."""
    unit = (unpacked / "usr/lib/systemd/system/tollgate.service").read_text()
    start = re.search("^ExecStart=(.+)$", unit, re.MULTILINE)[1].split()
    command = [f"{unpacked}{it}" if it.startswith("/") else it for it in start]
    state = unpacked / "var/lib/tollgate"
    state.mkdir(parents=True)
    configuration = pathlib.Path(command[-1])
    text = configuration.read_text().replace("/var/lib/tollgate", str(state))
    configuration.write_text(re.sub(r'^listen = "127\.0\.0\.1:\d+"', 'listen = "127.0.0.1:0"', text, flags=re.MULTILINE))
    with Running(command, cwd=state, env={}) as service:
        serving = json.loads(service.read_until('"serving"').splitlines()[-1])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(f"http://{serving['admin']}/readyz", timeout=SECONDS_MAX).read()
        service.process.send_signal(signal.SIGHUP)
        service.read_until("the configuration is reloaded")
        opener.open(f"http://{serving['admin']}/readyz", timeout=SECONDS_MAX).read()
        service.stop(signal.SIGTERM)


def check_first_call(archive, scratch):
    """A new user unpacks the archive, starts the demo and pastes the first command that it prints."""
    home = scratch / "newcomer"
    home.mkdir()
    passes("tar", "--extract", "--file", archive, "--directory", home)
    (folder,) = home.iterdir()
    environment = {"HOME": str(home)}
    begun = time.monotonic()
    # On free ports, otherwise with the defaults.
    command = ["./tollgate", "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    with Running(command, cwd=folder, env=environment) as demo:
        shown = demo.read_until("As a stream:")
        first = re.search(r"^Try it:\n\n(curl .+?)\n\nAs a stream:", shown, re.MULTILINE | re.DOTALL)[1]
        told = passes("/bin/sh", "-c", first, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        assert json.loads(told)["choices"][0]["message"]["content"], told
        print(f"first call of an unpacked archive: answered {time.monotonic() - begun:.1f} s after the start", flush=True)
        demo.stop(signal.SIGINT)


class Running:
    """A program that runs until it is stopped. It is killed if it still runs after SECONDS_MAX."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        self.timer = threading.Timer(SECONDS_MAX, self.process.kill)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()

    def read_until(self, text):
        """The output since the last call, up to a line with this text."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError(f"it ended and did not print {text!r}: {''.join(lines)[-2000:]}")

    def stop(self, how):
        self.process.send_signal(how)
        rest = self.process.stdout.read()
        assert self.process.wait() == 0, rest[-2000:]


def check_packing(program, demo, scratch):
    """The archives and the package have the expected content, and their programs work where they are unpacked."""
    out, again = scratch / "files", scratch / "again"
    release = [*PACKING, "--program", program]
    passes(*release, "--demo", demo, "--out", out, timeout=PACKING_SECONDS_MAX)
    passes("sha256sum", "--check", "SHA256SUMS", cwd=out)
    passes(*release, "--out", again, timeout=PACKING_SECONDS_MAX)
    sums = [set((it / "SHA256SUMS").read_text().splitlines()) for it in (out, again)]
    assert sums[1] and sums[1] <= sums[0], "packing twice gives other bytes"
    (archive,) = out.glob("tollgate-production-*.tar.gz")
    passes("tar", "--extract", "--file", archive, "--directory", scratch)
    (folder,) = (it for it in scratch.glob("tollgate-*") if it.is_dir())
    for name in ("tollgate", "LICENSE", "THIRD-PARTY.txt", "example.toml", "man/tollgate-serve.1", "completions/tollgate.zsh"):
        assert (folder / name).stat().st_size, name
    passes(folder / "tollgate", "--version")
    (package,) = out.glob("*.deb")
    unpacked = scratch / "unpacked"
    passes("dpkg-deb", "--extract", package, unpacked)
    told = passes("dpkg-deb", "--info", package)
    assert "libc6" in told and re.search(r"^ Version: \d", told, re.MULTILINE), told
    configuration = unpacked / "etc/tollgate/tollgate.toml"
    passes(unpacked / "usr/bin/tollgate", "check", "--config", configuration)
    (bill,) = out.glob("*.cdx.json")
    assert json.loads(bill.read_text())["components"]
    (with_simulator,) = set(out.glob("*.tar.gz")) - {archive}
    check_first_call(with_simulator, scratch)
    return unpacked


def check_other_machine(program, scratch):
    """The files for another machine carry its name. The packed program is one for this machine, and `env` takes the
    place of an emulator."""
    out = scratch / "other"
    machine, architecture = ("x86_64", "amd64") if platform.machine() == "aarch64" else ("aarch64", "arm64")
    target = f"{machine}-unknown-linux-musl"
    environment = {**os.environ, f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUNNER": "env"}
    command = [*PACKING, "--program", program, "--target", target, "--out", out]
    passes(*command, env=environment, timeout=PACKING_SECONDS_MAX)
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    name = f"{version}-{machine}-linux"
    package = f"tollgate_{version}_{architecture}.deb"
    expected = {f"tollgate-production-{name}.tar.gz", f"tollgate-{name}.cdx.json", package}
    assert {it.name for it in out.iterdir()} == {*expected, "SHA256SUMS"}, sorted(out.iterdir())
    listed = {it.split()[1] for it in (out / "SHA256SUMS").read_text().splitlines()}
    assert listed == expected, listed
    assert passes("dpkg-deb", "--field", out / package, "Architecture").strip() == architecture
    properties = json.loads((out / f"tollgate-{name}.cdx.json").read_text())["metadata"]["properties"]
    assert {"name": "cargo:target", "value": target} in properties, properties
    notices = passes("tar", "--extract", "--to-stdout", "--file", out / f"tollgate-production-{name}.tar.gz",
                     f"tollgate-production-{name}/THIRD-PARTY.txt")
    assert "Rich Felker" in notices, "a static program contains musl, whose licence must come with it"


def check_configurations(program, scratch):
    """The configurations of the containers load with arbitrary secrets."""
    for file in ("docker/tollgate.toml", "compose/tollgate.toml"):
        names = re.findall(r'env = "(\w+)"', (DEPLOY / file).read_text())
        environment = {name: "a-secret-of-enough-letters-1234567890" for name in names}
        passes(program, "check", "--config", DEPLOY / file, cwd=scratch, env=environment)
    values = (DEPLOY / "helm/tollgate/values.yaml").read_text()
    inside = re.search(r"^config: \|\n((?:  .*\n|\n)+)", values, re.MULTILINE)[1]
    file = scratch / "helm.toml"
    file.write_text(re.sub("^  ", "", inside, flags=re.MULTILINE))
    names = re.findall(r'env = "(\w+)"', inside)
    environment = {name: "a-secret-of-enough-letters-1234567890" for name in names}
    passes(program, "check", "--config", file, cwd=scratch, env=environment)


def stripped(program, scratch):
    """The program without debug information, as it is shipped. It is a tenth of the size."""
    if not shutil.which("strip"):
        return program
    passes("strip", "-o", scratch / program.name, program)
    return scratch / program.name


def main(production, demo, workspace):
    python, *_ = install.python(workspace, "packages.txt")
    check_metrics()
    check_containers(python.parent)
    check_collector(python)
    check_rules(workspace)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        check_chart(python.parent, scratch)
        production, demo = (stripped(it, scratch) for it in (production, demo))
        check_configurations(production, scratch)
        if not shutil.which("dpkg-shlibdeps"):
            return skipped("dpkg-shlibdeps (dpkg-dev)")
        unpacked = check_packing(production, demo, scratch)
        check_other_machine(production, scratch)
        check_service(unpacked)
        check_installed(unpacked)


if __name__ == "__main__":
    main(*(pathlib.Path(it).resolve() for it in sys.argv[1:]))
