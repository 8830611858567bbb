"""Sessions: the interface of TensorSlow and of TensorFlow 1 (placeholders, variables, operations) over `function`.

In: a program for that interface, which imports `graphc.session as ts`. Out: arrays.

    x, w = ts.placeholder(), ts.Variable([1.0, 2.0])
    y = ts.reduce_sum(x * w)
    ts.Session().run(y, {x: [3.0, 4.0]})     11.0

Elements have no types: a placeholder takes the dtype and rank of its feed. `Session.run` translates its fetches to a
graphc graph, and keeps a compiled function for each set of fetches and each type of feeds: the dtype, and the axes of
size 1, which broadcast. Feeds of other sizes compile nothing.

Gradients are elements of the same graph: they can be fetched, fed and differentiated again.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

import graphc.tensor as T
from graphc import optim
from graphc.arrays.dtypes import as_array, check_dtype, floating, is_float, natural_dtype, promote
from graphc.autodiff import vjp
from graphc.errors import ArgumentError, GradientError, GraphcError, GraphTypeError, MissingInputError, ShapeError
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.ir.call_errors import explain_all
from graphc.ir.interpret import interpret
from graphc.ir.node import Array, Node, Size, Type, user_line
from graphc.ir.walk import Graph as NodeGraph, reachable, substitute, toposort
from graphc.ops.custom import custom_op
from graphc.shared import SharedVariable, shared
from graphc.startup.record import record

__all__ = [
    "Element", "Gradient", "GradientDescentOptimizer", "Graph", "Minimization", "Operation", "RegisterGradient",
    "Session", "Variable", "absolute", "add", "compute_gradients", "constant", "divide", "exp", "get_default_graph",
    "log", "matmul", "maximum", "minimum", "multiply", "negative", "placeholder", "power", "reduce_max",
    "reduce_mean", "reduce_sum", "relu", "sigmoid", "softmax", "sqrt", "square", "subtract", "tanh", "train",
    "transpose",
]  # fmt: skip

Sizes: TypeAlias = tuple[int | None, ...]
ArrayType: TypeAlias = tuple[str, Sizes]
Sample: TypeAlias = Callable[[Sequence[Node]], list[Array]]
"""A function from nodes to their values in the call that a graph is translated for."""

# --- graphs -----------------------------------------------------------------------------------------------------------


class Graph:
    """A graph of elements: `operations`, `placeholders` and `variables`, each in the order of their making. Raises no
    error."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.placeholders: list[placeholder] = []
        self.variables: list[Variable] = []
        self._before: Graph | None = None
        self._outer: list[Graph] = []

    def as_default(self) -> Graph:
        """Make this graph the default, to which new elements belong: for good, or for a block as
        `with Graph().as_default():`."""
        before = _default[0]
        before._before = None  # no block was entered with it, so that nothing restores its predecessor
        self._before, _default[0] = before, self
        return self

    def __enter__(self) -> Graph:
        before = self._before or self.as_default()._before
        self._outer.append(before or self)
        self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        _default[0] = self._outer.pop()

    def export_dot(self, filename_prefix: str = "graph_") -> str:
        """Return the graph in Graphviz's language, and write it to `<prefix><v>var_<o>op.dot` in the working folder."""
        elements: list[Element] = [*self.variables, *self.placeholders, *self.operations]
        names = {element: f"n{number}" for number, element in enumerate(elements)}
        shapes = {Variable: "box", placeholder: "diamond"}
        lines = [
            f'{name} [label="{element.label}", shape={shapes.get(type(element), "ellipse")}]'
            for element, name in names.items()
        ]
        for element in self.operations:
            lines += [f"{names[source]} -> {names[element]}" for source in element.input_nodes if source in names]
        text = "\n".join(["digraph {", *lines, "}"])
        Path(f"{filename_prefix}{len(self.variables)}var_{len(self.operations)}op.dot").write_text(
            text, encoding="utf-8"
        )
        return text


_default: list[Graph] = [Graph()]
"""A cell with the default graph."""


