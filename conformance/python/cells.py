"""Runs cells one after the other and prints each outcome as a line of JSON."""

import json


def run(cells):
    for cell in cells:
        reason = None
        try:
            cell()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        print(json.dumps({"cell": cell.__name__, "reason": reason}), flush=True)
