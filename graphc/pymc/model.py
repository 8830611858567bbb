"""PyMC models as compiled functions of one flat vector.

In: a model. Out: its log-density over the unconstrained parameters, its derivatives, and its variables as functions of
these parameters. graphc compiles each from the graph that PyMC builds; PyTensor compiles nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pymc
import pytensor
from pymc.logprob import abstract, rewriting
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.db import RewriteDatabase
from pytensor.graph.type import Type

import graphc.tensor as T
from graphc.autodiff import grad, hessian
from graphc.errors import ArgumentError
from graphc.functions import factory
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.functions.pointer import Pointer
from graphc.ir.node import Array, Node
from graphc.pytensor.rows import OUTSIDE, UNCHECKED
from graphc.pytensor.table import applys
from graphc.startup.record import record
from graphc.startup.versions import digest_of


@record()
class Parameter:
    """A free variable of a model: PyMC's name for its unconstrained value, its shape, its place `start:end` in `q`."""

    name: str
    shape: tuple[int, ...]
    start: int
    end: int


class Model:
    """The functions of a model over `q`: a vector of float64 with all `parameters` in PyMC's order, as the `data` of a
    DictToArrayBijection."""

    def __init__(self, model: Any, threads: int | str | None = None) -> None:
        discrete = [variable.name for variable in model.discrete_value_vars]
        if discrete:
            raise ArgumentError(f"{', '.join(discrete)}: discrete variables have no place in a vector of numbers")
        self.model, self.threads = model, threads
        self._free = [model.rvs_to_values[variable] for variable in model.free_RVs]
        self.parameters: Sequence[Parameter] = parameters(self._free, shapes_of(model, self._free))
        self._q = T.tensor("float64", (self.dimension,), name="q")
        self._values = {
            variable: T.cast(T.reshape(self._q[part.start : part.end], part.shape), variable.type.dtype)
            for variable, part in zip(self._free, self.parameters, strict=True)
        }
        self._data: dict[Any, Node] = {}
        self._made: dict[str, Node] = {}

    @property
    def dimension(self) -> int:
        """The length of `q`."""
        return self.parameters[-1].end if self.parameters else 0

    @cached_property
    def _density(self) -> Node:
        return self._nodes([self.model.logp()])[0]

    def _nodes(self, variables: Sequence[Any]) -> list[Node]:
        """Return nodes for PyTensor variables over `q`; data become inputs."""
        table = OUTSIDE if self.model.check_bounds else UNCHECKED
        given = dict(self._values)
        for variable in leaves_of(variables):
            if variable not in given and hasattr(variable, "get_value"):
                self._input(variable)
        return table.values_of(variables, {**given, **self._data})

    def _function(self, results: Any) -> Bound:
        made = function(
            [self._q, *self._data.values()], results, on_unused_input="ignore", name="logp", threads=self.threads
        )
        return Bound(made, list(self._data))

    def _cached_function(self, what: str, make: Callable[[], Any]) -> Bound:
        """Return the function of the nodes that `make` builds. A function that any process has stored is loaded from
        the cache, without calling `make`. what: the name of the function in its key."""
        if self._identity is None:
            return self._function(make())
        text, data = f"{what} {self.parameters}\n{self._identity[0]}", self._identity[1]
        found = factory.find_code(text)
        if found is None:
            bound = self._function(make())
            factory.store_code(text, bound.function, [data.index(variable) for variable in bound.data])
            return bound
        used = [data[number] for number in found.note]
        inputs = [self._q, *[self._input(variable) for variable in used]]
        returns = "list" if what == "both" else "one"
        nodes = make if returns == "list" else lambda: [make()]
        made = factory.load_code(found, inputs, nodes, returns, self.threads)
        return Bound(made, used)

    @cached_property
    def _identity(self) -> tuple[str, list[Any]] | None:
        return text_of(self.model)

    def _input(self, variable: Any) -> Node:
        """Return the input for the value of a PyTensor shared variable."""
        if variable not in self._data:
            dtype = variable.get_value(borrow=True).dtype
            self._data[variable] = T.tensor(dtype, variable.type.shape, name=variable.name)
        return self._data[variable]

    @cached_property
    def logp(self) -> Bound:
        """The function from q to the log-density, a float64 array of rank 0."""
        return self._cached_function("value", lambda: self._density)

    @cached_property
    def dlogp(self) -> Bound:
        """The function from q to the gradient of the log-density, float64, as long as q."""
        return self._cached_function("gradient", lambda: grad(self._density, self._q))

    @cached_property
    def logp_dlogp(self) -> Bound:
        """The function from q to [log-density, gradient], in one kernel that shares their work."""
        return self._cached_function("both", lambda: [self._density, grad(self._density, self._q)])

    @cached_property
    def d2logp(self) -> Bound:
        """The function from q to the Hessian of the log-density, (len(q), len(q))."""
        return self._cached_function("curvature", lambda: hessian(self._density, self._q))

    def values(self, names: Sequence[str] | None = None) -> Bound:
        """Return the function from q to a dict of variables by name: free, transformed and deterministic ones. names:
        None for all."""
        chosen = [variable.name for variable in self.model.unobserved_value_vars] if names is None else list(names)
        return self._function(dict(zip(chosen, self._named(chosen), strict=True)))

    def _named(self, names: Sequence[str]) -> list[Node]:
        known = {variable.name: variable for variable in self.model.unobserved_value_vars}
        for name in names:
            if name not in known:
                raise ArgumentError(f"the model has no variable {name!r}; there are {', '.join(known)}")
        new = [name for name in dict.fromkeys(names) if name not in self._made]
        self._made.update(zip(new, self._nodes([known[name] for name in new]), strict=True))
        return [self._made[name] for name in names]

    def flat_values(self, names: Sequence[str]) -> Bound:
        """Return the function from q to one vector of float64: q, followed by the variables of these names."""
        parts = [T.cast(T.flatten(node), "float64") for node in self._named(names)]
        return self._function(T.concatenate([self._q, *parts]) if parts else self._q * 1.0)

    def shapes(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """Return {name: shape} of variables, for the model's data as they are now."""
        nodes = self._named(names)
        static = [tuple(size for size in node.type.shape if isinstance(size, int)) for node in nodes]
        if all(len(shape) == node.ndim for shape, node in zip(static, nodes, strict=True)):
            return static
        q = self.flat(self.model.initial_point())
        return [np.shape(value) for value in self._function(list(nodes))(q)]

    def pointer(self) -> Pointer:
        """Return the log-density and its gradient as a C function, over the data as they are now.

        `address` is that of int64 f(uint64 dim, double *x, double *grad, double *logp, void *user_data), which returns
        0 on success (functions/pointer.py). It is valid as long as the result lives, in any threads at once. `ctypes`
        is the same function for Python.
        """
        bound = self.logp_dlogp
        return Pointer("density", bound.function, [variable.get_value(borrow=True) for variable in bound.data])

    def flat(self, point: Mapping[str, Any]) -> Array:
        """Return the vector q of a point: a dict of values by the names of `parameters`, as `model.initial_point()`."""
        rows = [np.ravel(np.asarray(point[part.name], "float64")) for part in self.parameters]
        return np.concatenate(rows) if rows else np.zeros(0)


class Bound:
    """A function of q. It passes the model's data, as they are at each call, as further arguments to `function`."""

    def __init__(self, function: Function, data: Sequence[Any]) -> None:
        self.function, self.data = function, data

    def __call__(self, q: Any) -> Any:
        return self.function(q, *[variable.get_value(borrow=True) for variable in self.data])


def compile(model: Any) -> Model:
    """Return the functions of a PyMC model. Each is compiled at its first use, and stored in graphc's cache.

        >>> compiled = graphc.pymc.compile(model)
        >>> value, gradient = compiled.logp_dlogp(compiled.flat(model.initial_point()))

    Raises ArgumentError for a model with discrete free variables, and graphc.pytensor.Unknown for an op that is not in
    the table of `graphc.pytensor`: under the mode "GRAPHC" PyTensor itself would compute it.
    """
    return Model(model)


def shapes_of(model: Any, variables: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of value variables: those of their types, else those of the model's draws."""
    kinds = [variable.type.shape for variable in variables]
    if all(size is not None for kind in kinds for size in kind):
        return kinds
    drawn = model.eval_rv_shapes()
    return [tuple(map(int, drawn[variable.name])) for variable in variables]


def parameters(variables: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Parameter]:
    made, start = [], 0
    for variable, shape in zip(variables, shapes, strict=True):
        end = start + int(np.prod(shape, dtype=int))
        made.append(Parameter(variable.name, tuple(shape), start, end))
        start = end
    return made


def leaves_of(outputs: Sequence[Any]) -> list[Any]:
    """The variables without an owner that `variables` depend on."""
    seen = {arg: None for apply in applys([], outputs) for arg in apply.inputs if arg.owner is None}
    return [*seen, *(out for out in outputs if out.owner is None)]


# --- identity of a model ----------------------------------------------------------------------------------------------
# A text that identifies the log-density of a model, as a key for the cache (functions/factory.py): it differs where
# the log-densities of two models may differ. It is written from the variables as they were declared, in a tenth of the
# time that PyMC takes to build the log-density. None for a model with parts that no text identifies: functions of
# users, classes from outside of PyTensor and PyMC, development versions. The log-density of such a model is built each
# time.

PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis))
PACKAGES = (pymc, pytensor)
FOLDERS = tuple(os.path.dirname(package.__file__) + os.sep for package in PACKAGES)
FOLLOWING = frozenset(
    ("__doc__ _connection_pattern _lop_op_cache _lop_op_interface _rop_op_cache input_types output_types "
     "shared_inputs").split()
)  # fmt: skip
"""Attributes of ops that follow from other attributes, or have no effect."""
STATES: Mapping[str, tuple[str, ...]] = {
    "Composite": ("fgraph",),
    "GradClip": ("clip_lower_bound", "clip_upper_bound"),
    "GradScale": ("multiplier",),
    "Scan": ("info", "fgraph", "truncate_gradient"),
}
"""The attributes that distinguish ops of a class whose `__props__` do not."""
DISPATCHERS = ("_logprob", "_logcdf", "_logccdf", "_icdf")
"""PyMC's dispatchers for the log-density of an op; any program may register functions in them."""
SETTINGS = ("floatX", "cast_policy", "optimizer_including", "optimizer_excluding")