def get_default_graph() -> Graph:
    """Return the default graph, to which new elements belong. Raises no error."""
    return _default[0]


# --- elements ---------------------------------------------------------------------------------------------------------


Operator: TypeAlias = "Callable[[Any, Any], Operation]"


def _operators(name: str) -> tuple[Operator, Operator]:
    """Return the methods of an operator, for an element as left and as right operand."""

    def operation(left: Any, right: Any) -> Operation:
        return globals()[name](left, right)

    return operation, lambda self, other: operation(other, self)


class Element:
    """The base of placeholders, variables and operations, which can be fetched.

    input_nodes: its inputs. consumers: the operations that take it, once for each use. Raises no error."""

    __array_ufunc__ = None  # NumPy arrays leave their operators to us

    def __init__(self, name: str | None = None) -> None:
        self.input_nodes: list[Element] = []
        self.name = name
        self.where = user_line()
        self.consumers: list[Operation] = []

    @property
    def label(self) -> str:
        return self.name or type(self).__name__

    def __repr__(self) -> str:
        return f"<{describe_element(self)}>"

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")
    __pow__, __rpow__ = _operators("power")
    __matmul__, __rmatmul__ = _operators("matmul")

    def __neg__(self) -> Operation:
        return negative(self)


def describe_element(element: Element) -> str:
    """An element for messages: its class, its name, and the user's line that made it."""
    kind = type(element).__name__
    label = f"{kind} {element.name!r}" if element.name else kind
    return f"{label} ({element.where})" if element.where else label


