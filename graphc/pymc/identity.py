"""A text that identifies the log-density of a PyMC model, as a key for the cache (functions/factory.py).

In: a model. Out: a text that differs wherever the log-densities of two models may differ. It is written from the
variables as they were declared, in a tenth of the time that PyMC takes to build the log-density. None for a model with
parts that no text identifies: functions of users, classes from outside of PyTensor and PyMC, development versions. The
log-density of such a model is built each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
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

from graphc.pytensor.table import applys
from graphc.startup.versions import digest_of

PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis))
PACKAGES = (pymc, pytensor)
FOLDERS = tuple(os.path.dirname(package.__file__) + os.sep for package in PACKAGES)
FOLLOWING = frozenset(
    ("__doc__ _connection_pattern _lop_op_cache _lop_op_interface _rop_op_cache input_types output_types "
     "shared_inputs").split()
)  # fmt: skip
"""Attributes of ops that follow from other attributes, or have no effect."""
STATES: Mapping[str, tuple[str, ...]] = {"Composite": ("fgraph",), "Scan": ("info", "fgraph", "truncate_gradient")}
"""The attributes that distinguish ops of a class without `__props__`."""
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