class Undecided(Exception):
    """A part of a model that no text identifies; the message names it."""


def text_of(model: Any) -> tuple[str, list[Any]] | None:
    """Return the text of a model's log-density, and its data (shared variables) in an order that the text determines.
    None where no text identifies the model."""
    versions = [package.__version__ for package in PACKAGES]
    if any("+" in version for version in versions):
        return None
    if type(model).logp is not pymc.Model.logp or "logp" in vars(model):
        return None
    teller = Serializer()
    try:
        lines = [
            *versions, teller.of([getattr(pytensor.config, name) for name in SETTINGS]),
            teller.of(bool(model.check_bounds)), rules(),
        ]  # fmt: skip
        for variable in model.basic_RVs:
            parts = (variable, model.rvs_to_values[variable], model.rvs_to_transforms[variable])
            lines.append(f"{variable in model.free_RVs}: {', '.join([teller.of(part) for part in parts])}")
        lines += [teller.of(potential) for potential in model.potentials]
    except Undecided:
        return None
    return "\n".join([*lines, *teller.lines]), list(teller.data)


def rules() -> str:
    """A digest of the rules by which PyMC finds log-densities of expressions: anybody may add some."""
    teller = Serializer()
    lines = list(rules_of(teller, rewriting.logprob_rewrites_db))
    return digest_of("\n".join([*lines, *teller.lines]).encode())


