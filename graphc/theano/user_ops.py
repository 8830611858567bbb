"""Ops of the user in Theano's form: a class with `make_node` and `perform`, and where wanted `grad` and `R_op`.

In: a subclass of `Op`, applied to tensors. Out: `Apply`, whose outputs are nodes of the graph. The values are what
`perform` computes, called back from compiled code; their derivatives are what `grad` (or `L_op`) and `R_op` say
(ops/derivative.py). Sizes of results that follow from nothing else are found by carrying `perform` out before.
"""

from __future__ import annotations

from _thread import _local as local  # what threading calls so, without the rest of it
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from graphc.arrays.dtypes import is_float, read_only
from graphc.autodiff import pulled_back
from graphc.errors import GradientError, GraphcError, GraphTypeError, ShapeError
from graphc.ir import sizes
from graphc.ir.call_errors import explain_all
from graphc.ir.node import (
    INPUT,
    Array,
    Attributes,
    Node,
    Op as Definition,
    Size,
    Type,
    describe,
    make,
    next_serial,
    variable,
)
from graphc.ir.walk import as_size_node, substitute
from graphc.ops.custom import DIRECTION, PYTHON, Absent, DisconnectedType, fingerprint
from graphc.ops.derivative import Rule, overridden
from graphc.ops.elementwise import as_node, cast
from graphc.ops.identity import named
from graphc.ops.shape import reshape
from graphc.tensor.variables import TensorVariable
from graphc.theano.flags import get_debug_values, get_test_value
from graphc.theano.owners import Apply

# What users write -----------------------------------------------------------------------------------------------------


class MissingGradError(GradientError, AttributeError):
    """An op of the user has no derivative. Theano raises AttributeError, which programs catch that look for one."""


class MethodNotDefined(GraphcError, NotImplementedError):
    """An op of the user's has not this method (Theano's name)."""


def not_computed(op: Op, method: str, node: Apply) -> MethodNotDefined:
    """The error for an op that has no Python code to compute its results with, or C code alone."""
    only = ", only c_code, and graphc compiles no C" if hasattr(op, "c_code") else ""
    where, inputs = node.outputs[0].where, ", ".join(map(describe, node.inputs)) or "nothing"
    return MethodNotDefined(
        f"op {op}{f' ({where})' if where else ''} of {inputs} has no {method}{only}; write {method} with NumPy, "
        "or make an op of a function that numba compiles: graphc.op(native=True)"
    )


