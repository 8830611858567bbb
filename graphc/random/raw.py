"""Random numbers of a state that is handed on, as Theano's `raw_random` has them.

In: the state of a stream, a variable of `random_state_type` or a shared variable of one, and what is to be drawn. Out:
the next state and the numbers. `RandomStreams` does the same with states of its own.

    rng = graphc.shared(np.random.RandomState(123))
    following, noise = raw_random.normal(rng, (3,))
    f = graphc.function([], noise, updates=[(rng, following)])

A generator of NumPy's stands for a state that follows from its own; the numbers are graphc's (docs/random.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from graphc.errors import GraphTypeError, GraphValueError, RankError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.shape import reshape
from graphc.random.distributions import fold_in, word
from graphc.random.streams import RandomStreams
from graphc.tensor.creation import arange
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.variables import TensorType

__all__ = [
    "MultinomialFromUniform", "RandomFunction", "RandomStateType", "RandomStreamsBase", "binomial", "choice",
    "multinomial", "normal", "permutation", "poisson", "random_integers", "random_state_type",
    "shuffle_row_elements", "uniform",
]  # fmt: skip

P = ParamSpec("P")


class RandomStateType(TensorType):
    """The class of the type of a state."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("uint64", (2,), "random_state_type")

    def __reduce__(self) -> Any:
        return RandomStateType, ()


random_state_type = RandomStateType()
"""The type of a state: its key, and how often was drawn."""


class _Drawing(RandomStreams):
    """A stream of a state that is given."""

    def __init__(self, state: Any, what: str) -> None:
        self.state = as_node(state)
        if self.state.type.dtype != "uint64" or self.state.ndim != 1:
            raise GraphTypeError(
                f"{what}: a random state has type {random_state_type}, not {describe(self.state)} of type "
                f"{self.state.type}; graphc.shared(np.random.RandomState(seed)) makes one"
            )

    def gen(self, op: Callable[..., Node], *args: Any, **kwargs: Any) -> Node:
        return op(fold_in(self.state[0], self.state[1]), *args, **kwargs)

    def following(self) -> Node:
        """The state after what was drawn."""
        return set_subtensor(self.state[1], self.state[1] + word(1))


def _of_state(
    method: Callable[Concatenate[RandomStreams, P], Node], **first: Any
) -> Callable[Concatenate[Any, P], tuple[Node, Node]]:
    """The function of a state that draws as a method of streams does, with other defaults for some parameters."""

    def draw(random_state: Any, *args: P.args, **kwargs: P.kwargs) -> tuple[Node, Node]:
        stream = _Drawing(random_state, method.__name__)
        known = signature.bind(random_state, *args, **kwargs).arguments
        del known["random_state"]
        return stream.following(), method(stream, **{**first, **known})  # type: ignore[call-arg]

    state, *parameters = inspect.signature(method).parameters.values()
    parameters = [each.replace(default=first.get(each.name, each.default)) for each in parameters]
    signature = inspect.Signature([state.replace(name="random_state"), *parameters])
    found: Any = _named(draw, method, "The next state, and what `RandomStreams` draws: ", signature)
    return found


def _by_gen(draw: Callable[Concatenate[Any, P], tuple[Node, Node]]) -> Callable[Concatenate[Any, P], Node]:
    """The method that draws by the `gen` of its class."""

    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> Node:
        drawn: Node = self.gen(draw, *args, **kwargs)
        return drawn

    state, *parameters = inspect.signature(draw).parameters.values()
    found: Any = _named(method, draw, "", inspect.Signature([state.replace(name="self"), *parameters]))
    return found


def _named(call: Any, like: Any, before: str, signature: inspect.Signature) -> Any:
    """A function with the name and the docstring of another, and a signature."""
    call.__name__ = call.__qualname__ = like.__name__
    call.__doc__, call.__signature__ = before + like.__doc__, signature
    return call


uniform = _of_state(RandomStreams.uniform)
normal = _of_state(RandomStreams.normal)
binomial = _of_state(RandomStreams.binomial)
random_integers = _of_state(RandomStreams.random_integers)
choice = _of_state(RandomStreams.choice, size=None)
poisson = _of_state(RandomStreams.poisson)
permutation = _of_state(RandomStreams.permutation, size=())
multinomial = _of_state(RandomStreams.multinomial)
shuffle_row_elements = _of_state(RandomStreams.shuffle_row_elements)


