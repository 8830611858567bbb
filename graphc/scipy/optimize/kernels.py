"""Functions of a program, with their derivatives, compiled for SciPy's algorithms.

    what = KernelRequest("minimize", fun, order=1)
    kernel = OBJECTIVES(what, {"w": w, "b": 0.5}, (x, y))     value and gradient of fun({"w": w, "b": 0.5}, x, y)
    kernel.first                                              the results at this place
    kernel([b, w], [value, slope_b, slope_w])                 results at another, written into arrays
    objective = Objective(packing, kernel, order=1)
    objective.value(x), objective.slope(x)                    the kernel runs once for both

In: a function, a tree of parameters, further arguments. Out: one compiled function of all that is wanted, so that what
value, derivatives and constraints have in common is computed once. It is traced once for all functions of the same code
which take arrays and floats from around them, and else only what never changes (`tracing/identity.py`): the arrays are
arguments of what is compiled, so that other data trace nothing and compile nothing. A function that asks for a value of
such an array, that does more than sums with it without a parameter, or that reaches an object which may change, is
traced at each search (`tracing/plain_calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import graphc.tensor as T
from graphc.arrays.dtypes import Array
from graphc.autodiff import grad, jacobian, jvp
from graphc.control.loop import title
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir.lowering import Scalar, View
from graphc.ir.node import INPUT, LEAVES, Node
from graphc.ir.walk import nodes_of
from graphc.ops.elementwise import as_node, cast
from graphc.scipy.optimize.equations import number, vector
from graphc.scipy.optimize.parameters import Packing
from graphc.startup.record import record
from graphc.tracing.arguments import Settings, Static
from graphc.tracing.by_text import make_room, settings_now
from graphc.tracing.derivatives import columns_by
from graphc.tracing.identity import Closed, Given, closed
from graphc.tracing.plain_calls import PlainCalls, is_whole
from graphc.tracing.programs import nodes_in, run
from graphc.tracing.traced import Jitted
from graphc.tracing.variants import Variant
from graphc.trees import leaves, like, outline, structure


class KernelRequest(NamedTuple):
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

    def array(self, parts: Sequence[Any], *shape: int) -> Array:
        """Return the one result at a place, an array of this shape."""
        found = np.empty(shape)
        self(parts, [found.reshape(-1)])
        return found


class Kernels(PlainCalls):
    """The kernels of one function of tensors, `build(what, x, *args)`.

    opening: those of functions whose arrays and floats are arguments, by the keys of the functions. first: the floats
    of a key when it was first seen; those that have changed since are arguments too. refused: keys of functions that
    ask for the values of their arrays.
    """

    def __init__(self, build: Callable[..., Any]) -> None:
        super().__init__(build)
        self.opening: dict[Hashable, Opening] = {}
        self.first: dict[Hashable, tuple[list[str], set[int]]] = {}
        self.refused: dict[Hashable, None] = {}

    def __call__(self, what: KernelRequest, *args: Any, trees: int = 1) -> Any:
        """Return the kernel; None where the program's function takes tensors from around it, so that its results are a
        graph. trees: how many of `args`, from the first on, another call of the kernel is given anew."""
        static = tuple([self.is_static("args", each) for each in args])
        whole = tuple([fixed or (place > 0 and is_whole(args[place])) for place, fixed in enumerate(static)])
        found = closed((tuple(what), tuple([each for each, fixed in zip(args, static, strict=True) if fixed])))
        if found is not None and (found.key, static) not in self.refused:
            try:
                return self.kernel(self.opened(found, static), self.given(found, args, static), trees)
            except Exception:  # which is raised again below, if it is not for an array that was a tensor
                make_room(self.refused)
                self.refused[found.key, static] = None
        call, values = (len(args) + 1, (), settings_now()), [tuple(what), *args]
        try:
            return self.kernel(*self.chosen(call, (True, *static), values), trees)
        except GraphcError:
            if whole == static:
                raise
        return self.kernel(*self.chosen(call, (True, *whole), values), trees)

    def varying(self, found: Closed) -> list[int]:
        """Return the places of the floats that have had other values before."""
        told = [repr(each) for each in found.numbers]
        make_room(self.first)
        first, varying = self.first.setdefault(found.key, (told, set()))
        varying.update(place for place, text in enumerate(told) if text != first[place])
        return sorted(varying)

    def given(self, found: Closed, args: Sequence[Any], static: Sequence[bool]) -> list[Any]:
        """Return what a kernel is given: the arguments, and what the functions take from around them."""
        own = [found.arrays, [found.numbers[place] for place in self.varying(found)]]
        return [*(each for each, fixed in zip(args, static, strict=True) if not fixed), own]

    def opened(self, found: Closed, static: tuple[bool, ...]) -> Opening:
        """Return what is compiled for functions of a key."""
        varying = self.varying(found)
        kept = [None if place in varying else number for place, number in enumerate(found.numbers)]
        key = found.key, static, tuple(map(repr, kept)), settings_now()
        if key not in self.opening:
            make_room(self.opening)
            self.opening[key] = Opening(self.function, found.make, static, kept)
        return self.opening[key]

    def kernel(self, function: Any, given: Sequence[Any], trees: int) -> Kernel | None:
        """Compile for arguments, and call it once."""
        made = function(*given)
        variant, left, _ = function.find(tuple(given), {})
        if type(variant) is not Variant:
            return None
        begin = 0 if isinstance(function, Opening) else 1
        count = len(leaves(list(given[begin : begin + trees])))
        return Kernel(variant.call, tuple(left)[count:], [*map(np.asarray, leaves(made))])


class Opening(Jitted[..., Any]):
    """A function of tensors whose arguments are those of `build` that are not static, and last the arrays and floats
    that the program's functions take from around them. kept: the floats that are no arguments, None for the others."""

    def __init__(
        self, build: Callable[..., Any], make: Callable[..., Any], static: Sequence[bool], kept: Sequence[Any]
    ) -> None:
        self.around = 0

        def opened(x: Any, *others: Any) -> Any:
            *rest, (arrays, numbers) = others
            self.around = len(arrays) + len(numbers)
            left, varying = iter([x, *rest]), iter(numbers)
            functions, known = make(Given(arrays, [next(varying) if each is None else each for each in kept], {}))
            fixed = iter(known)
            return build(functions, *(next(fixed if is_fixed else left) for is_fixed in static))

        opened.__name__ = build.__name__
        super().__init__(opened, opened, Static(), Settings(), build.__name__)

    def compiled(self, made: Any, results: list[Node], variables: list[Node], donated: list[bool]) -> Any:
        check_work(results, variables[len(variables) - self.around :])
        return super().compiled(made, results, variables, donated)


