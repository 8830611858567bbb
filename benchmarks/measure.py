"""The process that measures one workload with one peer.

In: `python -m benchmarks.measure MODULE PEER WORKLOAD SECONDS CHECK SPAWNED [SIZE...]`: the module that the peer
imports, the seconds to spend on calls, 1 to check the answers, and the monotonic clock when the process was started.
Out: one line of JSON on standard output: the figures of `sampling.py`, `import` (seconds to import the library, NumPy
included) and `process` (from the start of the process to the first result, without the making of the inputs).
"""

from __future__ import annotations

import sys
from importlib import import_module
from time import monotonic

if __name__ == "__main__":
    module, peer, workload, seconds, check, spawned, *size = sys.argv[1:]
    started = monotonic()
    import_module(module)  # before anything else, so that the import is measured whole
    imported = monotonic()
    json, sampling = import_module("json"), import_module("benchmarks.sampling")
    found = sampling.sample(peer, workload, float(seconds), check == "1", tuple(map(int, size)) or None)
    process = imported - float(spawned) + found["first"]
    print(json.dumps({**found, "import": imported - started, "process": process}))
