"""Runs the server of llama.cpp on a free port. Arguments: the model's file, and "text" or "vectors"."""

import json
import signal
import sys

import xllamacpp

# One for each stream of an engine that is killed: five client dialects times three upstream dialects.
SLOTS = 15
# Long enough that no stream ends before the engine is killed.
SLOT_TOKENS = 65536


def main():
    model, kind = sys.argv[1:]
    # llama.cpp fails an assertion when it pools vectors over several slots.
    slots = 1 if kind == "vectors" else SLOTS
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = SLOT_TOKENS * slots
    # A stream occupies a thread; two more answer requests for metrics.
    params.n_threads_http = SLOTS + 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = params.endpoint_slots = True
    # The model is so small that measuring the memory and warming up are not worth the time.
    params.fit_params = params.warmup = False
    if kind == "vectors":
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
