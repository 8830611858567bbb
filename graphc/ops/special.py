"""Functions of SciPy's, element by element, that kernels call by address.

In: operands of one dtype and one shape. Out: the op of each, whose kernels pass their elements to

    gc_special_<name>_<t>(count, operands…, result) -> status

(codegen/special). Numbers of fewer bits are computed as float64 in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from graphc.ir import sizes
from graphc.ir.lowering import SUFFIXES, Call, Extent, Passed, Result, Whole
from graphc.ir.node import Array, Node, Size
from graphc.ops.custom import custom_op

OPERANDS: Mapping[str, int] = {
    **dict.fromkeys("erfcinv erfinv gamma i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e ndtri y0 y1".split(), 1),
    **dict.fromkeys("betaln gammainc gammaincc gammainccinv gammaincinv iv ive jv kv kve owens_t stdtr yv".split(), 2),
    **dict.fromkeys(("betainc", "betaincinv"), 3),
    "hyp2f1": 4,
}
"""How many operands each function has."""
PREFIX = "special_"
"""What the names of the ops begin with."""
ELEMENT_WORK = 200
"""The additions that an element may take the time of."""


def symbol(name: str, dtype: str) -> str:
    """The function that computes all elements."""
    return f"gc_special_{name}_{SUFFIXES[dtype]}"


def value_of(name: str, arrays: Sequence[Array]) -> Any:
    """What SciPy's function makes of arrays."""
    return getattr(import_module("scipy.special"), name)(*(array.astype("float64") for array in arrays))


def _passed(node: Node) -> list[Passed]:
    return [Extent(sizes.product(node.type.shape)), *map(Whole, node.args), Result()]


def _work(node: Node) -> list[Size]:
    return [*node.type.shape, ELEMENT_WORK]


CALL = Call(lambda node: symbol(node.op.name.removeprefix(PREFIX), node.type.dtype), _passed, _work)


def special_op(name: str, doc: str, vjp: Callable[[Node, Node], Any]) -> Callable[..., Node]:
    """A function of nodes that SciPy's function of that name computes."""

    def compute(*arrays: Array) -> Any:
        return value_of(name, arrays)

    compute.__doc__ = doc
    return custom_op(f"{PREFIX}{name}", compute, vjp=vjp, own=True, call=CALL)
