"""Runs programs that print the outcome of each of their cells, against a gateway with simulated upstreams."""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from stage import Stage

HERE = Path(__file__).resolve().parent
PROGRAM = Path(os.environ.get("TOLLGATE_BIN", HERE.parent / "target/debug/tollgate")).resolve()
SECONDS_MAX = 240


def main(description: str, configuration, commands) -> int:
    """`commands` takes the folder with the installed SDKs and returns the commands to run. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("workspace", type=Path)
    workspace = parser.parse_args().workspace.resolve()
    workspace.mkdir(parents=True, exist_ok=True)
    passed, failures = 0, []
    commands = commands(workspace)
    with Stage(PROGRAM, "", configuration) as stage:
        for command in commands:
            for cell, reason in outcomes(command, stage.environment):
                if reason is None:
                    passed += 1
                else:
                    failures.append(f"FAILED {cell}: {reason}")
    print(*failures, sep="\n")
    print(f"conformance: {passed} passed, {len(failures)} failed", flush=True)
    return 0 if passed and not failures else 1


def outcomes(command, environment):
    """Each cell with the reason for its failure, or `None`. A program that fails counts as a failed cell."""
    clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    run = subprocess.run(
        command,
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    name = Path(str(command[-1])).name
    if run.returncode or not lines:
        yield name, run.stderr[-500:].strip() or f"status {run.returncode}"
    for line in lines:
        yield f"{name} {line['cell']}", line["reason"]
