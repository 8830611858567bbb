"""Functions under NumPy's names.

In: one of NumPy's functions. Out: a function with its signature: NumPy's own where no argument is a tensor, and what
graphc has for it of tensors and in traced functions.

    jnp.sum = named("sum", np.sum)
    jnp.sum(np.ones(3))      np.sum(np.ones(3))
    jnp.sum(x)               a tensor, where x is one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from graphc.ir.at_once import at_once, is_plain, public
from graphc.ir.node import FUNCTIONS, Node
from graphc.ir.source_lines import TRACE, by_program
from graphc.numpy.extended import extended, without_jaxs
from graphc.ops.elementwise import as_node
from graphc.tensor.boundary import WRITERS, Call, apply_function, apply_ufunc, computed
from graphc.tensor.dispatch import call_function, call_ufunc, find_target, title, ufunc_target
from graphc.tensor.forms import OWN
from graphc.trees import leaves

F = TypeVar("F", bound=Callable[..., Any])

TRUTHS = {"allclose", "array_equal", "array_equiv"}
"""Functions that answer with a bool of Python's in NumPy, and with one of NumPy's here, which is an array in JAX."""
CALLABLE = (FunctionType, BuiltinFunctionType, type(np.sum))
"""The types of NumPy's functions."""


def target_of(function: Any) -> Callable[..., Any] | None:
    """The function of graphc for one of NumPy's."""
    if not isinstance(function, CALLABLE):
        return None
    if function in WRITERS:
        return WRITERS[function][1]
    own: Callable[..., Any] | None = OWN.get(title(function)) or find_target(function)
    return own


def has_function(function: Any) -> bool:
    """Tell whether graphc has one of NumPy's functions."""
    return target_of(function) is not None


