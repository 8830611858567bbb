"""Functions of a program, with their derivatives, compiled for SciPy's algorithms.

    what = Wanted("minimize", fun, order=1)
    kernel = OBJECTIVES(what, {"w": w, "b": 0.5}, (x, y))     value and gradient of fun({"w": w, "b": 0.5}, x, y)
    kernel.first                                              the results at this place
    kernel([b, w], [value, slope_b, slope_w])                 results at another, written into arrays

In: a function, a tree of parameters, further arguments. Out: one compiled function of all that is wanted, so that what
value, derivatives and constraints have in common is computed once. It is traced once for a search, or once at all where
nothing that the function reaches changes; arrays that it takes from around it are arguments of what is compiled, and
so are sizes: other data compile nothing (`tracing/plain_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphc.tensor as T
from graphc.arrays.values import Array
from graphc.autodiff import grad, jacobian, jvp
from graphc.control.loop import title
from graphc.errors import GraphcError, GraphTypeError, RankError, ShapeError
from graphc.ir.node import Node
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.optimize.equations import number, vector
from graphc.startup.record import record
from graphc.tracing.derivatives import columns_by
from graphc.tracing.plain_calls import PlainCalls, is_whole, settings_now
from graphc.tracing.programs import nodes_in, run
from graphc.tracing.variants import Variant
from graphc.trees import leaves, like, outline, structure

__all__ = ["COLUMNS", "CURVATURES", "HESSIANS", "OBJECTIVES", "Kernel", "Wanted", "weighed"]


class Wanted(NamedTuple):
    """The functions to compile. by: the name of the search, for messages. fun: the program's. jac: its derivative as
    the program gives it; True where `fun` returns value and gradient; None for the graph's. constraints: functions of
    the parameters alone. order: 0 for values, 1 for derivatives too."""

    by: str
    fun: Callable[..., Any]
    jac: Any = None
    constraints: tuple[Callable[..., Any], ...] = ()
    order: int = 1


@record(eq=False)
class Kernel:
    """A compiled function. first: its results at the guess. rest: the leaves of the arguments that stay.
    call: takes all leaves, and `out`."""

    call: Callable[..., Any]
    rest: Sequence[Any]
    first: Sequence[Any]

    def __call__(self, parts: Sequence[Any], out: Sequence[Array]) -> None:
        self.call(*parts, *self.rest, out=tuple(out))


class Kernels(PlainCalls):
    """The kernels of one function of tensors, `build(what, x, *args)`."""

    def __init__(self, build: Callable[..., Any]) -> None:
        super().__init__(build)

    def __call__(self, what: Wanted, *args: Any, trees: int = 1) -> Any:
        """Return the kernel; None where the program's function takes tensors from around it, so that its results are a
        graph. trees: how many of `args`, from the first on, another call of the kernel is given anew."""
        fixed = [(each, self.is_static("args", each)) for each in args]
        static = (True, *(known for _, known in fixed))
        whole = (True, *(known or (place > 0 and is_whole(each)) for place, (each, known) in enumerate(fixed)))
        call = len(args) + 1, (), settings_now()
        values = [tuple(what), *args]
        try:
            return self.kernel(*self.chosen(call, static, values), trees)
        except GraphcError:
            if whole == static:
                raise
        return self.kernel(*self.chosen(call, whole, values), trees)

    def kernel(self, function: Any, given: Sequence[Any], trees: int) -> Kernel | None:
        """Compile for arguments, and call it once."""
        made = function(*given)
        variant, left, _ = function.find(tuple(given), {})
        if type(variant) is not Variant:
            return None
        count = len(leaves(list(given[1 : trees + 1])))
        return Kernel(variant.call, tuple(left)[count:], [*map(np.asarray, leaves(made))])


# --- what is built ----------------------------------------------------------------------------------------------------


def _floats(by: str, fun: Any, made: Any) -> Node:
    return cast(vector(by, fun, made), "float64")


def weighed(by: str, fun: Callable[..., Any]) -> Callable[..., Node]:
    """Return the function of parameters and weights whose value is the sum of what `fun` returns times the weights."""

    def call(x: Any, weight: Any) -> Node:
        found: Node = T.sum(vector(by, fun, fun(x)) * weight)
        return found

    return call


def _slopes(what: Wanted, value: Node, given: Any, x: Any, args: Sequence[Any]) -> list[Node]:
    """Return the gradient by each leaf. given: what the program returned as gradient, where `fun` returns it too."""
    targets = [*map(as_node, leaves(x))]
    if what.jac is None:
        return [cast(each, "float64") for each in grad(value, targets, disconnected_inputs="ignore")]
    made = given if what.jac is True else run(what.by, what.jac, [x, *args])
    told = title(what.fun if what.jac is True else what.jac)
    if isinstance(made, list | tuple) and len(targets) == 1:
        made = like(x, [vector(what.by, what.fun, made)])
    if structure(made) != structure(x):
        raise GraphTypeError(f"{what.by}: the gradient of {told} must be like x, {outline(x)}, not {outline(made)}")
    found = nodes_in(what.fun, made)
    for node, target in zip(found, targets, strict=True):
        if node.ndim != target.ndim:
            raise RankError(f"{what.by}: the gradient of {told} has type {node.type} for a parameter {target.type}")
    return [cast(node, "float64") for node in found]


def _value(what: Wanted, x: Any, args: Sequence[Any]) -> tuple[Node, Any]:
    made, slopes = run(what.by, what.fun, [x, *args]), None
    if what.jac is True:
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise GraphTypeError(f"{what.by}: with jac=True, {title(what.fun)} must return a value and its gradient")
        made, slopes = made
    return cast(number(what.by, what.fun, made), "float64"), slopes


def objective(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return the value, its gradient by each leaf of `x`, and each constraint with its Jacobian by each leaf."""
    what = Wanted(*functions)
    value, given = _value(what, x, args)
    values = [_floats(what.by, each, run(what.by, each, [x])) for each in what.constraints]
    if not what.order:
        return value, [], [(each, []) for each in values]
    targets = [*map(as_node, leaves(x))]
    rows = [[cast(row, "float64") for row in jacobian(v, targets, disconnected_inputs="ignore")] for v in values]
    return value, _slopes(what, value, given, x, args), [*zip(values, rows, strict=True)]


