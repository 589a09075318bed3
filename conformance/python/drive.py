"""Runs the cells of the dialects named on the command line, against every upstream.

Each outcome is a line of JSON. A dialect is a module with a function for each cell of `prompts.json`,
which takes the name of an upstream. Some cells need an upstream of another dialect; the cells in
`SAME_DIALECT_CELLS` need one of the same dialect. Cells run one after the other, or all at once if `prompts.json`
says so.
"""

import importlib
import json
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shared import PROMPTS

CELL_SECONDS_MAX = 90
FOLDER = Path(__file__).parent


def main():
    *dialects, upstreams = sys.argv[1:]
    wanted = [run for dialect in dialects for run in runs(dialect, upstreams.split(","))]
    if PROMPTS["at_once"]:
        with ThreadPoolExecutor(len(wanted)) as threads:
            for run in wanted:
                threads.submit(tell, *run)
        return
    signal.signal(signal.SIGALRM, too_late)
    for run in wanted:
        signal.alarm(CELL_SECONDS_MAX)
        tell(*run)
        signal.alarm(0)


def runs(dialect, upstreams):
    """The cells of a dialect, each with its upstream, its name and its function."""
    module = importlib.import_module(dialect)
    for upstream in upstreams:
        converted = PROMPTS["cells_converted"] if upstream != dialect else []
        left_out = PROMPTS["cells_left_out"].get(f"{dialect} to {upstream}", [])
        for cell in PROMPTS["cells"] + converted:
            if cell not in left_out:
                yield dialect, upstream, cell, getattr(module, cell, missing)
    for cell in getattr(module, "SAME_DIALECT_CELLS", []) if PROMPTS["same_dialect_cells"] else []:
        yield dialect, dialect, cell.__name__, cell


def tell(dialect, upstream, cell, run):
    outcome = {"dialect": dialect, "upstream": upstream, "cell": cell, "reason": reason(run, upstream)}
    # One write, so that lines of threads do not mix.
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()


def reason(run, upstream):
    """The reason why a cell failed, or nothing if it passed."""
    try:
        run(upstream)
    except Exception as error:
        return f"{type(error).__name__}: {error} [{place(error)}]"


def place(error):
    """The last line of our own code in a traceback, outside of `shared.py`."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).parent == FOLDER and Path(frame.filename).name != "shared.py":
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "drive.py"


def too_late(*_):
    raise TimeoutError(f"no outcome in {CELL_SECONDS_MAX} s")


def missing(_upstream):
    raise NotImplementedError("this dialect has no such cell")


if __name__ == "__main__":
    main()