class Op:
    """The base of a user's ops. A subclass has

    make_node(*inputs): an `Apply(self, inputs, outputs)`, whose outputs are variables of the types of the results, as
    `x.type()` or `T.dvector()` make them; not needed where `itypes` and `otypes` list these.
    perform(node, inputs, output_storage): puts the array of result k into `output_storage[k][0]`. The inputs are
    read-only arrays, but for those of `destroy_map`, which are copies.
    infer_shape(node, input_shapes), optional: the sizes of each result. Without it, where the types leave sizes open,
    they are those of what `perform` makes, which is then carried out ahead.
    grad(inputs, output_grads), or L_op(inputs, outputs, output_grads), optional: the cotangent of each input.
    R_op(inputs, eval_points), optional: the tangent of each output. Where there is only one of it and `grad`, the other
    follows.
    connection_pattern(node), optional: for each input, for each output, whether this depends on that.

    Two ops are equal where their class and the attributes that `__props__` names are; without it, where they are one.
    Calling the op raises GraphTypeError where it has neither `make_node` nor `itypes` and `otypes`.

        >>> class Double(Op):
        ...     __props__ = ()
        ...     def make_node(self, x):
        ...         return Apply(self, [x], [x.type()])
        ...     def perform(self, node, inputs, output_storage):
        ...         output_storage[0][0] = 2 * inputs[0]
        ...     def grad(self, inputs, output_grads):
        ...         return [2 * output_grads[0]]
    """

    itypes: Sequence[Any] | None = None
    otypes: Sequence[Any] | None = None
    default_output: int | None = None
    view_map: dict[int, list[int]] = {}  # noqa: RUF012 - Theano's way to say so
    destroy_map: dict[int, list[int]] = {}  # noqa: RUF012

    def make_node(self, *inputs: Any) -> Apply:
        """The op applied to inputs of its `itypes`."""
        if self.itypes is None or self.otypes is None:
            raise GraphTypeError(f"op {self} has neither make_node nor itypes and otypes")
        nodes = [as_node(value) for value in inputs]
        if len(nodes) != len(self.itypes):
            raise GraphTypeError(f"op {self} takes {len(self.itypes)} inputs; got {len(nodes)}")
        for node, kind in zip(nodes, self.itypes, strict=True):
            wanted = kind().type
            if (node.type.dtype, node.broadcastable) != (wanted.dtype, wanted.broadcastable):
                raise GraphTypeError(f"op {self} takes {wanted} here, not {describe(node)} of type {node.type}")
        return Apply(self, nodes, [kind() for kind in self.otypes])

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """The results for these inputs: one, or a list."""
        several = kwargs.pop("return_list", False)
        name = kwargs.pop("name", None)
        node = self.make_node(*inputs, **kwargs)
        if name is not None and len(node.outputs) == 1:
            node.outputs[0].name = name
        if self.default_output is not None and not several:
            return node.outputs[self.default_output]
        return node.outputs[0] if len(node.outputs) == 1 and not several else list(node.outputs)

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """Compute the results; subclasses say how."""
        raise not_computed(self, "perform", node)

    def L_op(self, inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]) -> Sequence[Any]:  # noqa: N802 - Theano's name
        """The cotangents of the inputs: what `grad` says, or the transpose of `R_op`."""
        grad = getattr(self, "grad", None)
        if grad is None and type(self).R_op is not Op.R_op:
            return _transposed(self, inputs, output_grads)
        if grad is None:
            raise MissingGradError(f"op {self} has no derivative: it has neither grad nor L_op")
        parts: Sequence[Any] = grad(inputs, output_grads)
        return parts

    def R_op(self, inputs: Sequence[Any], eval_points: Sequence[Any]) -> Sequence[Any]:  # noqa: N802 - Theano's name
        """The tangents of the outputs; subclasses may say how."""
        raise NotImplementedError(f"op {self} has no R_op")

    def view_of(self, apply: Apply) -> list[Node]:
        """The nodes that the outputs are by themselves; empty where `perform` computes them."""
        return []

    def _props_dict(self) -> dict[str, Any]:
        """The attributes that `__props__` names."""
        return {name: getattr(self, name) for name in getattr(type(self), "__props__", None) or ()}

    def _props(self) -> tuple[Any, ...]:
        """Their values. Ops of Theano's documentation ask whether there is this method."""
        return tuple(self._props_dict().values())

    def _identity(self) -> tuple[Any, ...] | None:
        return None if getattr(type(self), "__props__", None) is None else (type(self), *self._props())

    def __eq__(self, other: object) -> bool:
        own = self._identity()
        return self is other if own is None or not isinstance(other, Op) else own == other._identity()

    def __hash__(self) -> int:
        own = self._identity()
        return object.__hash__(self) if own is None else hash(own)

    def __str__(self) -> str:
        props = ", ".join(f"{name}={value!r}" for name, value in self._props_dict().items())
        return f"{type(self).__name__}{{{props}}}" if props else type(self).__name__


PureOp = Op


