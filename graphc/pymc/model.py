"""PyMC models as compiled functions of one flat vector.

In: a model. Out: its log-density over the unconstrained parameters, its derivatives, and its variables as functions of
these parameters. graphc compiles each from the graph that PyMC builds; PyTensor compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.autodiff import grad, hessian
from graphc.errors import ArgumentError
from graphc.functions import factory
from graphc.functions.callables import Function
from graphc.functions.function import function
from graphc.functions.pointer import Pointer
from graphc.ir.node import Array, Node
from graphc.pymc.identity import text_of
from graphc.pytensor.table import applys
from graphc.pytensor.tensors import OUTSIDE, UNCHECKED
from graphc.startup.record import record


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
        made = factory.load_code(found, inputs, lambda: nodes_in(make()), returns, self.threads)
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


def nodes_in(results: Any) -> Sequence[Node]:
    return results if isinstance(results, list) else [results]


def shapes_of(model: Any, variables: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of value variables: those of their types, else those of the model's draws."""
    kinds = [variable.type.shape for variable in variables]
    if all(size is not None for kind in kinds for size in kind):
        return kinds
    return [tuple(shape) for shape in model.eval_rv_shapes().values() if shape is not None]


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