def curvature(functions: tuple[Any, ...], x: Any, along: Any, *args: Any) -> Any:
    """Return by each leaf of `x` the product of the second derivatives of `fun` with `along`, a tree like `x`."""
    what = Wanted(*functions)
    targets = [*map(as_node, leaves(x))]
    slopes = _slopes(what, *_value(what, x, args), x, args)
    made = jvp(slopes, targets, [*map(as_node, leaves(along))], disconnected_inputs="ignore")
    return [cast(each, "float64") for each in made], None


def hessian(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return for each leaf of `x` the rows of the second derivatives of `fun` that belong to its elements."""
    what = Wanted(*functions)
    slopes = _slopes(what, *_value(what, x, args), x, args)
    made = []
    for target in map(as_node, leaves(x)):
        blocks = [T.reshape(block, (block.shape[0], -1), ndim=2) for block in columns_by(target, slopes)]
        made.append(blocks[0] if len(blocks) == 1 else T.concatenate(blocks, axis=1))
    return made, None


def columns(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return what `fun` returns as a vector, and for each leaf of `x` the columns of its Jacobian, as rows."""
    what = Wanted(*functions)
    value = _floats(what.by, what.fun, run(what.by, what.fun, [x, *args]))
    if not what.order:
        return value, []
    targets = [*map(as_node, leaves(x))]
    if what.jac is None:
        return value, [cast(columns_by(target, [value])[0], "float64") for target in targets]
    made = as_node(run(what.by, what.jac, [x, *args]))
    if made.ndim != 2 or len(targets) > 1:
        raise ShapeError(f"{what.by}: jac must return a matrix, for x of one array, not an array of type {made.type}")
    return value, [T.transpose(cast(made, "float64"))]


OBJECTIVES, CURVATURES, HESSIANS, COLUMNS = map(Kernels, (objective, curvature, hessian, columns))