CHEAP = 4.0
"""The most that an element may cost (`Op.cost`) which is computed again at each place of a search."""


def check_work(results: Sequence[Node], around: Sequence[Node]) -> None:
    """Raise GraphTypeError where what is computed of arrays from around a function alone is more than a view or a sum:
    NumPy computes it once for a search, where the arrays are no tensors."""
    fixed = set(around)
    for node in nodes_of(results):
        if node.op in LEAVES or not fixed.intersection(node.args):
            continue
        if all(arg in fixed or (arg.op in LEAVES and arg.op is not INPUT) for arg in node.args):
            large = any(arg.ndim for arg in node.args)
            if large and (node.op.cost > CHEAP or not isinstance(node.op.lower(node), Scalar | View)):
                raise GraphTypeError(f"{node.op.name} of arrays from around a function")
            fixed.add(node)


# --- what is built ----------------------------------------------------------------------------------------------------


def _floats(by: str, fun: Any, made: Any) -> Node:
    return cast(vector(by, fun, made), "float64")


def weighed(by: str, fun: Callable[..., Any]) -> Callable[..., Node]:
    """Return the function of parameters and weights whose value is the sum of what `fun` returns times the weights."""

    def call(x: Any, weight: Any) -> Node:
        return T.sum(vector(by, fun, fun(x)) * weight)

    return call


