"""Random numbers of a state that is handed on, as Theano's `raw_random` has them.

In: the state of a stream, a variable of `random_state_type` or a shared variable of one, and what is to be drawn. Out:
the next state and the numbers. `RandomStreams` does the same with states of its own.

    rng = graphc.shared(np.random.RandomState(123))
    following, noise = raw_random.normal(rng, (3,))
    f = graphc.function([], noise, updates=[(rng, following)])

A generator of NumPy's stands for a state that follows from its own; the numbers are graphc's (docs/random.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.errors import GraphTypeError, GraphValueError
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, describe
from graphc.ops.elementwise import as_node
from graphc.random.bits import fold_in, word
from graphc.random.streams import RandomStreams
from graphc.tensor.indexing import set_subtensor
from graphc.tensor.variables import TensorType

__all__ = [
    "RandomFunction", "RandomStateType", "RandomStreamsBase", "binomial", "choice", "multinomial", "normal",
    "permutation", "poisson", "random_integers", "random_state_type", "shuffle_row_elements", "uniform",
]  # fmt: skip


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
        if self.state.dtype != "uint64" or self.state.ndim != 1:
            raise GraphTypeError(
                f"{what}: a random state has type {random_state_type}, not {describe(self.state)} of type "
                f"{self.state.type}; graphc.shared(np.random.RandomState(seed)) makes one"
            )

    def gen(self, op: Callable[..., Node], *args: Any, **kwargs: Any) -> Node:
        return op(fold_in(self.state[0], self.state[1]), *args, **kwargs)

    def following(self) -> Node:
        """The state after what was drawn."""
        return set_subtensor(self.state[1], self.state[1] + word(1))


def uniform(
    random_state: Any, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: int | None = None, dtype: Any = None
) -> tuple[Node, Node]:
    """The next state, and numbers from `low` to below `high`."""
    stream = _Drawing(random_state, "uniform")
    return stream.following(), stream.uniform(size, low, high, ndim, dtype)


def normal(
    random_state: Any, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: int | None = None, dtype: Any = None
) -> tuple[Node, Node]:
    """The next state, and normal numbers of mean `avg` and standard deviation `std`."""
    stream = _Drawing(random_state, "normal")
    return stream.following(), stream.normal(size, avg, std, ndim, dtype)


def binomial(
    random_state: Any,
    size: Any = None,
    n: Any = 1,
    p: Any = 0.5,
    ndim: int | None = None,
    dtype: Any = "int64",
    prob: Any = None,
) -> tuple[Node, Node]:
    """The next state, and how many of `n` trials of chance `p` succeed."""
    stream = _Drawing(random_state, "binomial")
    return stream.following(), stream.binomial(size, n, p, ndim, dtype, prob)


def random_integers(
    random_state: Any, size: Any = None, low: Any = 0, high: Any = 1, ndim: int | None = None, dtype: Any = "int64"
) -> tuple[Node, Node]:
    """The next state, and whole numbers from `low` to `high`, both among them."""
    stream = _Drawing(random_state, "random_integers")
    return stream.following(), stream.random_integers(size, low, high, ndim, dtype)


def choice(
    random_state: Any,
    size: Any = None,
    a: Any = 2,
    replace: bool = True,
    p: Any = None,
    ndim: int | None = None,
    dtype: Any = "int64",
) -> tuple[Node, Node]:
    """The next state, and items of `a`, a vector or a number that stands for 0 … a - 1, of chances `p`."""
    stream = _Drawing(random_state, "choice")
    return stream.following(), stream.choice(size, a, replace, p, ndim, dtype)


def poisson(
    random_state: Any, size: Any = None, lam: Any = 1.0, ndim: int | None = None, dtype: Any = "int64"
) -> tuple[Node, Node]:
    """The next state, and Poisson numbers of mean `lam`."""
    stream = _Drawing(random_state, "poisson")
    return stream.following(), stream.poisson(size, lam, ndim, dtype)


def permutation(
    random_state: Any, size: Any = None, n: Any = 1, ndim: int | None = None, dtype: Any = "int64"
) -> tuple[Node, Node]:
    """The next state, and for each element of `size` the numbers 0 … n - 1 in random order, along the last axis."""
    stream = _Drawing(random_state, "permutation")
    return stream.following(), stream.permutation(() if size is None else size, n, ndim, dtype)


def multinomial(
    random_state: Any,
    size: Any = None,
    n: Any = 1,
    pvals: Any = (0.5, 0.5),
    ndim: int | None = None,
    dtype: Any = "int64",
) -> tuple[Node, Node]:
    """The next state, and how often each category of chances `pvals`, along the last axis, comes up in `n` trials."""
    stream = _Drawing(random_state, "multinomial")
    return stream.following(), stream.multinomial(size, n, pvals, ndim, dtype)


def shuffle_row_elements(random_state: Any, input: Any) -> tuple[Node, Node]:
    """The next state, and each row of a matrix in random order, of a vector its elements."""
    stream = _Drawing(random_state, "shuffle_row_elements")
    return stream.following(), stream.shuffle_row_elements(input)


DRAWS: dict[str, Callable[..., tuple[Node, Node]]] = {
    each.__name__: each for each in (uniform, normal, binomial, random_integers, choice, poisson, permutation)
}


class RandomFunction:
    """A draw by the name of NumPy's method (`"uniform"`, …), of a type that is told: `op(state, size, *parameters)` is
    the next state and the numbers. A size of -1 stands for that of the parameters.

    Raises GraphValueError for a name that is none of `uniform`, `normal`, `binomial`, `random_integers`, `choice`,
    `poisson`, `permutation`, and for other than a name.
    """

    def __init__(self, fn: str, outtype: Any, inplace: bool = False, ndim_added: int = 0) -> None:
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

    def binomial(
        self,
        size: Any = None,
        n: Any = 1,
        p: Any = 0.5,
        ndim: int | None = None,
        dtype: Any = "int64",
        prob: Any = None,
    ) -> Node:
        """How many of `n` trials of chance `p` succeed."""
        return self.gen(binomial, size, n, p if prob is None else prob, ndim=ndim, dtype=dtype)

    def uniform(
        self, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: int | None = None, dtype: Any = None
    ) -> Node:
        """Numbers from `low` to below `high`."""
        return self.gen(uniform, size, low, high, ndim=ndim, dtype=dtype)

    def normal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: int | None = None, dtype: Any = None
    ) -> Node:
        """Normal numbers of mean `avg` and standard deviation `std`."""
        return self.gen(normal, size, avg, std, ndim=ndim, dtype=dtype)

    def random_integers(
        self, size: Any = None, low: Any = 0, high: Any = 1, ndim: int | None = None, dtype: Any = "int64"
    ) -> Node:
        """Whole numbers from `low` to `high`, both among them."""
        return self.gen(random_integers, size, low, high, ndim=ndim, dtype=dtype)

    def choice(
        self,
        size: Any = None,
        a: Any = 2,
        replace: bool = True,
        p: Any = None,
        ndim: int | None = None,
        dtype: Any = "int64",
    ) -> Node:
        """Items of `a`, a vector or a number that stands for 0 … a - 1, of chances `p`."""
        return self.gen(choice, size, a, replace, p, ndim=ndim, dtype=dtype)

    def poisson(self, size: Any = None, lam: Any = 1.0, ndim: int | None = None, dtype: Any = "int64") -> Node:
        """Poisson numbers of mean `lam`."""
        return self.gen(poisson, size, lam, ndim=ndim, dtype=dtype)

    def permutation(self, size: Any = None, n: Any = 1, ndim: int | None = None, dtype: Any = "int64") -> Node:
        """For each element of `size` the numbers 0 … n - 1 in random order, along the last axis."""
        return self.gen(permutation, size, n, ndim=ndim, dtype=dtype)

    def multinomial(
        self,
        size: Any = None,
        n: Any = 1,
        pvals: Sequence[Any] = (0.5, 0.5),
        ndim: int | None = None,
        dtype: Any = "int64",
    ) -> Node:
        """How often each category of chances `pvals`, along the last axis, comes up in `n` trials."""
        return self.gen(multinomial, size, n, pvals, ndim=ndim, dtype=dtype)

    def shuffle_row_elements(self, input: Any) -> Node:
        """Each row of a matrix in random order, of a vector its elements."""
        return self.gen(shuffle_row_elements, input)


explain_all(globals())
