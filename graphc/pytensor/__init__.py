"""graphc under PyTensor: `import graphc.pytensor` makes the mode "GRAPHC" known.

    pytensor.function([x], y, mode="GRAPHC")

In: PyTensor's graphs, as they were written. Out: functions that graphc compiles, cached on disk as its own are.
"""

from graphc.pytensor import loops  # a row of the table
from graphc.pytensor.linker import NAME, GraphcLinker, compiled, register

__all__ = ["NAME", "GraphcLinker", "compiled", "loops", "register"]

register()