def _transposed(op: Op, inputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of an op's inputs from what its R_op says, which is linear in the tangents."""
    u = [variable(node.dtype, node.type.shape) if is_float(node.dtype) else None for node in inputs]
    along = zip(op.R_op(inputs, u), cotangents, strict=True)
    seeds = {tangent: part for tangent, part in along if isinstance(tangent, Node) and isinstance(part, Node)}
    own = [tangent for tangent in u if tangent is not None]
    found = dict(zip(own, pulled_back(seeds, own), strict=True))
    return [None if tangent is None else found[tangent] for tangent in u]


class Application(Apply):
    """A user's op applied to inputs: what `Apply(op, inputs, outputs)` makes. outputs: nodes of the types of those that
    were given, and of their names, which are computed. A given variable of a class derived from `TensorVariable` is
    the output itself from then on: PyMC3 makes its random variables so."""

    __slots__ = ("_inputs", "_op", "_outputs")

    def __init__(self, op: Any, inputs: Sequence[Any] = (), outputs: Sequence[Node] = ()) -> None:
        self._op = op
        self._inputs = [as_node(value) for value in inputs]
        self._outputs = list(outputs)
        for node in self._outputs:
            if not isinstance(node, Node):
                raise GraphTypeError(f"Apply of {op}: the outputs must be variables of their types; got {node!r}")
        given, self._outputs = self._outputs, op.view_of(self) or _results(self)
        for node, before in zip(self._outputs, given, strict=True):
            node.name = before.name or node.name
            vars(node).update(before.attributes())
        super().__init__(self._outputs[0].args[0] if self._outputs else as_node(0))
        self.node.__dict__["_apply"] = lambda: self  # the owner of the outputs
        for index, (node, before) in enumerate(zip(self._outputs, given, strict=True)):
            if before.op is INPUT and type(before) not in ORDINARY:
                self._outputs[index] = _defined(before, node)
                before.__dict__["_apply"] = lambda: self

    @property
    def op(self) -> Any:
        """The user's op."""
        return self._op

    @property
    def inputs(self) -> list[Node]:
        """The nodes that the op takes."""
        return self._inputs

    @property
    def outputs(self) -> list[Node]:
        """The nodes that the op makes."""
        return self._outputs

    @property
    def out(self) -> Node:
        """The default output."""
        return self.outputs[self.op.default_output or 0]

    def default_output(self) -> Node:
        """The default output."""
        return self.out

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(node.name or describe(node) for node in self.inputs)})"


ORDINARY = (Node, TensorVariable)


def _defined(given: Node, value: Node) -> Node:
    """A variable of the program's own class, which nothing uses yet, as one that is computed. Raises GraphTypeError for
    a value of another dtype or rank."""
    if (given.type.dtype, given.ndim) != (value.type.dtype, value.ndim):
        raise GraphTypeError(f"{describe(given)} is of type {given.type}, and what Apply computes of {value.type}")
    alike = named(value, given.name or "")
    given.op, given.args, given.attrs, given.type = alike.op, alike.args, alike.attrs, value.type
    given.serial = next_serial()
    return given


Apply.applied = Application

# The values -----------------------------------------------------------------------------------------------------------

_performers: WeakValueDictionary[Hashable, Performer] = WeakValueDictionary()


