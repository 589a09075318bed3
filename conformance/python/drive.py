"""Runs the cells of the dialects named on the command line, against every upstream.

Each outcome is a line of JSON. A dialect is a module with a function for each cell of `talk.json`,
which takes the name of an upstream. Some cells need an upstream of another dialect; those of
`OWN` need one of the same.
"""

import importlib
import json
import signal
import sys
import traceback
from pathlib import Path

from talk import TALK

CELL_SECONDS_MAX = 30
FOLDER = Path(__file__).parent


def main():
    *dialects, upstreams = sys.argv[1:]
    upstreams = upstreams.split(",")
    signal.signal(signal.SIGALRM, too_late)
    for dialect in dialects:
        module = importlib.import_module(dialect)
        for upstream in upstreams:
            converted = TALK["cells_converted"] if upstream != dialect else []
            for cell in TALK["cells"] + converted:
                tell(dialect, upstream, cell, getattr(module, cell, missing))
        for cell in getattr(module, "OWN", []):
            tell(dialect, dialect, cell.__name__, cell)


def tell(dialect, upstream, cell, run):
    outcome = {"dialect": dialect, "upstream": upstream, "cell": cell, "reason": reason(run, upstream)}
    print(json.dumps(outcome), flush=True)


def reason(run, upstream):
    """Why a cell failed; nothing when it passed."""
    signal.alarm(CELL_SECONDS_MAX)
    try:
        run(upstream)
    except Exception as error:
        return f"{type(error).__name__}: {error} [{place(error)}]"
    finally:
        signal.alarm(0)


def place(error):
    """The last line of ours that led to an error."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).parent == FOLDER and Path(frame.filename).name != "talk.py":
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "drive.py"


def too_late(*_):
    raise TimeoutError(f"no outcome in {CELL_SECONDS_MAX} s")


def missing(_upstream):
    raise NotImplementedError("this dialect has no such cell")


if __name__ == "__main__":
    main()
