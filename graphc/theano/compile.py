"""Theano's `compile`: how functions take their inputs, their modes, and what they were made of.

In: names of linkers and optimizers; variables; a `Function`. Out: a `Mode`, which `function` takes, with the mode of
graphc that it means; `In` under its old name; `f.maker`; ops made of Python functions and of graphs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from warnings import warn

from graphc.arrays.dtypes import is_float
from graphc.autodiff import jvp, pulled_back
from graphc.errors import (
    ArgumentError,
    DebugModeError,
    GradientError,
    GraphTypeError,
    GraphValueError,
    UnusedInputError,
)
from graphc.functions.callables import MODES, Function
from graphc.functions.convention import In, Out
from graphc.functions.debug_modes import DebugMode, NanGuardMode
from graphc.functions.function import checking_mode, function
from graphc.functions.states import states_of
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Array, Node, describe, variable
from graphc.ir.walk import Graph, substitute, with_tags
from graphc.ops.custom import Absent, DisconnectedType, NullType
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast_safely
from graphc.ops.shape import zeros
from graphc.options import options
from graphc.rewrite import rewrite
from graphc.shared import Container, SharedVariable, shared
from graphc.startup.hooks import HOOKS
from graphc.tensor.shaping import shape, specify_shape
from graphc.tensor.variables import Variable
from graphc.theano.flags import known_rules
from graphc.theano.graphs import FunctionGraph, is_same_graph, rebuild_collect_shared
from graphc.theano.names import optdb
from graphc.theano.opclasses import Rebroadcast, Shape, Shape_i, SpecifyShape
from graphc.theano.owners import apply_of
from graphc.theano.user_ops import Apply, Op, derivative_of, rule_of

pfunc, config = function, options

# inputs and outputs ---------------------------------------------------------------------------------------------------

SymbolicInput = In
SymbolicOutput = Out


def Param(  # noqa: N802 - Theano's name
    variable: Node,
    default: Any = None,
    name: str | None = None,
    mutable: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    implicit: bool | None = None,
    borrow: bool | None = None,
) -> In:
    """`In` under its old name, with `default` for its value; it says once that it is old. Raises GraphTypeError for a
    name that is no string."""
    warn("Param is Theano's old name: In(variable, value=...) says the same", DeprecationWarning, stacklevel=2)
    return In(
        variable, name, default, None, mutable, strict, allow_downcast=allow_downcast, implicit=implicit, borrow=borrow
    )


# modes ----------------------------------------------------------------------------------------------------------------

INTERPRETED = ("py", "FAST_COMPILE", "interpreted")
"""Linkers that run one NumPy call for each node."""
LINKERS = ("c", "py", "c|py", "c|py_nogc", "c&py", "vm", "cvm", "vm_nogc", "cvm_nogc", "jax", "numba", *MODES)
OFF = ("fast_compile", "none", "merge")
"""Optimizers that make functions as they were written: what is interpreted is not rewritten."""
OPTIMIZERS = ("default", "fast_run", "fast_run_stable", "o1", "o2", "o3", "o4", "unsafe", "stabilize", *OFF)


class Mode:
    """A way to run functions. linker: "py" interprets, all others compile. optimizer: "fast_compile", "None" (or None)
    and "merge" interpret too, where the linker is not given, for that is the mode that rewrites nothing; all others are
    graphc's whole pipeline.

    `including` and `requiring` change nothing, since all rules are on; `excluding` switches off those of the named
    rules that graphc has, and ignores Theano's others. Raises ArgumentError for unknown linkers and optimizers.

        >>> graphc.function([x], T.exp(x), mode=graphc.Mode("py"))([0.0])
        array([1.])
        >>> mode = graphc.Mode("cvm").excluding("softplus")
    """

    def __init__(self, linker: Any = None, optimizer: Any = "default", tags: Iterable[str] = ()) -> None:
        self.linker = "vm" if linker is None else linker
        self.optimizer = "None" if optimizer is None else optimizer
        self.given = linker is not None
        self.excluded = tuple(tags)
        if isinstance(self.linker, str) and self.linker not in LINKERS:
            raise GraphValueError(f"there is no linker {linker!r}; linkers are {', '.join(LINKERS)}")
        if isinstance(self.optimizer, str) and self.optimizer.lower() not in OPTIMIZERS:
            raise GraphValueError(f"there is no optimizer {optimizer!r}; optimizers are {', '.join(OPTIMIZERS)}")

    def settings(self) -> tuple[str, tuple[str, ...]]:
        """The mode of graphc that is meant, and the rules that are off."""
        slow = self.linker in INTERPRETED or (not self.given and str(self.optimizer).lower() in OFF)
        own = self.linker if self.linker in MODES else "compiled"
        return ("interpreted" if slow else str(own)), tuple(known_rules(list(self.excluded)))

    def including(self, *tags: str) -> Mode:
        """The mode with rules switched on; those of `excluding` again."""
        return self._with(set(self.excluded) - set(tags))

    def excluding(self, *tags: str) -> Mode:
        """The mode without some rules."""
        return self._with({*self.excluded, *tags})

    def requiring(self, *tags: str) -> Mode:
        """The mode itself: all rules are on."""
        return self._with(self.excluded)

    def clone(self, link_kwargs: Any = None, optimizer: Any = "", **kwargs: Any) -> Mode:
        """The mode, or one of another optimizer."""
        return Mode(self.linker if self.given else None, optimizer or self.optimizer, self.excluded)

    def _with(self, tags: Iterable[str]) -> Mode:
        return Mode(self.linker if self.given else None, self.optimizer, sorted(tags))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mode) and self.settings() == other.settings()

    def __hash__(self) -> int:
        return hash(self.settings())

    def __str__(self) -> str:
        off = f", excluding = {', '.join(self.excluded)}" if self.excluded else ""
        return f"{type(self).__name__}(linker = {self.linker}, optimizer = {self.optimizer}{off})"

    __repr__ = __str__


FAST_RUN = Mode("cvm", "fast_run")
FAST_COMPILE = Mode("py", "fast_compile")
JIT = FAST_RUN
predefined_modes = {"FAST_RUN": FAST_RUN, "FAST_COMPILE": FAST_COMPILE, "JIT": JIT}
predefined_linkers = {name: name for name in LINKERS}
predefined_optimizers = {name: name for name in OPTIMIZERS}


def get_mode(mode: Any) -> Any:
    """The mode of a name, of None (the default mode), or a mode itself. ArgumentError for an unknown name."""
    if mode is None:
        return get_default_mode()
    if not isinstance(mode, str):
        return mode
    if mode in predefined_modes:
        return predefined_modes[mode]
    if mode in MODES:
        return Mode(MODES[mode] if mode != "Mode" else None)
    if (checks := checking_mode(mode)) is not None:
        return checks
    raise GraphValueError(f"there is no mode {mode!r}; modes are {', '.join(MODES)}")


def get_default_mode() -> Any:
    """The mode of functions that are not told one: `config.mode`, unless `config.linker` or `config.optimizer` says
    that they are interpreted."""
    return FAST_COMPILE if HOOKS.default_mode else get_mode(options.mode)


def register_mode(name: str, mode: Mode) -> None:
    """Give a mode a name that `get_mode` knows. Raises ArgumentError where the name is taken."""
    if name in predefined_modes or name in MODES:
        raise GraphValueError(f"there is a mode {name!r} already")
    predefined_modes[name] = mode


# what a function was made of ------------------------------------------------------------------------------------------


class FunctionMaker:
    """inputs: an `In` for each argument, then for each shared variable. outputs: an `Out` for each. mode, function."""

    def __init__(self, function: Function) -> None:
        if not isinstance(function, Function):
            raise ArgumentError(f"FunctionMaker describes a function that graphc.function has made, not {function!r}")
        self.function = function
        news = dict(function.kernel.updates)
        own = [leaf for leaf in function.shared if leaf not in states_of(function).values()]
        shared = [In(leaf, update=news.get(leaf), implicit=True, value=leaf.container, shared=True) for leaf in own]
        self.inputs = [*function.call.inputs, *shared]
        self.outputs = [Out(node) for node in function.kernel.outputs]
        self.expanded_inputs = self.inputs
        self.mode = getattr(function, "checks", None) or Mode(function.mode)
        self.name = function.name

    @property
    def fgraph(self) -> FunctionGraph:
        """The graph: inputs and shared variables, outputs and the new values of those. As rewriting leaves it, or of an
        interpreted function as it was written; what rules and passes did is `function.explain()`."""
        kernel = self.function.kernel
        graph = Graph((*kernel.inputs, *kernel.shared), kernel.results)
        if self.function.mode != "interpreted":
            graph, _ = rewrite(graph, options.fast_math, options.excluding)
        made = FunctionGraph(graph.inputs, graph.outputs)
        made.name = self.name
        return made


__all__ = [
    "FAST_COMPILE", "FAST_RUN", "JIT", "Container", "DebugMode", "DebugModeError", "DeepCopyOp", "DisconnectedType",
    "FromFunctionOp", "Function", "FunctionMaker", "In", "Mode", "NanGuardMode", "NullType", "OpFromGraph", "Out",
    "Param", "Rebroadcast", "Shape", "Shape_i", "SharedVariable", "SpecifyShape", "SymbolicInput", "SymbolicOutput",
    "UnusedInputError", "Variable", "ViewOp", "as_op", "config", "deep_copy_op", "function", "get_default_mode",
    "get_mode", "is_same_graph", "optdb", "pfunc", "predefined_linkers", "predefined_modes", "predefined_optimizers",
    "rebuild_collect_shared", "register_mode", "shape", "shared", "specify_shape", "view_op",
]  # fmt: skip

HOOKS.maker = FunctionMaker


# --- ops made of functions and graphs ---------------------------------------------------------------------------------


class FromFunctionOp(Op):
    """The op of a Python function of arrays; two of one function and the same types are equal."""

    __props__ = ("fn", "itypes", "otypes", "infer_shape_fn")

    def __init__(
        self,
        fn: Callable[..., Any],
        itypes: Sequence[Any],
        otypes: Sequence[Any],
        infer_shape: Callable[..., Any] | None = None,
    ) -> None:
        self.fn, self.itypes, self.otypes, self.infer_shape_fn = fn, tuple(itypes), tuple(otypes), infer_shape
        if infer_shape is not None:
            self.infer_shape = infer_shape
        self.__name__ = getattr(fn, "__name__", "function")
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """The function's value: one array, or as many as there are types."""
        results = self.fn(*inputs)
        if len(output_storage) == 1 and not (isinstance(results, list | tuple) and len(results) == 1):
            results = [results]
        if len(results) != len(output_storage):
            raise ValueError(f"{self} gives {len(results)} results where its types say {len(output_storage)}")
        for cell, result in zip(output_storage, results, strict=True):
            cell[0] = result

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A pickle has the name, where it is that of the op and no longer the function's, as below `@as_op`."""
        found = getattr(sys.modules.get(self.fn.__module__), self.__name__, None)
        return self.__name__ if found is self else super().__reduce_ex__(protocol)

    def __str__(self) -> str:
        return f"FromFunctionOp{{{self.__name__}}}"