class Performer:
    """A user's op on inputs of certain types, which native code calls. name: unlike that of any other there is."""

    name: str

    def __init__(self, apply: Apply) -> None:
        self.op, self.apply = apply.op, apply
        self.inputs, self.outputs = list(apply.inputs), list(apply.outputs)
        self.types = [node.type for node in apply.outputs]
        taken, base = {other.name for other in _performers.values()}, type(apply.op).__name__
        numbers = (f"{base}_{number}" for number in range(2, len(taken) + 3))
        self.name = base if base not in taken else next(name for name in numbers if name not in taken)
        state = sorted((name, value) for name, value in vars(apply.op).items() if isinstance(name, str))
        self.version = fingerprint(type(apply.op).perform, *(value for _, value in state))
        self.destroyed = {place for places in apply.op.destroy_map.values() for place in places}
        self.kept = PendingResults()
        self.definitions: dict[Hashable, Definition] = {}

    def run(self, values: Sequence[Array]) -> list[Array]:
        """The results of `perform` for arrays."""
        given = [
            value.copy() if place in self.destroyed else read_only(value)
            for place, value in enumerate(values[: len(self.apply.inputs)])
        ]
        storage: list[list[Any]] = [[None] for _ in self.types]
        self.op.perform(self.apply, given, storage)
        results: list[Array] = []
        for (made,), kind in zip(storage, self.types, strict=True):
            array = np.asarray(made)
            wrong = sizes.shapes_differ(kind.shape, array.shape)
            if made is None or wrong or not np.can_cast(array.dtype, kind.dtype, "same_kind"):
                what = "nothing" if made is None else f"{array.dtype}{list(array.shape)}"
                raise GraphTypeError(f"op {self.op} computed {what} where its type is {kind}")
            results.append(np.array(array, kind.dtype, order="C"))
        return results

    def run_for(self, values: Sequence[Array], uses: int) -> list[Array]:
        """`run`, once for as many uses of the same arrays in a row."""
        if uses == 1:
            return self.run(values)
        key = [(value.shape, value.tobytes()) for value in values[: len(self.apply.inputs)]]
        if self.kept.key != key or not self.kept.left:
            self.kept.results, self.kept.key, self.kept.left = self.run(values), key, uses
        self.kept.left -= 1
        results = self.kept.results
        if not self.kept.left:
            self.kept.results = []
        return results

    def check_sizes(self, results: Sequence[Array], places: Sequence[int], told: Sequence[Array]) -> None:
        """Compare results with the sizes that `infer_shape` told, those that the types leave open."""
        left = iter(told)
        for place in places:
            result, static = results[place], _static(self.types[place])
            wanted = tuple(int(next(left)) if n is None else n for n in static)
            if result.shape != wanted:
                raise ShapeError(f"op {self.op} computed shape {result.shape}; its infer_shape said {wanted}")

    def define(
        self, part: str, infer: Callable[[Sequence[Node], Attributes], Type], evaluate: Callable[..., Array]
    ) -> Definition:
        """The op of a part of what is performed, one for each part."""
        if part not in self.definitions:
            evaluate.user = self.op  # type: ignore[attr-defined]  # whose op an owner shows
            kinds = [
                tuple((node.type.dtype, _static(node.type)) for node in nodes) for nodes in (self.inputs, self.outputs)
            ]
            evaluate.made = definition_of, (self.op, *kinds, part)  # type: ignore[attr-defined]  # for pickles
            name = self.name if part == "value" else f"{self.name}.{part}"
            doc = type(self.op).__doc__ or ""
            self.definitions[part] = Definition(
                name, infer, evaluate, lambda node: PYTHON, cost=100.0, version=self.version, doc=doc
            )
        return self.definitions[part]


class PendingResults(local):
    """The results of an op for uses that are still to come, in each thread."""

    def __init__(self) -> None:
        self.key: Any = None
        self.left = 0
        self.results: list[Array] = []


def _performer(apply: Apply) -> Performer:
    """Return the performer that equal ops on inputs of equal types share."""
    kinds = [tuple((node.type.dtype, _static(node.type)) for node in nodes) for nodes in (apply.inputs, apply.outputs)]
    key = (apply.op, *kinds)
    found = _performers.get(key)
    if found is None:
        found = _performers[key] = Performer(apply)
    return found


def definition_of(op: Op, given: Sequence[Any], made: Sequence[Any], part: str) -> Definition:
    """The op of a part of what a user's op performs on inputs of some types: where a pickle is read."""
    inputs, outputs = ([variable(dtype, shape) for dtype, shape in kinds] for kinds in (given, made))
    application = Application(op, inputs, outputs)
    return _performer(application).definitions[part]


def _static(kind: Type) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in kind.shape)


def _results(apply: Apply) -> list[Node]:
    """The nodes that stand for what an op computes, with the derivatives that it says."""
    performer = _performer(apply)
    pattern = getattr(apply.op, "connection_pattern", None)
    connected = None if pattern is None else pattern(apply)
    values = _values(apply, performer)
    return overridden(values, apply.inputs, derivative_of(apply.op), connected, apply.op)


def derivative_of(op: Op) -> Rule:
    """The rule that `L_op` (or `grad`) and `R_op` of an op make."""

    def again(inputs: Sequence[Node]) -> Sequence[Node]:
        return op.make_node(*inputs).outputs

    has_forward = type(op).R_op is not Op.R_op
    return rule_of(op.L_op, op.R_op if has_forward else None, again)