def rules_of(teller: Serializer, database: Any) -> Iterator[str]:
    for name, found in database.__db__.items():
        for rule in found:
            if isinstance(rule, RewriteDatabase):
                yield from rules_of(teller, rule)
            else:
                made = getattr(rule, "fn", None)
                yield f"{name}: {teller.of(type(rule) if made is None else made)}"


class Serializer:
    """Writes values down, variables and ops once each. lines: the definitions. data: the shared variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.data: dict[Any, str] = {}
        self.names: dict[Any, str] = {}
        self.kept: list[Any] = []

    def of(self, item: Any) -> str:
        """The text of a value."""
        kind = type(item)
        if kind in PLAIN:
            return repr(item)
        if kind is float:
            return float.hex(item)
        if kind in (tuple, list):
            return f"{kind.__name__}({', '.join([self.of(part) for part in item])})"
        if kind in (set, frozenset):
            return f"set({', '.join(sorted([self.of(part) for part in item]))})"
        if kind is slice:
            return f"slice({self.of([item.start, item.stop, item.step])})"
        if isinstance(item, Mapping):
            pairs = sorted(f"{self.of(key)}: {self.of(value)}" for key, value in item.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(item, np.ndarray | np.generic):
            if item.dtype.hasobject:
                raise Undecided("an array of objects")
            return f"array({item.dtype.str}, {item.shape}, {digest_of(item.tobytes())})"
        if isinstance(item, np.dtype):
            return f"dtype({item.str})"
        if isinstance(item, Variable):
            return self.variable(item)
        if isinstance(item, np.ufunc | type):
            return named(item)
        return self.once(item)

    def once(self, item: Any) -> str:
        """A reference to a value that is written down where it is met first."""
        if id(item) not in self.names:
            self.kept.append(item)
            self.names[id(item)] = f"an outer {type(item).__name__}"
            self.define(id(item), self.whole(item))
        return self.names[id(item)]

    def define(self, key: Any, text: str) -> None:
        self.names[key] = f"%{len(self.lines)}"
        self.lines.append(text)

    def whole(self, item: Any) -> str:
        if isinstance(item, FunctionType):
            return self.function(item)
        if isinstance(item, MethodType):
            return f"method({self.of(item.__func__)}, {self.of(item.__self__)})"
        if isinstance(item, FunctionGraph):
            return self.graph(item.inputs, item.outputs)
        name = named(type(item))
        return f"{name}({self.of(state(item))}){self.densities(item)}"

    def function(self, item: Any) -> str:
        """A function of PyMC's or PyTensor's: its place in their sources, and what it closes over."""
        code = item.__code__
        if not code.co_filename.startswith(FOLDERS):
            raise Undecided(f"the function {item.__qualname__}")
        try:
            cells = [cell.cell_contents for cell in item.__closure__ or ()]
        except ValueError as error:
            raise Undecided(f"a variable of the function {item.__qualname__}") from error
        others = [part for part in cells if part is not item]
        rest = self.of([others, item.__defaults__, item.__kwdefaults__])
        return f"function({item.__module__}, {item.__qualname__}, {code.co_firstlineno}, {rest})"

    def densities(self, item: Any) -> str:
        """Return the functions that PyMC's dispatchers have for the log-density of an op, as text."""
        if not isinstance(item, abstract.MeasurableOp):
            return ""
        found = [getattr(abstract, name).dispatch(type(item)) for name in DISPATCHERS]
        return f" of {', '.join([self.of(function) for function in found])}"

    def graph(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
        takes = []
        for number, variable in enumerate(inputs):
            self.define(variable, f"input {number}: {self.of(variable.type)}")
            takes.append(self.names[variable])
        return f"graph({', '.join(takes)}; {', '.join([self.of(out) for out in outputs])})"

    def variable(self, wanted: Any) -> str:
        """Return a reference to a variable, after writing the definitions that it needs."""
        if wanted in self.names:
            return self.names[wanted]
        for apply in applys([variable for variable in self.names if isinstance(variable, Variable)], [wanted]):
            args = [self.names.get(arg) or self.leaf(arg) for arg in apply.inputs]
            whole = self.of(apply.op)
            self.lines.append(f"{whole}({', '.join(args)})")
            place = len(self.lines) - 1
            for number, out in enumerate(apply.outputs):
                self.names[out] = f"%{place}.{number}: {self.of(out.type)}"
        return self.names.get(wanted) or self.leaf(wanted)

    def leaf(self, variable: Any) -> str:
        kind = self.of(variable.type)
        if isinstance(variable, Constant):
            self.define(variable, f"{kind} {self.of(variable.data)}")
        elif not hasattr(variable, "get_value"):
            self.define(variable, f"free {kind}")
        elif hasattr(variable.type, "dtype"):
            self.data[variable] = variable.name
            self.define(variable, f"data {variable.name!r} {kind} {variable.get_value(borrow=True).dtype}")
        else:
            self.define(variable, f"shared {kind}")
        return self.names[variable]


def named(item: Any) -> str:
    """The name of a class or a ufunc, where PyTensor, PyMC, NumPy or Python has it under that name."""
    module = "numpy" if isinstance(item, np.ufunc) else item.__module__
    root = module.partition(".")[0]
    found: Any = sys.modules.get(module)
    name = getattr(item, "__qualname__", item.__name__)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not item or root not in ("pymc", "pytensor", "numpy", "builtins", "scipy"):
        raise Undecided(f"{module}.{name}")
    return f"{module}.{name}"


def state(item: Any) -> Any:
    """The attributes that tell an object from others of its class."""
    kind = type(item)
    names = STATES.get(kind.__name__) or getattr(kind, "__props__", None) if isinstance(item, Op | Type) else None
    if names is not None:
        return {name: getattr(item, name) for name in names}
    if not hasattr(item, "__dict__"):
        raise Undecided(f"an object of type {kind.__name__}")
    return {name: value for name, value in vars(item).items() if name not in FOLLOWING}
