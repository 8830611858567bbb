"""All workloads by name, in the order of the report, and their builders."""

from __future__ import annotations

from importlib import import_module

from benchmarks.workload import Builder, Workload

FAMILIES = (
    "overhead elementwise training rows attention finance distances hierarchy depth batches products images nets "
    "recurrent series dynamics alignment writes draws factorisations processes"
).split()
BY_FAMILY: dict[str, tuple[Workload, ...]] = {
    family: import_module(f"benchmarks.workloads.{family}").WORKLOADS for family in FAMILIES
}
WORKLOADS = {workload.name: workload for workloads in BY_FAMILY.values() for workload in workloads}


def family(name: str) -> str:
    """The family that a workload belongs to."""
    return next(family for family, workloads in BY_FAMILY.items() if any(name == one.name for one in workloads))


def builder(workload: Workload, kind: str) -> Builder:
    """Who builds the workload; hand-written kernels are imported only where they are asked for."""
    if kind == "numba":
        found: Builder = import_module(f"benchmarks.by_hand.{family(workload.name)}").BUILDERS[workload.name]
        return found
    return workload.builders[kind]


QUICK = tuple(
    "overhead-three elementwise-large-f64 xor-step logistic-step moments-axis0 pairwise-kernel dot-256".split()
)
"""Of `--quick`."""
SIZED = ("graphc", "numpy", "numba", "jax", "torch")
"""Peers whose cost against size is drawn, on this workload:"""
SIZED_WORKLOAD = "elementwise-large-f64"
COMPILED_FIRST = (
    "black-scholes moments-axis1 pairwise-kernel elementwise-large-f64 log-softmax-vjp k-means-step xor-step".split()
)
"""torch-compiled needs half a minute for each: with a budget, these come first."""
TOGETHER = ("memory-chain", "copy")
"""Workloads whose rounds take turns as well: one is compared with the other, and memory has more speeds than one where
other programs use it."""
SMALL = tuple(
    "overhead-scalar overhead-two overhead-three overhead-eight elementwise-small-f32 elementwise-small-f64 xor-step "
    "logistic-step hierarchical-density".split()
)
"""Workloads whose cold start is to be below JAX's."""
LOOPS = tuple(
    "lstm-gradient garch-gradient kalman-gradient lotka-volterra-gradient double-pendulums front-last front-checkpoint "
    "edit-distance ctc-gradient".split()
)
"""Workloads of many steps, which have targets of their own."""
WRITES = tuple(workload.name for workload in BY_FAMILY["writes"])
"""NumPy programs that write into arrays, which have a target of their own."""
NUMBERS = tuple(
    workload.name
    for family in ("images", "nets", "draws", "factorisations", "processes")
    for workload in BY_FAMILY[family]
)
"""Workloads of nets, random numbers, factorisations and order, which have targets of their own."""
SMALL_STATES = tuple("garch-gradient kalman-gradient lotka-volterra-gradient edit-distance ctc-gradient".split())
"""Those whose steps are short."""
LIMITED = tuple(name for name in LOOPS if name not in ("lstm-gradient", "front-last", "front-checkpoint"))
"""Those that are held to loops by hand."""
