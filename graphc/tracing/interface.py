"""A jitted function as a function: its name and signature, pickles, `out=`; and what it is compiled to.

In: a `Jitted`, which traces and compiles. Out: the methods that it has besides.

    @graphc.jit
    def norm(x):
        return (x**2).sum() ** 0.5

    inspect.signature(norm)               (x)
    pickle.dumps(norm)                    by its name; `jit(f)` under another name by `f` and the settings
    norm(np.ones(4), out=np.empty(()))    the result is written to the array
    norm.explain(np.ones(4))              the report of the function that is compiled for such arguments
    norm.lower(np.ones(4)).text           the graph; nothing is compiled
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, reduce, wraps
from importlib import import_module
from inspect import Signature, signature
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from graphc.errors import ArgumentError, GraphcError, GraphTypeError
from graphc.functions.callables import Function, Memory, Profile
from graphc.startup.record import record, replace
from graphc.tracing.arguments import takes_keyword
from graphc.trees import map_leaves

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

OUT = "out"
"""The keyword of arrays for results."""

PUBLIC = (
    "as_numba", "as_ufunc", "explain", "export", "function_for", "functions", "lower", "memory", "pointer", "profile",
    "save", "source", "variants",
)  # fmt: skip
"""The public attributes of a jitted function, which `dir` lists."""


def remembered(transform: F) -> F:
    """Let what `transform` makes know how it was made, for pickles."""

    @wraps(transform)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = transform(*args, **kwargs)
        if isinstance(made, Interface):
            made.made_by = transform.__module__, transform.__name__, args, kwargs
        return made

    return call  # type: ignore[return-value]


def made_again(module: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Make the result of a transform again from its arguments, as pickles do."""
    return getattr(import_module(module), name)(*args, **kwargs)


class SignatureOf:
    """The `__signature__` of a jitted function: that of the function it was made of. The class has its own."""

    def __get__(self, function: Any, kind: object = None) -> Signature:
        if function is None:
            raise AttributeError("__signature__")
        try:
            return signature(function.__wrapped__)
        except ValueError as error:
            raise AttributeError("__signature__") from error