def _values(apply: Apply, performer: Performer) -> list[Node]:
    """The results, without derivatives: one op for each dtype, whose results are laid out one behind the other."""
    shapes, known = _shapes(apply, performer)
    dtypes = list(dict.fromkeys(kind.dtype for kind in performer.types))
    uses = len(dtypes) + (not known)
    if len(performer.types) == 1:
        return [_single(apply, performer, shapes[0], uses)]
    found: dict[int, Node] = {}
    for dtype in dtypes:
        places = [place for place, kind in enumerate(performer.types) if kind.dtype == dtype]
        lengths = [sizes.product(shapes[place]) for place in places]
        told = [size for place in places for size in _open(_static(performer.types[place]), shapes[place])]
        flat = _packed(apply, performer, places, [*told, as_size_node(sizes.total(lengths))], uses)
        begin: Size = 0
        for place, length in zip(places, lengths, strict=True):
            end = sizes.add(begin, length)
            found[place] = reshape(flat[as_size_node(begin) : as_size_node(end)], shapes[place])
            begin = end
    return [found[place] for place in range(len(performer.types))]


def _single(apply: Apply, performer: Performer, shape: Sequence[Size], uses: int) -> Node:
    count = len(apply.inputs)
    static = _static(performer.types[0])

    def infer(args: Sequence[Node], attrs: Attributes) -> Type:
        rest = iter(args[count:])
        return Type(performer.types[0].dtype, tuple(sizes.as_size(next(rest)) if n is None else n for n in static))

    def evaluate(node: Node, *values: Array) -> Array:
        (result,) = results = performer.run_for(values, uses)
        performer.check_sizes(results, [0], values[count:])
        return result

    return make(performer.define("value", infer, evaluate), [*apply.inputs, *_open(static, shape)])


def _open(static: Sequence[int | None], shape: Sequence[Size]) -> list[Node]:
    """The sizes that no type tells."""
    return [as_size_node(size) for size, n in zip(shape, static, strict=True) if n is None]


def _packed(apply: Apply, performer: Performer, places: Sequence[int], told: Sequence[Node], uses: int) -> Node:
    dtype = performer.types[places[0]].dtype

    def evaluate(node: Node, *values: Array) -> Array:
        results = performer.run_for(values, uses)
        performer.check_sizes(results, places, values[len(apply.inputs) : -1])
        return np.concatenate([results[place].ravel() for place in places])

    op = performer.define(f"values_{dtype}", lambda args, attrs: Type(dtype, (sizes.as_size(args[-1]),)), evaluate)
    return make(op, [*apply.inputs, *told])


def _shapes(apply: Apply, performer: Performer) -> tuple[list[tuple[Size, ...]], bool]:
    """The sizes of the results, and whether they are known without carrying the op out."""
    static = [_static(kind) for kind in performer.types]
    if all(size is not None for shape in static for size in shape):
        return [tuple(size for size in shape if size is not None) for shape in static], True
    infer = getattr(apply.op, "infer_shape", None)
    if infer is not None:
        given = [tuple(as_size_node(size) for size in node.type.shape) for node in apply.inputs]
        shapes = [tuple(_as_size(size) for size in shape) for shape in infer(apply, given)]
        if [len(shape) for shape in shapes] != [len(shape) for shape in static]:
            raise GraphTypeError(f"infer_shape of op {apply.op} gives {shapes}, which are no shapes of its outputs")
        return [
            tuple(size if n is None else n for size, n in zip(shape, known, strict=True))
            for shape, known in zip(shapes, static, strict=True)
        ], True
    total = sum(len(shape) for shape in static)
    uses = len({kind.dtype for kind in performer.types}) + 1

    def measure(node: Node, *values: Array) -> Array:
        results = performer.run_for(values, uses)
        return np.array([size for result in results for size in result.shape], np.int64)

    op = performer.define("sizes", lambda args, attrs: Type("int64", (total,)), measure)
    found = make(op, apply.inputs)
    numbers = iter(range(total))
    measured = [[(next(numbers), n) for n in shape] for shape in static]
    return [tuple(sizes.as_size(found[place]) if n is None else n for place, n in shape) for shape in measured], False