def _slopes(what: KernelRequest, value: Node, given: Any, x: Any, args: Sequence[Any]) -> list[Node]:
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


def _value(what: KernelRequest, x: Any, args: Sequence[Any]) -> tuple[Node, Any]:
    made, slopes = run(what.by, what.fun, [x, *args]), None
    if what.jac is True:
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise GraphTypeError(f"{what.by}: with jac=True, {title(what.fun)} must return a value and its gradient")
        made, slopes = made
    return cast(number(what.by, what.fun, made), "float64"), slopes


def objective(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return the value, its gradient by each leaf of `x`, and each constraint with its Jacobian by each leaf."""
    what = KernelRequest(*functions)
    value, given = _value(what, x, args)
    values = [_floats(what.by, each, run(what.by, each, [x])) for each in what.constraints]
    if not what.order:
        return value, [], [(each, []) for each in values]
    targets = [*map(as_node, leaves(x))]
    rows = [[cast(row, "float64") for row in jacobian(v, targets, disconnected_inputs="ignore")] for v in values]
    return value, _slopes(what, value, given, x, args), [*zip(values, rows, strict=True)]


def curvature(functions: tuple[Any, ...], x: Any, along: Any, *args: Any) -> Any:
    """Return by each leaf of `x` the product of the second derivatives of `fun` with `along`, a tree like `x`."""
    what = KernelRequest(*functions)
    targets = [*map(as_node, leaves(x))]
    slopes = _slopes(what, *_value(what, x, args), x, args)
    made = jvp(slopes, targets, [*map(as_node, leaves(along))], disconnected_inputs="ignore")
    return [cast(each, "float64") for each in made], None


def hessian(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return for each leaf of `x` the rows of the second derivatives of `fun` that belong to its elements."""
    what = KernelRequest(*functions)
    slopes = _slopes(what, *_value(what, x, args), x, args)
    made = []
    for columns in columns_by([*map(as_node, leaves(x))], slopes):
        blocks = [T.reshape(block, (block.shape[0], -1), ndim=2) for block in columns]
        made.append(blocks[0] if len(blocks) == 1 else T.concatenate(blocks, axis=1))
    return made, None


def columns(functions: tuple[Any, ...], x: Any, *args: Any) -> Any:
    """Return what `fun` returns as a vector, and for each leaf of `x` the columns of its Jacobian, as rows."""
    what = KernelRequest(*functions)
    value = _floats(what.by, what.fun, run(what.by, what.fun, [x, *args]))
    if not what.order:
        return value, []
    targets = [*map(as_node, leaves(x))]
    if what.jac is None:
        return value, [cast(by[0], "float64") for by in columns_by(targets, [value])]
    made = as_node(run(what.by, what.jac, [x, *args]))
    if made.ndim != 2 or len(targets) > 1:
        raise ShapeError(f"{what.by}: jac must return a matrix, for x of one array, not an array of type {made.type}")
    return value, [T.transpose(cast(made, "float64"))]


OBJECTIVES, CURVATURES, HESSIANS, COLUMNS = map(Kernels, (objective, curvature, hessian, columns))


# --- functions for SciPy ----------------------------------------------------------------------------------------------
# The last place is remembered, and a call copies one vector in and one out: it makes no trees.


Watch = Callable[[Any], None] | None


class Objective:
    """The value, gradient and constraints of an objective. number: the value at the last place; gradient: new memory
    at each, for SciPy keeps it. The kernel reads and writes arrays that are made once."""

    def __init__(self, packing: Packing, kernel: Kernel, order: int) -> None:
        self.order = order
        count = len(packing.spans) if order else 0
        self.sizes = [each.shape[0] for each in kernel.first[1 + count :: 1 + count]]
        self.results = np.empty(1 + packing.size if order else 1)
        self.values = [np.empty(size) for size in self.sizes]
        self.rows = [[np.empty((size, *shape)) for shape in packing.shapes[:count]] for size in self.sizes]
        out = [self.results[:1].reshape(()), *(packing.receivers(self.results[1:]) if order else [])]
        for value, rows in zip(self.values, self.rows, strict=True):
            out += [value, *rows]
        for array, first in zip(out, kernel.first, strict=True):
            array[...] = first
        self.place = packing.start.copy()
        self.parts = packing.views(self.place)
        views = zip(self.parts, packing.receivers(self.place), strict=True)
        self.converted = [(part, view) for part, view in views if part.dtype != view.dtype]
        self.run = partial(kernel.call, *self.parts, *kernel.rest, out=tuple(out))
        self.key = packing.start.tobytes()
        self.number, self.gradient = float(self.results[0]), self.results[1:].copy()
        check_start(packing, np.asarray(self.number), self.gradient if order else None)

    def at(self, x: Array) -> None:
        """Compute all at a place, where that is not the last one."""
        key = x.tobytes()
        if key != self.key:
            self.place[...] = x
            for part, view in self.converted:
                part[...] = view
            self.key = b""  # until all is there: the kernel may raise
            self.run()
            self.key, self.number, self.gradient = key, float(self.results[0]), self.results[1:].copy()

    def value(self, x: Array) -> float:
        """Return the value."""
        self.at(x)
        return self.number

    def slope(self, x: Array) -> Array:
        """Return the gradient."""
        self.at(x)
        return self.gradient

    def constraint(self, place: int) -> Callable[[Array], Array]:
        """Return the function of a constraint."""

        def call(x: Array) -> Array:
            self.at(x)
            return self.values[place].copy()

        return call

    def jacobian(self, place: int) -> Callable[[Array], Array]:
        """Return the Jacobian of a constraint, as a function."""

        def call(x: Array) -> Array:
            self.at(x)
            return np.concatenate([part.reshape(part.shape[0], -1) for part in self.rows[place]], axis=1)

        return call


class Residuals:
    """A function from a vector to a vector, and its Jacobian. What is handed out is not kept: SciPy writes into it.
    watch: called with each new half of the sum of squares."""

    def __init__(self, packing: Packing, kernel: Kernel, order: int, watch: Watch = None) -> None:
        self.packing, self.kernel, self.order, self.watch = packing, kernel, order, watch
        self.size = kernel.first[0].shape[0]
        for array, value in zip(self._receive(), kernel.first, strict=True):
            array[...] = value
        self.key = packing.start.tobytes()
        check_start(packing, self.found, None)

    def _receive(self) -> list[Array]:
        self.found = np.empty(self.size)
        if not self.order:
            return [self.found]
        self.columns = np.empty((self.packing.size, self.size))
        parts = zip(self.packing.spans, self.packing.shapes, strict=True)
        return [self.found, *(self.columns[span] for span, _ in parts)]

    def at(self, x: Array) -> None:
        """Compute all at a place, where that is not the last one."""
        if x.tobytes() != self.key:
            self.kernel(self.packing.views(x), self._receive())
            self.key = x.tobytes()
            if self.watch is not None:
                self.watch(self.found @ self.found / 2)

    def value(self, x: Array) -> Array:
        """Return the value."""
        self.at(x)
        return self.found.copy()

    def jacobian(self, x: Array) -> Array:
        """Return the matrix of derivatives."""
        self.at(x)
        self.key = b""
        return self.columns.T


def check_start(packing: Packing, value: Array, gradient: Array | None) -> None:
    """Raise GraphValueError where a search would begin with NaN."""
    if np.isnan(value).any():
        place = f" at place {np.flatnonzero(np.isnan(value))[0]}" if value.ndim else ""
        raise GraphValueError(f"{packing.by}: the function is NaN{place} at x0")
    if gradient is not None and np.isnan(gradient).any():
        found = zip(packing.names, packing.spans, strict=True)
        name = next(name for name, span in found if np.isnan(gradient[span]).any())
        raise GraphValueError(f"{packing.by}: the gradient by {name} is NaN at x0")
