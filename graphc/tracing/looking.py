"""Looking at traced functions: `eval_shape`, `make_graph`, `disable_jit`.

eval_shape(f, x)       the shapes and dtypes of what f(x) gives, without computing it
make_graph(f)(x)       the text of the graph that f computes of such an x
with disable_jit():    functions that `jit` made run as plain Python
"""

from __future__ import annotations

import gc
from _thread import _local
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.arrays.dtypes import check_dtype, natural_dtype
from graphc.control.loop import title
from graphc.errors import GraphTypeError
from graphc.ir.node import Node, describe, plain, variable
from graphc.ir.pairs import is_pair, leaves_of, tree_of
from graphc.ir.source_lines import GIVEN, LEFT, TRACED
from graphc.ir.text import print_graph
from graphc.ir.walk import node_set
from graphc.ops.questions import Note, Number, sizes_at_hand
from graphc.tracing.arguments import NUMBERS, Static, names_of, sizes_of, with_parts
from graphc.tracing.callbacks import ShapeDtypeStruct
from graphc.tracing.programs import nodes_in, run
from graphc.tracing.traced import Jitted, builder_of
from graphc.tracing.variants import guarded, guards_of
from graphc.trees import leaves, like


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of the results of `fun(*args, **kwargs)`, in their structure, each as a
    `ShapeDtypeStruct`. Nothing is computed.

    args: arrays, numbers, or anything with a `shape` and a `dtype`, such as `ShapeDtypeStruct`; trees of them. Sizes of
    tensors are tensors. Raises
    GraphTypeError for a size that follows from values, and for an argument that has no shape.

        >>> graphc.eval_shape(lambda w, x: x @ w, np.ones((3, 2)), graphc.ShapeDtypeStruct((5, 3), "float32"))
        ShapeDtypeStruct(shape=(5, 2), dtype=float64)
    """
    variables, _, made = _traced(fun, args, kwargs, static_sizes=True)

    def shown(leaf: Any) -> ShapeDtypeStruct:
        node = plain(leaf) if is_pair(leaf) else nodes_in(fun, leaf)[0]
        for size in node.type.shape:
            if isinstance(size, Node) and node_set([size]) & set(variables):
                raise GraphTypeError(f"eval_shape of {title(fun)}: a size of {describe(node)} follows from values")
        return ShapeDtypeStruct(node.type.shape, node.type.dtype)

    return tree_of(made, [shown(leaf) for leaf in leaves_of(made)])


def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[..., str]:
    """Return a function of the arguments of `fun` that gives the text of the graph that `fun` computes of such ones:
    what JAX's `make_jaxpr` is. Static arguments as in `jit`. The text has one line for each op, and reads back by
    `graphc.parse_graph`. Where `fun` asks for sizes, they are those of the arguments: sizes that it is told are static,
    and other answers are `checked`. Raises GraphValueError for a static name that is no parameter; a call of the
    returned function raises GraphTypeError for an argument without shape and dtype.

        >>> print(graphc.make_graph(lambda x: jnp.sin(x))(np.ones(3)), end="")
        inputs x: float64[x.0]
        %0 = sin(x)  # float64[x.0]
        outputs %0
    """
    static = Static.of(fun, static_argnums, static_argnames)

    def text(*args: Any, **kwargs: Any) -> str:
        variables, notes, made = _traced(fun, args, kwargs, static)
        if not leaves(made):
            return "\n".join(map(str, variables))
        return print_graph(guarded(nodes_in(fun, made), variables, guards_of(notes, variables, ()))[0])

    text.__name__ = f"graph_of_{getattr(fun, '__name__', type(fun).__name__)}"
    return text


def _traced(
    fun: Callable[..., Any], args: Any, kwargs: Any, static: Static | None = None, static_sizes: bool = False
) -> tuple[list[Node], list[Note], Any]:
    """Return variables for the leaves of arguments, what a function was told of their sizes, and what it gives."""
    static = static or Static.of(fun, None, None)
    args, kwargs = with_parts(args, kwargs, static)
    parts, (fixed, _) = static.split(args, kwargs), static.places(len(args))
    given = leaves((parts.left, dict(parts.named)))
    names = names_of(fun, parts.left, parts.named, fixed)
    made = [_variable(fun, leaf, name, static_sizes) for leaf, name in zip(given, names, strict=True)]
    placed, keywords = like((parts.left, dict(parts.named)), made)
    whole = list(placed)
    for place, value in zip(fixed, parts.values, strict=True):
        whole.insert(place, value)
    known = [leaf for leaf in given if not isinstance(leaf, Node)]  # of a tensor no size is at hand
    own = [node for node, leaf in zip(made, given, strict=True) if not isinstance(leaf, Node)]
    try:
        inner = builder_of(fun)
        with sizes_at_hand(sizes_of(own, known)) as notes:
            found = run(title(fun), lambda *left: inner(*left, **keywords, **dict(parts.fixed)), whole)
    finally:
        LEFT.update(made)
    return made, notes, found


def _variable(fun: Any, leaf: Any, name: str, static_sizes: bool) -> Node:
    if type(leaf) in NUMBERS:
        made = variable(natural_dtype(leaf, name), (), name)
        made.__class__ = Number
    elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        dtype, shape = check_dtype(str(np.dtype(leaf.dtype))), leaf.type.shape if isinstance(leaf, Node) else leaf.shape
        made = variable(dtype, tuple(shape) if static_sizes else [None] * len(shape), name)
    else:
        raise GraphTypeError(f"{title(fun)}: {name} is {leaf!r}, which has no shape and dtype")
    TRACED[made] = f"{name}, an argument of {title(fun)}"
    GIVEN.add(made)
    return made


# --- without compiling ------------------------------------------------------------------------------------------------


class Disabled(_local):
    """Tell whether this thread runs jitted functions as they are."""

    def __init__(self) -> None:
        self.depth = 0


DISABLED = Disabled()


@contextmanager
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Run functions that `jit` made as plain Python, in this thread, so that `print` and `pdb` see arrays: a context
    manager. Functions of `graphc.numpy` and `graphc.lax` then compute at once. Derivatives and `vmap` are traced as
    ever, since that is what they are made by; so is a function that is called with tensors. Raises no error of its own.

        >>> @graphc.jit
        ... def f(x):
        ...     print(x)
        ...     return x + 1
        >>> with graphc.disable_jit():
        ...     f(np.arange(2))
        [0 1]
        array([1, 2])
    """
    if not disable:
        yield
        return
    compiled = Jitted.__call__

    def call(self: Jitted[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        is_own = DISABLED.depth and self.build is getattr(self, "__wrapped__", None)
        if not is_own or any(isinstance(leaf, Node) for leaf in leaves((args, kwargs))):
            return compiled(self, *args, **kwargs)
        return self.build(*args, **kwargs)

    for each in gc.get_objects():
        if issubclass(type(each), Jitted):
            each.use(None)  # otherwise its calls would go to machine code, past `__call__`
    DISABLED.depth += 1
    Jitted.__call__ = call  # type: ignore[method-assign]  # a check in the method itself would cost every call
    try:
        yield
    finally:
        DISABLED.depth -= 1
        Jitted.__call__ = compiled  # type: ignore[method-assign]


__all__ = ["disable_jit", "eval_shape", "make_graph"]
