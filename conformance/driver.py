"""A process that runs the cells of one SDK, and what it tells."""

import json
import os
import subprocess
import tempfile
import time

from grid import Outcome

# Far above what it takes, for machines that are busy with other things.
DRIVER_SECONDS_MAX = 600


class Driver:
    """Runs from its making until it has told everything, or is stopped."""

    def __init__(self, language, command, dialects, upstreams, environment):
        self.language = language
        self.dialects = dialects
        self.upstreams = upstreams
        self.deadline = time.monotonic() + DRIVER_SECONDS_MAX
        # Files, since nobody reads while others are waited for.
        self.output, self.complaints = (tempfile.TemporaryFile("w+") for _ in range(2))
        # Only what a driver is told may reach the gateway, not a proxy of the surroundings.
        clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        self.process = subprocess.Popen(
            [*command, *dialects, ",".join(upstreams)],
            env={**clean, **environment},
            stdout=self.output,
            stderr=self.complaints,
        )

    def outcomes(self, cells) -> list[Outcome]:
        """What the driver tells; one of the cells of a pair that it does not tell of has failed."""
        end = self.ended()
        lines = written(self.output).splitlines()
        told = [Outcome(self.language, **json.loads(line)) for line in lines if line.endswith("}")]
        known = {(one.dialect, one.upstream, one.cell) for one in told}
        lost = [
            Outcome(self.language, dialect, upstream, cell, f"not told of: {end}")
            for dialect in self.dialects
            for upstream in self.upstreams
            for cell in cells(dialect, upstream)
            if (dialect, upstream, cell) not in known
        ]
        return told + lost

    def ended(self) -> str:
        """Waits for the end of the process, and says how it was."""
        try:
            status = self.process.wait(timeout=max(0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop()
            return f"no end in {DRIVER_SECONDS_MAX} s"
        return written(self.complaints)[-500:].strip() or f"it ended with {status}"

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def written(file) -> str:
    file.seek(0)
    return file.read()