DRAWS: dict[str, Callable[..., tuple[Node, Node]]] = {
    each.__name__: each for each in (uniform, normal, binomial, random_integers, choice, poisson, permutation)
}


class RandomFunction:
    """A draw by NumPy's method or its name (`"uniform"`, …), of a type that is told: `op(state, size, *parameters)` is
    the next state and the numbers. A size of -1 stands for that of the parameters.

    Raises GraphValueError for a name that is none of `uniform`, `normal`, `binomial`, `random_integers`, `choice`,
    `poisson`, `permutation`, and for another function.
    """

    def __init__(self, fn: Any, outtype: Any, inplace: bool = False, ndim_added: int = 0) -> None:
        name = getattr(fn, "__name__", None)
        if isinstance(name, str) and fn == getattr(np.random.RandomState, name, None):
            fn = name
        draw = DRAWS.get(fn) if isinstance(fn, str) else None
        if draw is None:
            raise GraphValueError(f"RandomFunction: {fn!r} is not one of {', '.join(DRAWS)}")
        self.fn, self.draw, self.outtype, self.inplace, self.ndim_added = fn, draw, outtype, inplace, ndim_added

    def __call__(self, r: Any, shape: Any = None, *args: Any) -> tuple[Node, Node]:
        """The next state, and the numbers."""
        return self.draw(r, shape, *args, ndim=self.outtype.ndim - self.ndim_added, dtype=self.outtype.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomFunction) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.fn, str(self.outtype), self.ndim_added

    def __str__(self) -> str:
        return f"RandomFunction{{{self.fn}}}"


class RandomStreamsBase:
    """Draws of streams, for a subclass that has `gen(op, *args, **kwargs)`: `op` is one of the functions above, which
    it calls with a state of its own and the arguments, and it returns the numbers."""

    def gen(self, op: Callable[..., tuple[Node, Node]], *args: Any, **kwargs: Any) -> Node:
        """Draw; subclasses say of which state."""
        raise NotImplementedError(f"{type(self).__name__} has no gen")

    uniform = _by_gen(uniform)
    normal = _by_gen(normal)
    binomial = _by_gen(binomial)
    random_integers = _by_gen(random_integers)
    choice = _by_gen(choice)
    poisson = _by_gen(poisson)
    permutation = _by_gen(permutation)
    multinomial = _by_gen(multinomial)
    shuffle_row_elements = _by_gen(shuffle_row_elements)


# --- categories -------------------------------------------------------------------------------------------------------
# Theano's `sandbox.multinomial`: categories of uniform numbers that are given.
#
# In: chances, and numbers from 0 to below 1. Out: how often each category comes up.


class MultinomialFromUniform:
    """A function of chances, uniform numbers and how many of these each row has: counts of the categories.

    odtype: the dtype of the counts; "auto" for that of the chances. Called with pvals (rows, categories), unis
    (n * rows), the numbers of one draw after those of the other, and n = 1. A draw is the first category at which the
    sum of the chances is above its number; none where no sum is. Raises RankError for other ranks, ShapeError at a call
    for another count of numbers.
    """

    def __init__(self, odtype: str = "auto") -> None:
        self.odtype = odtype

    def __call__(self, pvals: Any, unis: Any, n: Any = 1) -> Node:
        chances, numbers, draws = as_node(pvals), as_node(unis), as_node(n)
        if (chances.ndim, numbers.ndim, draws.ndim) != (2, 1, 0):
            shown = ", ".join(f"{describe(each)} of type {each.type}" for each in (chances, numbers, draws))
            raise RankError(f"{self}: a matrix of chances, a vector of numbers and how many are wanted, not {shown}")
        rows, categories = chances.type.shape
        of_draws = reshape(numbers, (cast(draws, "int64"), rows, 1))
        above = chances.cumsum(axis=1) > of_draws
        first = above.argmax(axis=2).dimshuffle(0, 1, "x")
        counts = (elementwise("equal", first, arange(categories)) & above).sum(axis=0)
        return cast(counts, chances.type.dtype if self.odtype == "auto" else np.dtype(self.odtype).name)

    def __str__(self) -> str:
        return f"MultinomialFromUniform{{{self.odtype}}}"


explain_all(globals())