def instead_of(theirs: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator of a function of tensors that has the name of one of NumPy's, which it leaves arrays to."""

    def decorate(function: F) -> F:
        return cast("F", at_once(function, theirs))

    return decorate


def of_arrays(name: str, function: Any) -> Callable[..., Any]:
    """One of NumPy's functions that graphc has not: of what holds no tensors NumPy's own, of tensors an error that says
    why."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, Node) for leaf in leaves((args, kwargs))):
            return call_function(function, args, kwargs)
        made = function(*args, **kwargs)
        if TRACE.depth:
            return computed(made)
        return made if "out" in kwargs else public(made)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(function, "__doc__", None)
    vars(call)["__wrapped__"] = function
    return call


def first_paragraph(function: Any) -> str:
    """Return the sentence that NumPy's docstring begins with, after the signature."""
    paragraphs = (function.__doc__ or "").split("\n\n")  # without docstrings under python -OO
    found = next((each for each in paragraphs if not each.startswith(f"{function.__name__}(")), "")
    return " ".join(found.split())


def function_for(name: str, function: Any) -> Callable[..., Any] | None:
    """One of NumPy's functions, of arrays and of tensors; None for what is no function."""
    if isinstance(function, np.ufunc):
        return Ufunc(name, function)
    if has_function(function):
        return named(name, function) if function in WRITERS else extended(name, named(name, function))
    return of_arrays(name, function) if isinstance(function, CALLABLE) else None


def offered(module: Any, namespace: dict[str, Any]) -> list[str]:
    """Define what a module of NumPy's offers; return the names."""
    names = [name for name in module.__all__ if name != "test"]
    namespace.update({name: function_for(name, getattr(module, name)) or getattr(module, name) for name in names})
    return sorted(names)


def named(name: str, function: Any) -> Callable[..., Any]:
    """One of NumPy's functions, of arrays and of tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and kwargs.get("where", kwargs) is None:
            del kwargs["where"]  # no mask, as of tensors and in JAX; to NumPy None is a mask that chooses nothing
        if is_plain(args, kwargs):
            made = function(*args, **kwargs)
            return made if "out" in kwargs else given(made)
        return call_function(function, args, kwargs)

    given = np.bool_ if name in TRUTHS else public
    if function in WRITERS:

        def call(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.pop("inplace", True):
                return changed_copy(function, args, kwargs)
            if is_plain(args, kwargs):
                return function(*args, **kwargs)
            return (apply_function if by_program() else call_function)(function, args, kwargs)

        vars(call)["explained"] = True  # it is given what it writes to

    call.__name__ = call.__qualname__ = name
    call.__doc__ = getattr(target_of(function), "__doc__", None) or first_paragraph(function)
    vars(call)["__wrapped__"] = function  # which `help` reads the signature from
    return call


def changed_copy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The copy of an array that one of NumPy's writing functions would make of it."""
    first, *rest = args
    if is_plain(args, kwargs):
        copy = np.array(first)
        function(copy, *rest, **kwargs)
        return public(copy)
    names, write = WRITERS[function]
    return write(as_node(first), **dict(zip(names.split()[1:], rest, strict=False)), **kwargs)


class Ufunc:
    """One of NumPy's functions of single elements, of arrays and of tensors, with its methods. of_tensors: the function
    of tensors, where `np.ufunc` of them means something else."""

    def __init__(self, name: str, ufunc: np.ufunc, of_tensors: Callable[..., Any] | None = None) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "graphc.numpy"
        self.__doc__ = getattr(of_tensors or ufunc_target(ufunc), "__doc__", None) or first_paragraph(ufunc)
        self.ufunc = ufunc
        self.of_tensors = of_tensors

    def __repr__(self) -> str:
        return f"<function {self.__name__} of arrays and tensors>"

    def __reduce__(self) -> str:
        """A copy, and what `pickle` loads, is the function itself, as of NumPy's."""
        return self.__name__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = without_jaxs(kwargs)
            dtype = kwargs.pop("preferred_element_type", None) if self.ufunc.signature else None
            if dtype is not None:
                return self(*args, **kwargs).astype(dtype)
        if is_plain(args, kwargs):
            made = self.ufunc(*args, **kwargs)
            return made if "out" in kwargs or len(args) > self.ufunc.nin else public(made)
        if self.of_tensors is None:
            if len(args) > self.ufunc.nin:
                args, kwargs = args[: self.ufunc.nin], {"out": args[self.ufunc.nin :], **kwargs}
            return (apply_ufunc if by_program() else call_ufunc)(self.ufunc, "__call__", args, kwargs)
        if not by_program():
            return self.of_tensors(*args, **kwargs)
        done = Call(self.of_tensors, args, kwargs)
        return done.finished(self.of_tensors(*done.args, **done.kwargs))

    def reduce(self, /, *args: Any, **kwargs: Any) -> Any:
        """Reduce as NumPy's `reduce`, along the first axis where no other is given."""
        return self._method("reduce", args, kwargs)

    def accumulate(self, /, *args: Any, **kwargs: Any) -> Any:
        """Accumulate as NumPy's `accumulate`."""
        return self._method("accumulate", args, kwargs)

    def reduceat(self, /, *args: Any, **kwargs: Any) -> Any:
        """Reduce slices as NumPy's `reduceat`; of arrays alone."""
        return self._method("reduceat", args, kwargs)

    def outer(self, /, *args: Any, **kwargs: Any) -> Any:
        """The function of each element of the first argument with each of the second."""
        return self._method("outer", args, kwargs)

    def at(self, /, *args: Any, **kwargs: Any) -> Any:
        """Write to elements as NumPy's `at`; of `add` and `subtract` in a traced function."""
        return self._method("at", args, kwargs)

    def _method(self, method: str, args: Any, kwargs: Any) -> Any:
        if is_plain(args, kwargs):
            return public(getattr(self.ufunc, method)(*args, **kwargs))
        return (apply_ufunc if by_program(3) else call_ufunc)(self.ufunc, method, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """NumPy's facts of the function: `nin`, `nout`, `types`, `identity` and the rest."""
        if name[0] == "_":
            raise AttributeError(f"{self.__name__} has no attribute {name!r}")
        return getattr(self.ufunc, name)


class Indexed:
    """One of NumPy's objects that make arrays of an index: `r_`, `c_`, `mgrid`, `ogrid`; of tensors that of graphc."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self.theirs, self.ours = theirs, ours
        self.__doc__ = type(ours).__doc__

    def __getitem__(self, key: Any) -> Any:
        parts = [(k.start, k.stop, k.step) if isinstance(k, slice) else k for k in np.index_exp[key]]
        return public(self.theirs[key]) if is_plain(parts, {}) else self.ours[key]

    def __repr__(self) -> str:
        return repr(self.ours)


class ScalarClass(type):
    """The class of `jnp.float32` and kin: NumPy's types of scalars, which convert tensors too.

    jnp.float32(x)         a tensor of float32, where x is a tensor or a list with one; else np.float32(x)
    x.astype(jnp.float32)  as with np.float32, to which it is equal
    """

    of: type[np.generic]
    convert: Callable[..., Any]

    def __call__(cls, /, *args: Any) -> Any:
        has_tensors = any(isinstance(leaf, Node) for leaf in leaves(args))
        return cls.convert(*args, dtype=cls.of) if has_tensors else public(cls.of(*args))

    def __instancecheck__(cls, instance: Any) -> bool:
        traced = TRACE.depth and isinstance(instance, Node)
        return issubclass(FUNCTIONS["class_of"](instance) if traced else type(instance), cls.of)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.of)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.of == other

    def __hash__(cls) -> int:
        return hash(cls.of)


def scalar_class(of: type[np.generic], convert: Callable[..., Any]) -> ScalarClass:
    """The class of `graphc.numpy` for one of NumPy's types of scalars, of which np.bool_ takes no subclass.
    convert: the function that makes tensors, `jnp.array`."""
    name, example = of.__name__, np.array([1, 0], of)
    errors = "ValueError for rows of different lengths" + (
        ", OverflowError for a number out of range" * ("int" in name)
    )
    doc = (
        f"NumPy's scalars of {name}; tensors are converted. Raises {errors}.\n\n"
        f"    >>> jnp.{name}([1, 0])\n    {example!r}\n"
    )
    own = {"__module__": "graphc.numpy", "__doc__": doc, "of": of, "convert": staticmethod(convert)}
    return ScalarClass(of.__name__, () if of is np.bool_ else (of,), {**own, "dtype": np.dtype(of)})