def _as_size(value: Any) -> Size:
    if isinstance(value, int | np.integer):
        return int(value)
    node = as_node(value)
    return sizes.as_size(cast(node, "int64"))


# Their derivatives ----------------------------------------------------------------------------------------------------

Backward = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]
"""(inputs, outputs, cotangents of the outputs) -> a cotangent for each input."""
Forward = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
"""(inputs, tangents of the inputs, None where there is none) -> a tangent for each output."""


def rule_of(backward: Backward, forward: Forward | None, again: Callable[[Sequence[Node]], Sequence[Node]]) -> Rule:
    """The rule of values with these derivatives. `again` makes the outputs for other inputs."""

    def rule(inputs: Sequence[Node], outputs: Sequence[Node], cotangents: Any, wanted: Any) -> Sequence[Any]:
        if forward is not None:
            return _both_ways(backward, forward, again, inputs, outputs, cotangents)
        return _checked(backward, inputs, outputs, cotangents)

    return rule


def _checked(backward: Backward, inputs: Sequence[Node], outputs: Sequence[Node], cotangents: Any) -> list[Any]:
    """The cotangents that a user's derivative gives, as nodes of the inputs' dtypes."""
    given = [cotangents.get(place, DisconnectedType()()) for place in range(len(outputs))]
    parts = backward(list(inputs), list(outputs), given)
    if not isinstance(parts, list | tuple):
        parts = [parts]
    if len(parts) != len(inputs):
        raise GradientError(f"a derivative gives {len(parts)} cotangents for {len(inputs)} inputs")
    found: list[Any] = []
    for part, node in zip(parts, inputs, strict=True):
        if part is None or isinstance(part, Absent):
            found.append(part)
        elif is_float(node.type.dtype):
            found.append(cast(as_node(part), node.type.dtype))
        else:
            found.append(None)
    return found


def _both_ways(
    backward: Backward,
    forward: Forward,
    again: Callable[[Sequence[Node]], Sequence[Node]],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    cotangents: Any,
) -> list[Any]:
    """The cotangents of the inputs, whose own derivatives by the cotangents of the outputs are what `forward` says:
    a forward product is the transpose of the transpose (autodiff.py)."""
    places = sorted(cotangents)
    x = [variable(node.type.dtype, node.type.shape, node.name) for node in inputs]
    v = {place: variable(cotangents[place].dtype, cotangents[place].type.shape) for place in places}
    parts = _checked(backward, x, again(x), v)
    own = [place for place, part in enumerate(parts) if isinstance(part, Node)]
    actual = [*inputs, *(cotangents[place] for place in places)]

    def over(nodes: Sequence[Node], given: Sequence[Node]) -> list[Node]:
        return substitute(nodes, dict(zip([*x, *v.values()], given, strict=True)))

    def second(given: Sequence[Node], results: Sequence[Node], along: Any, wanted: Any) -> list[Any]:
        seeds = {parts[own[number]]: tangent for number, tangent in along.items()}
        targets = [node for node in (*x, *(() if DIRECTION.is_forward else v.values())) if is_float(node.dtype)]
        found = dict(zip(targets, over(pulled_back(seeds, targets), given), strict=True))
        by_input = [found.get(node) for node in x]
        if not DIRECTION.is_forward:
            return [*by_input, *(found.get(node) for node in v.values())]
        points: list[Node | None] = [None] * len(inputs)
        for number, tangent in along.items():
            points[own[number]] = tangent
        tangents = forward(list(given[: len(inputs)]), points)
        if len(tangents) != len(outputs):
            raise GradientError(f"R_op gives {len(tangents)} tangents for {len(outputs)} outputs")
        return [*by_input, *(tangents[place] for place in places)]

    made = dict(zip(own, overridden(over([parts[place] for place in own], actual), actual, second), strict=True))
    return [made.get(place, part) for place, part in enumerate(parts)]


__all__ = [
    "Application", "Apply", "MethodNotDefined", "Op", "Performer", "PureOp", "derivative_of", "get_debug_values",
    "get_test_value", "rule_of",
]  # fmt: skip

explain_all(globals())