class placeholder(Element):  # noqa: N801 - TensorSlow's name
    """An element that must be fed. dtype: None takes any. shape: a tuple of sizes, None for any, which fixes the rank;
    None takes any. Raises GraphTypeError for a dtype that graphc does not have."""

    def __init__(self, dtype: Any = None, shape: Sequence[int | None] | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.dtype = None if dtype is None else check_dtype(dtype)
        self.shape = None if shape is None else tuple(shape)
        _default[0].placeholders.append(self)


class Variable(Element):
    """A parameter, which keeps its value between runs. Integers stay integers until an optimiser updates them.

    value: a copy of the current value; can be set. trainable: True where `minimize` updates it by default. Raises
    GraphTypeError for a value that is no array of numbers.
    """

    def __init__(self, initial_value: Any, name: str | None = None, trainable: bool = True) -> None:
        super().__init__(name)
        self.trainable = trainable
        self.shared = _shared_of(initial_value, name)
        _default[0].variables.append(self)

    @property
    def value(self) -> Array:
        return self.shared.get_value()

    @value.setter
    def value(self, value: Any) -> None:
        self.shared.set_value(value)

    def make_floating(self) -> None:
        """Convert an integer variable to floats, which gradient steps can update."""
        if not is_float(self.shared.type.dtype):
            self.shared = _shared_of(self.value.astype(floating(self.shared.type.dtype)), self.name)


def _shared_of(value: Any, name: str | None) -> SharedVariable:
    return shared(value, name, shape=_unit_axes(np.shape(value)))


def _unit_axes(shape: Sequence[int]) -> Sizes:
    return tuple(1 if size == 1 else None for size in shape)


class Operation(Element):
    """An operation: computes a value from the values of `input_nodes`. Users derive from it and define `compute`.

    compute(self, *values): a pure function of arrays, called back from compiled code. infer(self, *types): the `Type`
    of the result from those of the inputs. Without it, the type is that of the first result; an axis of the result that
    is as long as an axis of an input is assumed to be always so, the same axis where there are several.
    `RegisterGradient` gives it a gradient. Raises GraphTypeError for an input that is no array of numbers;
    NotImplementedError, when it is fetched, where a subclass does not define `compute`."""

    infer: Callable[..., Type] | None = None

    def __init__(self, input_nodes: Sequence[Any] = (), name: str | None = None) -> None:
        super().__init__(name)
        self.input_nodes = [as_element(item) for item in input_nodes]
        for element in self.input_nodes:
            element.consumers.append(self)
        self.graph = _default[0]
        self.serial = len(self.graph.operations)
        self.graph.operations.append(self)

    def compute(self, *values: Any) -> Any:
        """Return the value for values of the inputs."""
        raise NotImplementedError(f"{describe_element(self)} does not define compute")


class Symbolic(Operation):
    """An operation of graphc's own: `build(*nodes)` returns its node."""

    def build(self, *nodes: Node) -> Node:
        raise NotImplementedError

    def compute(self, *values: Any) -> Array:
        return interpret(NodeGraph((), (self.build(*(T.as_tensor(np.asarray(value)) for value in values)),)), {})[0]


def as_element(value: Any) -> Element:
    """Return an element as it is, and a number, list or array as a constant."""
    if isinstance(value, Minimization):
        raise GraphTypeError(f"{describe_element(value)} has no value for others to take")
    return value if isinstance(value, Element) else constant(value)


# --- operations -------------------------------------------------------------------------------------------------------


class constant(Symbolic):  # noqa: N801
    """A constant array. number: its value where that is a Python number, else None. Raises GraphTypeError for a value
    that is no array of numbers."""

    def __init__(self, value: Any, name: str | None = None) -> None:
        super().__init__((), name)
        self.node = T.as_tensor(value)
        self.number = value if type(value) in (bool, int, float) else None

    def build(self, *nodes: Node) -> Node:
        return self.node


class Elementwise(Symbolic):
    """An operation whose inputs are all its arguments."""

    function: ClassVar[Callable[..., Node]]
    arity: ClassVar[int]

    def __init__(self, *operands: Any, name: str | None = None) -> None:
        if len(operands) != self.arity:
            raise ArgumentError(f"{type(self).__name__} takes {self.arity} operands; got {len(operands)}")
        super().__init__(operands, name)

    def build(self, *nodes: Node) -> Node:
        """Return the node of the result. Python numbers do not widen the dtype of other operands (NEP 50)."""
        weak = [source.number if isinstance(source, constant) else None for source in self.input_nodes]
        strong = [node.type.dtype for node, number in zip(nodes, weak, strict=True) if number is None]
        operands = [
            node if number is None or not strong else T.cast(node, promote(*strong, number))
            for node, number in zip(nodes, weak, strict=True)
        ]
        return type(self).function(*operands)


def _operation(name: str, arity: int, build: Callable[..., Node], doc: str) -> type[Elementwise]:
    members = {"__doc__": doc, "__module__": __name__, "function": staticmethod(build), "arity": arity}
    return type(name, (Elementwise,), members)


add = _operation("add", 2, lambda x, y: x + y, "x + y.")
subtract = _operation("subtract", 2, lambda x, y: x - y, "x - y.")
multiply = _operation("multiply", 2, lambda x, y: x * y, "x * y, element by element.")
divide = _operation("divide", 2, lambda x, y: x / y, "x / y.")
power = _operation("power", 2, lambda x, y: x**y, "x to the power y.")
maximum = _operation("maximum", 2, T.maximum, "The larger of x and y.")
minimum = _operation("minimum", 2, T.minimum, "The smaller of x and y.")
negative = _operation("negative", 1, lambda x: -x, "-x.")
absolute = _operation("absolute", 1, T.abs, "|x|.")
square = _operation("square", 1, T.sqr, "x * x.")
sqrt = _operation("sqrt", 1, T.sqrt, "The square root.")
exp = _operation("exp", 1, T.exp, "e to the power x.")
log = _operation("log", 1, T.log, "The natural logarithm.")
sigmoid = _operation("sigmoid", 1, T.sigmoid, "1 / (1 + exp(-x)).")
tanh = _operation("tanh", 1, T.tanh, "The hyperbolic tangent.")
relu = _operation("relu", 1, T.nnet.relu, "max(x, 0).")
softmax = _operation("softmax", 1, lambda x: T.softmax(x, axis=-1), "exp(x) / sum(exp(x)) along the last axis.")
transpose = _operation("transpose", 1, lambda x: x.T, "All axes reversed.")
matmul = _operation("matmul", 2, lambda x, y: x.dot(y), "NumPy's dot of matrices, vectors and numbers.")


class Reduction(Symbolic):
    """An operation over one axis, several, or all (None)."""

    function: ClassVar[Callable[..., Node]]

    def __init__(self, A: Any, axis: Any = None, name: str | None = None) -> None:  # noqa: N803 - TensorSlow's name
        super().__init__([A], name)
        self.axis = axis

    def build(self, *nodes: Node) -> Node:
        return type(self).function(nodes[0], axis=self.axis)


def _reduction(name: str, reduce: Callable[..., Node], doc: str) -> type[Reduction]:
    doc = f"{doc} `Session.run` raises AxisError for an axis that is not there."
    return type(name, (Reduction,), {"__doc__": doc, "__module__": __name__, "function": staticmethod(reduce)})


reduce_sum = _reduction("reduce_sum", T.sum, "The sum over an axis, several, or all (None).")
reduce_mean = _reduction("reduce_mean", T.mean, "The mean over an axis, several, or all (None).")
reduce_max = _reduction("reduce_max", T.max, "The maximum over an axis, several, or all (None).")


# --- gradients --------------------------------------------------------------------------------------------------------

GradientFunction: TypeAlias = Callable[[Any, Any], Any]
_gradients: dict[str, GradientFunction] = {}


@record()
class RegisterGradient:
    """A decorator that registers a gradient function for the operations of a class. op_type: the class or its name.

    The function is called with the operation, which then has the arrays `inputs` and `output`, and with the gradient of
    the loss by the output, an array. It returns the gradient by each input, of its shape; a list for several inputs.
    """

    op_type: str | type[Operation]

    def __call__(self, gradient: GradientFunction) -> GradientFunction:
        name = self.op_type if isinstance(self.op_type, str) else self.op_type.__name__
        _gradients[name] = gradient
        return gradient


class Gradient(Symbolic):
    """The gradient of a loss by one element: the sum of the cotangents from its consumers. No graph lists it.

    uses: the operations through which the loss depends on the element, each with the gradient of the loss by it; empty
    for the loss itself.
    """

    def __init__(self, element: Element, uses: Sequence[tuple[Operation, Gradient]]) -> None:
        Element.__init__(self, f"gradient by {element.label}")
        self.element = element
        self.uses = uses
        self.input_nodes = [element, *chain.from_iterable((*consumer.input_nodes, outer) for consumer, outer in uses)]

    def build(self, *nodes: Node) -> Node:
        kind = nodes[0]
        if not self.uses:
            if kind.ndim:
                raise GradientError(
                    f"a loss must be a scalar; {describe_element(self.element)} is {kind.type}: sum it up"
                )
            return T.constant(1, dtype=floating(kind.type.dtype))
        remaining = iter(nodes[1:])
        terms = []
        for consumer, _ in self.uses:
            args = [next(remaining) for _ in consumer.input_nodes]
            parts = pull_back(consumer, args, next(remaining))
            terms += [part for part, source in zip(parts, consumer.input_nodes, strict=True) if source is self.element]
        return reduce(operator.add, terms)


def pull_back(operation: Operation, args: Sequence[Node], cotangent: Node) -> list[Node]:
    """Return the gradient by each input of an operation from the gradient by its output. Integers count as floats."""
    floats = [T.cast(arg, floating(arg.type.dtype)) for arg in args]
    gradient = _gradients.get(type(operation).__name__)
    if gradient is not None:
        return [_registered(operation, gradient, position, floats, cotangent) for position in range(len(args))]
    if not isinstance(operation, Symbolic):
        raise GradientError(
            f"{describe_element(operation)} has no gradient: "
            f"give it one with @RegisterGradient({type(operation).__name__!r})"
        )
    # Fresh variables distinguish inputs that are one value: matmul(A, A) has two gradients.
    own = [T.tensor(arg.type.dtype, _static(arg.type.shape)) for arg in floats]
    output = operation.build(*own)
    seed = T.tensor(output.type.dtype, _static(output.type.shape))
    parts = vjp(output, own, seed, disconnected_inputs="ignore")
    values = [*floats, T.cast(cotangent, output.type.dtype)]
    return substitute(parts, dict(zip([*own, seed], values, strict=True)))


def _static(shape: Sequence[Size]) -> Sizes:
    return tuple(size if isinstance(size, int) else None for size in shape)


def _registered(
    operation: Operation, gradient: GradientFunction, position: int, args: Sequence[Node], cotangent: Node
) -> Node:
    """Return the node that calls a registered gradient function for the gradient by one input."""

    def compute(*values: Array) -> Any:
        view: Any = copy.copy(operation)
        view.inputs = list(values[:-1])
        view.output = np.asarray(operation.compute(*view.inputs))
        parts = gradient(view, values[-1])
        part = parts[position] if len(args) > 1 else parts[0] if isinstance(parts, list | tuple) else parts
        if np.shape(part) != np.shape(values[position]):
            raise GradientError(
                f"the gradient registered for {describe_element(operation)} has shape {np.shape(part)} "
                f"for an input of shape {np.shape(values[position])}"
            )
        return part

    call = custom_op(f"{_identifier(operation)}_gradient_{position}", compute, lambda *types: types[position])
    return call(*args, cotangent)


def _identifier(operation: Operation) -> str:
    """A unique name of an operation in its graph."""
    return f"{type(operation).__name__}_{operation.serial}"


def compute_gradients(loss: Element) -> dict[Element, Gradient]:
    """Return {element: the gradient of a scalar `loss` by it} for all elements that the loss depends on, and itself.
    The gradients are elements, which can be fetched."""
    order = toposort([loss], lambda element: element.input_nodes, describe_element)
    uses: dict[Element, list[tuple[Operation, Gradient]]] = {element: [] for element in order}
    table: dict[Element, Gradient] = {}
    for element in reversed(order):
        table[element] = Gradient(element, tuple(uses[element]))
        if isinstance(element, Operation):
            for source in dict.fromkeys(element.input_nodes):
                uses[source].append((element, table[element]))
    return table


# --- training ---------------------------------------------------------------------------------------------------------


class Minimization(Operation):
    """A step of an optimiser: fetching it updates variables, and returns None."""

    def __init__(self, gradients: Mapping[Variable, Gradient], learning_rate: Any) -> None:
        super().__init__((), "minimization")
        self.targets = list(gradients)
        self.learning_rate = learning_rate
        self.input_nodes = [*gradients.values(), *([learning_rate] if isinstance(learning_rate, Element) else [])]

    def updates(self, *nodes: Node) -> optim.Updates:
        """Return the updates of the variables, from the nodes of the inputs."""
        params = [target.shared for target in self.targets]
        gradients = [T.cast(node, param.type.dtype) for node, param in zip(nodes, params, strict=False)]
        return optim.sgd(
            gradients, params, nodes[-1] if isinstance(self.learning_rate, Element) else self.learning_rate
        )


@record()
class GradientDescentOptimizer:
    """Gradient descent. learning_rate: a number or a scalar element. `minimize` raises GradientError for a loss that
    depends on no variable."""

    learning_rate: Any

    def minimize(self, loss: Element, var_list: Sequence[Variable] | None = None) -> Minimization:
        """Return the operation that updates, by one step, the variables in `var_list`, or all trainable ones that
        `loss` depends on. Raises GradientError where there is none, and for one that the loss does not depend on."""
        table = compute_gradients(loss)
        found = [element for element in table if isinstance(element, Variable) and element.trainable]
        targets = found if var_list is None else list(var_list)
        if not targets:
            raise GradientError(f"{describe_element(loss)} depends on no variable")
        for target in targets:
            if target not in table:
                raise GradientError(f"{describe_element(loss)} does not depend on {describe_element(target)}")
            target.make_floating()
        return Minimization({target: table[target] for target in targets}, self.learning_rate)


class train:  # noqa: N801 - TensorSlow's submodule
    """The submodule `train`: optimisers, and `compute_gradients`. Raises no error."""

    GradientDescentOptimizer = GradientDescentOptimizer
    compute_gradients = staticmethod(compute_gradients)


# --- sessions ---------------------------------------------------------------------------------------------------------


class Session:
    """Runs graphs. mode: "compiled", "interpreted" or "python", as for `function`; None means `options.mode`.

    `run` raises MissingInputError for a placeholder that is needed and not fed, ShapeError for a feed of another shape
    than its placeholder's, GraphTypeError for a fetch or a key of `feed_dict` that is no element, and GraphValueError
    for a mode that does not exist.
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode
        self.functions: dict[Any, Function] = {}
        self._orders: dict[Any, list[Element]] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the values of `fetches`: an element, or lists, tuples and dicts of elements, in the same form.

        feed_dict: {element: value}, for placeholders, and for other elements in place of their own value in this run.
        All values are those before the updates of optimisers among the fetches, whose own value is None. Raises
        MissingInputError for a placeholder that is needed and not fed, and the errors of `function` and its calls.
        """
        wanted = tuple(dict.fromkeys(_flatten(fetches)))
        fed = dict(feed_dict or {})
        order = self._order(wanted, tuple(fed))
        feeds = {element: _feed(element, fed[element]) for element in order if element in fed}
        results: dict[Element, Any] = {e: feeds[e] for e in wanted if e in feeds}
        results |= {e: e.value for e in wanted if isinstance(e, Variable) and e not in feeds}
        rest = tuple(e for e in wanted if e not in results)
        if rest:
            call = self._function(rest, order, feeds)
            computed = [e for e in rest if not isinstance(e, Minimization)]
            results |= zip(computed, call(*feeds.values()), strict=True)
        return _pack(fetches, results)

    def _order(self, wanted: tuple[Element, ...], fed: tuple[Any, ...]) -> list[Element]:
        """Return the elements that `wanted` depend on, in topological order; elements in `fed` depend on nothing."""
        known = self._orders.get((wanted, fed))
        if known is not None:
            return known
        for key in fed:
            if not isinstance(key, Element):
                raise GraphTypeError(f"feed_dict: the keys are placeholders or other elements of a graph, not {key!r}")
        cut = set(fed)
        order = toposort(wanted, lambda element: () if element in cut else element.input_nodes, describe_element)
        for element in order:
            if isinstance(element, placeholder) and element not in cut:
                raise MissingInputError(f"{describe_element(element)} is needed and not in feed_dict")
        self._orders[wanted, fed] = order
        return order

    def _function(
        self, rest: tuple[Element, ...], order: Sequence[Element], feeds: Mapping[Element, Array]
    ) -> Function:
        types = {element: _type_of(element, value) for element, value in feeds.items()}
        own = tuple(element.shared for element in order if isinstance(element, Variable))
        key = (rest, tuple(types.items()), own)
        if key not in self.functions:
            self.functions[key] = translate(rest, order, types, feeds, self.mode)
        return self.functions[key]


def _flatten(fetches: Any) -> Iterator[Element]:
    if isinstance(fetches, Element):
        yield fetches
    elif isinstance(fetches, Mapping):
        yield from chain.from_iterable(map(_flatten, fetches.values()))
    elif isinstance(fetches, list | tuple):
        yield from chain.from_iterable(map(_flatten, fetches))
    else:
        raise GraphTypeError(f"{fetches!r} cannot be fetched: it is no placeholder, variable or operation")


def _pack(fetches: Any, results: Mapping[Element, Any]) -> Any:
    if isinstance(fetches, Element):
        return results.get(fetches)
    if isinstance(fetches, Mapping):
        return {key: _pack(value, results) for key, value in fetches.items()}
    return type(fetches)([_pack(item, results) for item in fetches])


def _feed(element: Element, value: Any) -> Array:
    """Convert the feed of an element to an array, of the placeholder's dtype or its own. Raises ShapeError."""
    what = f"feed of {describe_element(element)}"
    wanted = element.dtype if isinstance(element, placeholder) else None
    array = as_array(value, wanted or natural_dtype(value, what), what)
    if isinstance(element, placeholder) and element.shape is not None:
        fits = len(element.shape) == array.ndim and all(
            size in (None, actual) for size, actual in zip(element.shape, array.shape, strict=True)
        )
        if not fits:
            raise ShapeError(f"{what}: its shape is {element.shape}, that of the value {array.shape}")
    return array


def _type_of(element: Element, value: Array) -> ArrayType:
    declared = element.shape if isinstance(element, placeholder) else None
    return value.dtype.name, _unit_axes(value.shape) if declared is None else declared


def translate(
    rest: Sequence[Element],
    order: Sequence[Element],
    types: Mapping[Element, ArrayType],
    feeds: Mapping[Element, Array],
    mode: str | None,
) -> Function:
    """Return the function from the feeds to the elements `rest`; minimizations among these become its updates."""
    inputs = {element: T.tensor(*types[element], element.name) for element in feeds}
    nodes: dict[Element, Node] = dict(inputs)
    updates: list[tuple[SharedVariable, Node]] = []

    def sample(wanted: Sequence[Node]) -> list[Array]:
        values: dict[Node, Array] = {inputs[element]: value for element, value in feeds.items()}
        values |= {e.shared: e.shared.cell[0] for e in order if isinstance(e, Variable)}
        return interpret(NodeGraph(tuple(inputs.values()), tuple(wanted)), values)

    for element in order:
        if isinstance(element, Variable) and element not in nodes:
            nodes[element] = element.shared
        elif isinstance(element, Minimization):
            updates += element.updates(*(nodes[source] for source in element.input_nodes)).items()
        elif isinstance(element, Operation) and element not in nodes:
            nodes[element] = _build(element, [nodes[source] for source in element.input_nodes], sample)
    outputs = [nodes[element] for element in rest if element in nodes]
    return function(list(inputs.values()), outputs, mode, updates, name="session_run", on_unused_input="ignore")


def _build(element: Operation, args: Sequence[Node], sample: Sample) -> Node:
    """Return the node of an operation. The node, and errors in building it, carry the line that made the operation."""
    try:
        node = element.build(*args) if isinstance(element, Symbolic) else _call(element, args, sample)
    except GraphcError as error:
        error.add_note(f"in {describe_element(element)}")
        raise
    given = set(args)
    for made in reachable([node], lambda inner: () if inner in given else inner.args):
        if made.args and made not in given:
            made.where = element.where
    if node.args and node not in given:
        node.name = node.name or element.name
    return node


def _call(element: Operation, args: Sequence[Node], sample: Sample) -> Node:
    """Return the node that calls the `compute` of a user's operation."""
    kind = element.infer(*(arg.type for arg in args)) if element.infer else _observed_type(element, args, sample)
    return custom_op(_identifier(element), element.compute, lambda *types: kind)(*args)


def _observed_type(element: Operation, args: Sequence[Node], sample: Sample) -> Type:
    """Return the type of the result of `compute` in this call. A size that equals a size of an input is that one."""
    values = sample(args)
    result = np.asarray(element.compute(*values))
    dtype = check_dtype(result.dtype)
    sizes = [
        (size, actual, axis - len(value.shape))
        for arg, value in zip(args, values, strict=True)
        for axis, (size, actual) in enumerate(zip(arg.type.shape, value.shape, strict=True))
        if size != 1
    ]

    def trace(axis: int, actual: int) -> Size:
        found = [size for size, other, position in sizes if other == actual and position == axis - result.ndim]
        found += [size for size, other, _ in sizes if other == actual]
        return found[0] if found and actual != 1 else actual

    return Type(dtype, tuple(trace(axis, actual) for axis, actual in enumerate(result.shape)))


explain_all(globals())