class Interface(Generic[P, R]):
    """The methods of a jitted function that do not trace or compile by themselves."""

    made_by: tuple[str, str, tuple[Any, ...], Mapping[str, Any]] | None = None
    """The transform that made it, by module and name, and its arguments."""
    __signature__ = SignatureOf()
    if TYPE_CHECKING:
        __name__: str
        __qualname__: str
        __wrapped__: Callable[P, R]

    def __dir__(self) -> list[str]:
        return [*(name for name in super().__dir__() if name.startswith("__")), *PUBLIC]

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self: Any) -> Any:
        """By name, where the module has it under its name; else by the transform and its arguments."""
        home, name = sys.modules.get(self.__module__), self.__qualname__
        if reduce(lambda place, part: getattr(place, part, None), name.split("."), home) is self:
            return name
        if self.made_by is None:
            raise PicklingError(f"{self!r} cannot be pickled: no module has it under its name {name}")
        return made_again, self.made_by

    @cached_property
    def has_out(self: Any) -> bool:
        """True where `out` is a parameter of the function itself, not the arrays for its results."""
        return takes_keyword(self, OUT)

    # --- what it is compiled to --------------------------------------------------------------------------------------

    def compiled_for(self: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Function:
        """The compiled function for arguments; without arguments, the only one that there is."""
        if args or kwargs or not self.functions:
            return self.function_for(*args, **kwargs)
        if len(self.functions) > 1:
            raise ArgumentError(f"{self.title} has {len(self.functions)} compiled functions: give arguments of one")
        return self.functions[0]

    def current_variants(self: Any) -> list[Any]:
        """The variants that a call may still take: those for other values from outside are left out. Raises GraphcError
        where there is none."""
        every: list[Any] = self.variants()
        found = [each for each in every if each.changed() is None]
        if not found:
            gone = f"{every[-1].changed()} has changed since its last call" if every else "it was not called yet"
            raise GraphcError(f"{self.title}: {gone}; call it first, since calls compile")
        return found

    def save(self: Any, path: Any, values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write all variants to a file, from which `graphc.load` makes a jitted function in any process. It runs the
        variants; its program is not there, so that other arguments are an error. values, targets: as `Function.save`.

        Raises GraphcError for a function that was not called, for arguments and results in other trees than tuples,
        lists and dicts, and for what `Function.save` refuses.

            f = graphc.jit(lambda x: x * 2)
            f(np.ones(3))
            f.save("f.graphc")
            graphc.load("f.graphc")(np.ones(5))      # array([2., 2., 2., 2., 2.])
        """
        import_module("graphc.tracing.saved_calls").save(self, path, values, targets)

    def export(
        self: Any,
        path: Any,
        language: str = "c",
        target: str | None = None,
        blas: bool = False,
        strided: Collection[str] | bool = (),
        part: str | None = None,
    ) -> list[str]:
        """Write a variant as a C library, or as a Python module that needs NumPy alone; return the paths. The leaves of
        its arguments are parameters, in order; results in a dict have the names of their keys in C. part: the number
        of the variant in `variants()`, as text, where there are several. The rest is as in `Function.export`.

        Raises GraphcError for a function that was not called, for another part, and for what `Function.export` refuses.

            f = graphc.jit(lambda x: {"twice": x * 2})
            f(np.ones(3))
            f.export("lib/f")                        # f(x, x_0, twice, twice_0, workspace, workspace_size)
        """
        export_part = import_module("graphc.functions.exported").export_part
        paths: list[str] = export_part(self, part, path, language, target, blas, strided)
        return paths

    def pointer(self: Any, signature: str | None = None, values: Sequence[Any] = (), part: str | None = None) -> Any:
        """Return a variant as a C function: `Function.pointer` tells more. The leaves of its arguments are parameters,
        in order, then those of its results. part: as in `export`.

        Raises GraphcError as `export` does, ArgumentError as `Function.pointer` does.

            f = graphc.jit(lambda x: jnp.exp(-x * x))
            f(0.0)
            scipy.integrate.quad(f.pointer("double (double)").scipy, 0, 1)[0]      # 0.746824132812427
        """
        return without_python(self, part).pointer(signature, values)

    def as_numba(self: Any, status: bool = False, part: str | None = None) -> Any:
        """Return a variant as a function of numba's, of the leaves of the arguments. It gives the result, or a tuple of
        the leaves where the result is a tree. status: as in `Function.as_numba`. part and errors: as in `pointer`.

            g = f.as_numba()
            total = numba.njit(lambda x: g(x) + 1.0)
        """
        return without_python(self, part).as_numba(status)

    def as_ufunc(self: Any, *others: Any, identity: int | None = None, part: str | None = None) -> Any:
        """Return a variant for numbers as a `numpy.ufunc`. others: further functions or jitted functions, whose dtypes
        differ. identity: as in `Function.as_ufunc`. part and errors: as in `pointer`.

            f = graphc.jit(lambda x, y: x * jnp.exp(y))
            f(1.0, 2.0)
            f.as_ufunc()(np.ones((3, 1)), np.arange(4))        # an array of 3 times 4
        """
        loops = [without_python(each, None) for each in others]
        return without_python(self, part).as_ufunc(*loops, identity=identity)

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """Return the report of the compilation for arguments like these, which is made where there is none yet. Without
        arguments, that of the only one that there is."""
        return self.compiled_for(args, kwargs).explain()

    def source(self, /, *args: Any, **kwargs: Any) -> str:
        """Return the generated Python source for arguments like these."""
        return self.compiled_for(args, kwargs).source

    def memory(self: Any, /, *args: Any, **kwargs: Any) -> Memory:
        """Return the bytes that a call with these arguments allocates, without running it. Raises GraphcError in the
        interpreted mode."""
        function: Function = self.function_for(*args, **kwargs)
        return function.memory(*self.find(args, kwargs)[1])

    def lower(self: Any, /, *args: Any, **kwargs: Any) -> Lowering:
        """Trace the function for arguments like these, arrays or objects that have a shape and a dtype, and compile
        nothing: the result has the graph as `text`, and `compile()`."""
        args, kwargs = map_leaves(stand_in, (args, kwargs))
        settings = replace(self.settings, mode="interpreted")
        traced = type(self)(self, self.build, self.static, settings, self.__name__).function_for(*args, **kwargs)
        return Lowering(self, args, kwargs, traced.text)

    @property
    def profile(self: Any) -> Profile | None:
        """The calls, seconds and iterations of all compiled functions, where `jit` was given profile=True; else
        None."""
        found = [function.profile for function in self.functions if function.profile is not None]
        if not found:
            return Profile() if self.settings.profile else None
        total = Profile()
        for name in ("calls", "seconds", "steps"):
            setattr(total, name, sum(getattr(each, name) for each in found))
        return total


def stand_in(leaf: Any) -> Any:
    """An array for what has only a shape and a dtype."""
    if hasattr(leaf, "__array__") or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)


@record(eq=False)
class Lowering:
    """A jitted function traced for some types of arguments. text: the graph, printed."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    text: str

    def as_text(self) -> str:
        """The graph, printed."""
        return self.text

    def compile(self) -> Executable:
        """Compile it."""
        return Executable(self.function, self.function.function_for(*self.args, **self.kwargs), self.args, self.kwargs)


@record(eq=False)
class Executable:
    """A jitted function compiled for some types of arguments; a call with other types raises GraphTypeError and
    compiles nothing. function: the compiled function of the leaves of the arguments. args, kwargs: those that it was
    lowered for; a call may leave out the static ones, as in JAX."""

    jitted: Any
    function: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        static = self.jitted.static
        places, others = static.places(len(self.args))
        if len(args) == len(others):
            left = iter(args)
            args = tuple([value if place in places else next(left) for place, value in enumerate(self.args)])
        kwargs = {name: self.kwargs[name] for name in static.names if name in self.kwargs} | kwargs
        if self.jitted.known_for(args, kwargs) is not self.function:
            raise GraphTypeError(f"{self.jitted.title} was compiled for arguments of other types than these")
        return self.jitted(*args, **kwargs)

    def as_text(self) -> str:
        """The graph, printed."""
        return self.function.text

    def explain(self) -> str:
        """Return the report of the compilation."""
        return self.function.explain()

    @property
    def source(self) -> str:
        """The generated Python source."""
        return self.function.source


def without_python(called: Any, part: str | None) -> Any:
    """Return the function of a variant, or a function itself."""
    return import_module("graphc.functions.exported").part_of(called, part)
