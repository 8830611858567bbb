"""graphc under PyTensor: `import graphc.pytensor` makes the mode "GRAPHC" known.

    pytensor.function([x], y, mode="GRAPHC")

In: PyTensor's graphs, as they were written. Out: functions that graphc compiles, cached on disk as its own are.
"""

from importlib.util import find_spec

if find_spec("pytensor") is None:
    raise ImportError(
        "graphc.pytensor needs PyTensor: pip install 'graphc-compiler[pytensor]', or '.[pytensor]' in a checkout"
    )

from graphc.pytensor.linker import NAME, GraphcLinker, compiled, explain, register

__all__ = ["NAME", "GraphcLinker", "compiled", "explain", "register"]

register()
