#!/usr/bin/env python3
"""Starts a gateway that was built without the simulator, and checks that it serves: `production.py PROGRAM`."""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

SECONDS_MAX = 30
CONFIGURATION = """
[server]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[store]
url = "sqlite:tollgate.db"
disk_floor_bytes = 0
[timeouts]
shutdown_notice_ms = 0
[[channel]]
name = "main"
preset = "sim"
base_url = "http://127.0.0.1:9/v1"
[[model]]
id = "sim/chat"
kind = "text"
routes = [{ channel = "main", model = "sim-chat" }]
price = { input = "1", output = "2" }
"""


def check_commands(program):
    """The help does not list `demo` and `sim`. Both explain why they are missing."""
    listed = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=SECONDS_MAX).stdout
    for command in ("demo", "sim"):
        assert f"\n  {command} " not in listed, f"the help lists `{command}`"
        told = subprocess.run(
            [program, command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=SECONDS_MAX
        )
        assert told.returncode != 0 and "no simulator" in told.stderr, told


def check_service(program, folder):
    """The gateway starts on a configuration file, answers health checks, and ends on SIGTERM."""
    (pathlib.Path(folder) / "tollgate.toml").write_text(CONFIGURATION)
    with subprocess.Popen([program, "serve"], cwd=folder, stderr=subprocess.PIPE, text=True) as gateway:
        try:
            lines = (line for line in gateway.stderr if '"serving"' in line)
            address = json.loads(next(lines))["admin"]
            for path in ("/healthz", "/readyz"):
                with urllib.request.urlopen(f"http://{address}{path}", timeout=SECONDS_MAX) as answer:
                    assert answer.status == 200, f"{path}: {answer.status}"
        finally:
            gateway.terminate()
    assert gateway.returncode == 0, f"the gateway ended with {gateway.returncode}"


def main(program):
    check_commands(program)
    with tempfile.TemporaryDirectory(prefix="tollgate-production-") as folder:
        check_service(program, folder)


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))
