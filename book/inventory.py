"""The public names of graphc, as the reference lists them.

In: the modules of `MODULES`. Out: for each module its items; a function that has several names is one item:

    graphc.tensor  ->  Item("graphc.tensor", "max", <function max>, ("amax",), "reductions"), ...
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = {
    "graphc": "graphc", "graphc.tensor": "T", "graphc.tensor.linalg": "T.linalg", "graphc.nnet": "nnet",
    "graphc.numpy": "jnp", "graphc.numpy.linalg": "jnp.linalg", "graphc.numpy.fft": "jnp.fft", "graphc.lax": "lax",
    "graphc.scipy.special": "special", "graphc.scipy.linalg": "linalg", "graphc.scipy.stats": "stats",
    "graphc.scipy.optimize": "optimize", "graphc.scipy.integrate": "integrate", "graphc.scipy.fft": "fft",
    "graphc.scipy.signal": "signal",
    "graphc.scipy.interpolate": "interpolate", "graphc.random": "random", "graphc.sparse": "sparse",
    "graphc.layers": "layers", "graphc.train": "train", "graphc.preprocess": "preprocess", "graphc.optim": "optim",
    "graphc.optimizers": "optimizers", "graphc.distributed": "distributed", "graphc.cache": "cache",
    "graphc.printing": "printing", "graphc.session": "ts", "graphc.tree": "tree",
}  # fmt: skip
"""The modules, each with the name that it has in examples."""
OF_OPS = "classes of Theano's ops"
SECTIONS = {
    "ops.elementwise": "functions of elements", "graphc": "functions of elements",
    "graphc.tensor": "functions of elements",
    "theano.opclasses": OF_OPS, "tensor.elemwise": OF_OPS, "tensor.variables": "variables",
    "ir.node": "variables",
}  # fmt: skip
"""Titles of sections that the name of a module does not tell."""


@dataclass(frozen=True)
class Item:
    """One public function, class or object. home: its module. aliases: the other names that it has there."""

    home: str
    name: str
    value: Any
    aliases: tuple[str, ...]
    section: str

    @property
    def path(self) -> str:
        """The full name, such as `graphc.tensor.exp`."""
        return f"{self.home}.{self.name}"

    @property
    def doc(self) -> str:
        """The docstring, without indentation."""
        return inspect.getdoc(self.value) or ""

    @property
    def is_own(self) -> bool:
        """True for what graphc defines; False for what it passes on, such as `numpy.float64`."""
        home = getattr(self.value, "__module__", None) or type(self.value).__module__
        return home.startswith("graphc") and "\n-----" not in self.doc  # a docstring of NumPy's own

    @property
    def is_class(self) -> bool:
        return isinstance(self.value, type)


def module(name: str) -> ModuleType:
    """The module of a public name; `graphc.cache` and `graphc.nnet` are attributes."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        found: ModuleType = getattr(import_module(parent), last)
        return found


@cache
def items(home: str) -> list[Item]:
    """Return the public functions, classes and objects of a module, by name."""
    source = module(home)
    names: dict[int, list[str]] = {}
    for name in sorted(dir(source), key=lambda name: (name.lower(), name)):
        value = getattr(source, name) if name[0] != "_" else None
        if value is not None and not isinstance(value, ModuleType) and callable(value) and name not in OTHERS:
            names.setdefault(id(value), []).append(name)
    found = []
    for several in names.values():
        value = getattr(source, several[0])
        first = next((name for name in several if name == getattr(value, "__name__", None)), several[0])
        others = tuple(name for name in several if name != first)
        subject = getattr(module("graphc.tensor"), first, value) if home == "graphc.numpy" else value
        found.append(Item(home, first, value, others, section(subject)))
    return sorted(found, key=lambda item: (item.name.lower(), item.name))


OTHERS = {"python_all", "python_any"}
"""Python's own functions under other names."""


def defined_in(value: Any) -> str:
    """The module that defines an object, or its class."""
    inner = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else value
    return getattr(inner, "__module__", None) or type(value).__module__


def section(value: Any) -> str:
    """The title of the section that an item stands in: its subject."""
    home = defined_in(value)
    if home == "graphc":
        return SECTIONS[home]
    if type(value).__module__ in ("graphc.theano.opclasses", "graphc.tensor.elemwise"):
        return OF_OPS
    if type(value).__module__ == "graphc.tensor.variables":
        return "variables"
    inside = home.removeprefix("graphc.")
    return SECTIONS.get(inside) or (inside.rpartition(".")[2].replace("_", " ") if inside != home else "others")