def as_op(
    itypes: Any, otypes: Any, infer_shape: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """A decorator: a Python function of arrays becomes an op, without a derivative.

    itypes, otypes: the types of the arguments and of the results, as `T.dmatrix` or `x.type`, or lists of them.
    infer_shape(node, input_shapes): the sizes of each result, where they are to be known before.
    Raises GraphTypeError when it is applied to other types.

        >>> @as_op(itypes=[T.dmatrix, T.dmatrix], otypes=[T.dmatrix])
        ... def product(a, b):
        ...     return np.dot(a, b)
    """
    kinds = [tuple(kind) if isinstance(kind, list | tuple) else (kind,) for kind in (itypes, otypes)]

    def make_op(fn: Callable[..., Any]) -> FromFunctionOp:
        return FromFunctionOp(fn, kinds[0], kinds[1], infer_shape)

    return make_op


class ViewOp(Op):
    """An op whose value is its argument. Subclasses say what its derivative is; compiled code does nothing for it.

    >>> class Clipped(ViewOp):
    ...     def grad(self, args, g_outs):
    ...         return [T.clip(g, -1, 1) for g in g_outs]
    >>> T.grad(Clipped()(x) ** 2, x)  # clip(2 * x, -1, 1)
    """

    __props__: tuple[str, ...] | None = None  # each is its own unless a subclass says more
    view_map = {0: [0]}  # noqa: RUF012 - Theano's way to say so

    def make_node(self, *inputs: Any) -> Apply:
        """The op applied to a tensor; called back where a subclass has a `perform` of its own."""
        (x,) = map(as_node, inputs)
        if type(self).perform is not ViewOp.perform:
            return Apply(self, [x], [x.type()])
        return apply_of(overridden([x], [x], derivative_of(self))[0])

    def view_of(self, apply: Apply) -> list[Node]:
        """The argument with the derivative that a subclass says, where it has no `perform` of its own."""
        if type(self).perform is not ViewOp.perform:
            return []
        return overridden(apply.inputs, apply.inputs, derivative_of(self))

    def perform(self, node: Apply, inputs: Sequence[Array], output_storage: Sequence[list[Any]]) -> None:
        """The array itself."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, input_shapes: Sequence[Any]) -> Sequence[Any]:
        """The argument's sizes."""
        return input_shapes

    def grad(self, args: Sequence[Any], g_outs: Sequence[Any]) -> Sequence[Any]:
        """The cotangent itself."""
        return g_outs


class DeepCopyOp(ViewOp):
    """The same: where a copy is needed, graphc makes one."""


view_op, deep_copy_op = ViewOp(), DeepCopyOp()


# ops of graphs --------------------------------------------------------------------------------------------------------

DEFAULT = "default"


class OpFromGraph:
    """A function of tensors that stands for a graph: called with tensors, it gives the outputs for these in place of
    the inputs; one, or a list of several. Shared variables of the graph stay what they are.

    inputs: a list of variables. outputs: a list of values. grad_overrides: derivatives of the user's, a function of
    (inputs, output_grads) that gives the cotangent of each input; or a list with one for each input, functions of one
    result, the word "default", an `OpFromGraph` of inputs and output_grads, or a variable of `NullType` or
    `DisconnectedType`. lop_overrides: the same of (inputs, outputs, output_grads). rop_overrides: of (inputs,
    eval_points), the tangent of each output, or a list with one for each output. connection_pattern: for each input,
    for each output, whether this depends on that. inline and other keywords: for Theano's sake.

    Raises GraphTypeError for what is no variable, and for other types when it is called; ArgumentError for two kinds of
    overrides, updates or givens.

        >>> x, y, z = T.scalars("xyz")
        >>> twice = lambda inputs, grads: 2 * inputs[2] * grads[0]
        >>> op = OpFromGraph([x, y, z], [x + y * z], grad_overrides=["default", twice, "default"])
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Any],
        inline: bool = False,
        lop_overrides: Any = DEFAULT,
        grad_overrides: Any = DEFAULT,
        rop_overrides: Any = DEFAULT,
        connection_pattern: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(outputs, list):
            raise GraphTypeError(f"OpFromGraph: the outputs must be a list, not {outputs!r}")
        for node in (*inputs, *outputs):
            if not isinstance(node, Node):
                raise GraphTypeError(f"OpFromGraph: inputs and outputs must be variables; got {node!r}")
        if {"updates", "givens"} & set(kwargs):
            raise GraphValueError("OpFromGraph takes no updates and no givens")
        if not _is_default(lop_overrides) and not _is_default(grad_overrides):
            raise GraphValueError("OpFromGraph takes lop_overrides or grad_overrides, not both")
        for override in (lop_overrides, grad_overrides, rop_overrides):
            for item in override if isinstance(override, list) else [override]:
                if not (_is_default(item) or callable(item) or isinstance(item, Absent)):
                    raise GraphTypeError(f"OpFromGraph: an override is 'default' or a function, not {item!r}")
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.is_inline, self.name, self.connection_pattern = inline, name, connection_pattern
        self.with_outputs = not _is_default(lop_overrides)
        self.backward_overrides = lop_overrides if self.with_outputs else grad_overrides
        self.forward_overrides = rop_overrides

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for other inputs of the same types."""
        if len(inputs) != len(self.inputs):
            raise GraphTypeError(f"{self} takes {len(self.inputs)} inputs; got {len(inputs)}")
        given = [_fitted(self, as_node(value), own) for value, own in zip(inputs, self.inputs, strict=True)]
        results = self.over(given)
        own = [self.backward_overrides, self.forward_overrides, self.connection_pattern]
        if not all(_is_default(item) or item is None for item in own):
            forward = None if _is_default(self.forward_overrides) else self.forward
            results = overridden(results, given, rule_of(self.backward, forward, self.again), self.connection_pattern)
        return results[0] if len(results) == 1 else results

    def over(self, given: Sequence[Node]) -> list[Node]:
        """The values of the outputs over nodes in place of the inputs."""
        return with_tags(self.outputs, dict(zip(self.inputs, given, strict=True)))

    def again(self, given: Sequence[Node]) -> list[Node]:
        """The outputs for other inputs."""
        results = self(*given)
        return results if isinstance(results, list) else [results]

    def backward(self, inputs: Sequence[Node], outputs: Sequence[Node], grads: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs."""
        known = [
            zeros(out.type.dtype, out.type.shape) if isinstance(grad, Absent) else grad
            for grad, out in zip(grads, outputs, strict=True)
        ]
        args = [[*inputs], [*outputs], known] if self.with_outputs else [[*inputs], known]
        return _overridden(self.backward_overrides, args, len(inputs), partial(self.default_backward, inputs, grads))

    def default_backward(self, inputs: Sequence[Node], grads: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs by the graph itself."""
        x = [variable(node.type.dtype, node.type.shape, node.name) for node in inputs]
        results = self.over(x)
        seeds: dict[Node, Any] = {}
        stand_ins: dict[Node, Node] = {}
        for result, grad in zip(results, grads, strict=True):
            if isinstance(grad, Node) and is_float(result.type.dtype):
                seed = variable(grad.type.dtype, grad.type.shape)
                stand_ins[seed] = grad
                seeds[result] = seeds[result] + seed if result in seeds else seed
        floats = [node for node in x if is_float(node.type.dtype)]
        found = dict(zip(floats, pulled_back(seeds, floats), strict=True))
        parts = substitute(list(found.values()), {**dict(zip(x, inputs, strict=True)), **stand_ins})
        by_input = dict(zip(found, parts, strict=True))
        return [by_input.get(node) for node in x]

    def forward(self, inputs: Sequence[Node], points: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs."""
        known = [
            zeros(node.type.dtype, node.type.shape) if point is None and is_float(node.type.dtype) else point
            for point, node in zip(points, inputs, strict=True)
        ]
        found = _overridden(
            self.forward_overrides, [[*inputs], known], len(self.outputs), partial(self.default_forward, inputs, known)
        )
        return [None if isinstance(part, Absent) and not part.is_null else part for part in found]

    def default_forward(self, inputs: Sequence[Node], points: Sequence[Any]) -> list[Any]:
        """The tangents of the outputs by the graph itself."""
        x = [variable(node.type.dtype, node.type.shape, node.name) for node in inputs]
        pairs = [(node, point) for node, point in zip(x, points, strict=True) if isinstance(point, Node)]
        tangents = jvp(self.over(x), [node for node, _ in pairs], [point for _, point in pairs], "ignore")
        return substitute(tangents, dict(zip(x, inputs, strict=True)))

    def __str__(self) -> str:
        return f"{self.name or type(self).__name__}{{inline={self.is_inline}}}"


def _is_default(override: Any) -> bool:
    return isinstance(override, str) and override == DEFAULT


def _fitted(op: OpFromGraph, value: Node, own: Node) -> Node:
    """An argument in the type of an input."""
    value = cast_safely(value, own.type.dtype)
    if value.type.dtype != own.type.dtype or value.ndim != own.ndim:
        raise GraphTypeError(
            f"{op}: {describe(value)} of type {value.type} cannot stand for {describe(own)} of {own.type}"
        )
    return value


def _overridden(override: Any, args: list[list[Any]], count: int, default: Callable[[], list[Any]]) -> list[Any]:
    """The derivatives that overrides give, each of all or of one result."""
    if _is_default(override):
        return default()
    if not isinstance(override, list):
        found = _carried_out(override, args)
        found = [override] * count if isinstance(override, Absent) else found
        parts = list(found) if isinstance(found, list | tuple) else [found]
        if len(parts) != count:
            raise GradientError(f"an override gives {len(parts)} results where {count} are needed")
        return parts
    if len(override) != count:
        raise GradientError(f"a list of {len(override)} overrides is given where {count} are needed")
    usual = default() if any(map(_is_default, override)) else [None] * count
    parts = []
    for item, own in zip(override, usual, strict=True):
        found = own if _is_default(item) else _carried_out(item, args)
        parts.append(found[0] if isinstance(found, list | tuple) and len(found) == 1 else found)
    return parts


def _carried_out(override: Any, args: list[list[Any]]) -> Any:
    """The derivative that one override gives. An `OpFromGraph` takes all arguments in a row."""
    if isinstance(override, Absent):
        return override
    if isinstance(override, OpFromGraph):
        return override(*(value for group in args for value in group))
    return override(*args)


explain_all(globals())
