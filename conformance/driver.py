"""A process that runs the cells of one SDK, and its results."""

import json
import os
import subprocess
import tempfile
import time

from grid import Outcome

# Much longer than needed, for busy machines.
DRIVER_SECONDS_MAX = 600


class Driver:
    """Starts when created, and runs until all results are reported or it is stopped."""

    def __init__(self, language, command, dialects, upstreams, environment):
        self.language = language
        self.dialects = dialects
        self.upstreams = upstreams
        self.deadline = time.monotonic() + DRIVER_SECONDS_MAX
        # Files instead of pipes, because nobody reads while other drivers are awaited.
        self.output, self.complaints = (tempfile.TemporaryFile("w+") for _ in range(2))
        # The driver must call the gateway directly, so proxy variables are removed.
        clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        self.process = subprocess.Popen(
            [*command, *dialects, ",".join(upstreams)],
            env={**clean, **environment},
            stdout=self.output,
            stderr=self.complaints,
        )

    def outcomes(self, cells) -> list[Outcome]:
        """The reported results. If the driver did not report a cell, that cell has failed."""
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
        """Waits for the process to end and returns how it ended."""
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
