"""Products with derivatives of functions: `jvp`, `vjp`, `linearize`, `hvp`.

In: a function of arrays and its arguments. Out: its value, and its derivative as a product or a function of vectors:

    value, tangent = jvp(f, (x,), (t,))         J t
    value, pull = vjp(f, x); (g,) = pull(v)     v J
    value, push = linearize(f, x); push(t)      J t, for one tangent after the other

Of tensors these are graphs. Of arrays they are computed at once, by compiled code. What `vjp` and `linearize` return
for arrays is compiled in two parts (`Split`): the first computes the value, and whatever the product needs of it; the
second takes that, and a vector. The function is traced at each call of `jvp`, `vjp` and `linearize`, as it may use what
has changed since: in a loop, call them within a function that `jit` compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc import autodiff
from graphc.control.loop import title
from graphc.errors import GradientError, GraphTypeError
from graphc.ir.node import LEAVES, Node, describe, variable
from graphc.ir.pairs import conjugated
from graphc.ir.sizes import shapes_differ
from graphc.ir.source_lines import TRACE
from graphc.ir.text import print_graph
from graphc.ir.walk import dependents, nodes_of, rebuilt
from graphc.ops.elementwise import as_node, cast
from graphc.ops.shape import with_static_sizes
from graphc.options import options
from graphc.startup.record import replace
from graphc.tensor import boundary
from graphc.tensor.elementary import stop_gradient as held_gradient
from graphc.tracing.custom import zeros_of
from graphc.tracing.derivatives import Opened, grad, opened, retraceable
from graphc.tracing.programs import is_float_node, nodes_in
from graphc.trees import leaves, like, map_leaves, outline, paths, structure


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Return `(value, tangent)`: the value of `fun(*primals)`, and its derivative along `tangents`.

    primals: the arguments, a tuple or list; tangents: as many, each in the structure and shapes of its argument. The
    tangent has the structure, shapes and dtypes of the value. What is not floating has no derivative: its tangent is
    not looked at, that of a result is zero. has_aux: `fun` returns `(value, aux)`, and the result is `(value, tangent,
    aux)`. Of tensors the result is a graph. Raises GradientError where tangents do not fit.

        >>> graphc.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.ones(2),))
        (array([1., 4.]), array([2., 4.]))
    """
    count = _checked("jvp", fun, primals, tangents)

    def build(*both: Any) -> Any:
        done = _opened("jvp", fun, both[:count], has_aux)
        product = _pushed("jvp", fun, done, both[count:])
        return done.restored((done.outputs, product, *([done.aux] if has_aux else [])))

    return _at_once(fun, build, (*primals, *tangents))


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `(value, pull)`: the value of `fun(*primals)`, and a function of a cotangent.

    `pull(cotangent)` takes a cotangent in the structure and shapes of the value, and returns a tuple: the cotangent of
    each argument, in its structure and shapes, zeros for what is not floating. It may be called again and again; what
    `fun` has computed is kept for it. has_aux: `fun` returns `(value, aux)`, and the result is `(value, pull, aux)`. Of
    tensors value and cotangents are graphs. `pull` raises GradientError for a cotangent that does not fit.

        >>> value, pull = graphc.vjp(lambda x, y: x * y, 3.0, 4.0)
        >>> value, pull(1.0)
        (np.float64(12.0), (np.float64(4.0), np.float64(3.0)))
    """
    return _split("vjp", fun, primals, has_aux, _pulled)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `(value, push)`: the value of `fun(*primals)`, and its derivative, a linear function.

    `push(*tangents)` takes a tangent for each argument, in its structure and shapes, and returns that of the value.
    What `fun` has computed is kept, so that a call costs the derivative alone. has_aux: as of `vjp`. `push` raises
    GradientError for tangents that do not fit.

        >>> value, push = graphc.linearize(lambda x: x**3, 2.0)
        >>> value, push(1.0), push(2.0)
        (np.float64(8.0), np.float64(12.0), np.float64(24.0))
    """
    return _split("linearize", fun, primals, has_aux, _pushed)


def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], argnums: int | Sequence[int] = 0
) -> Any:
    """Return the product of the second derivatives of `fun` with `tangents`: the derivative of `grad(fun, argnums)`.

    fun: returns a floating scalar. primals: its arguments; tangents: a vector for each, in its structure and shapes.
    The result has the structure and shapes of the argument at `argnums`, a tuple for several: for one argument it is
    the Hessian times the vector. It costs a few times what `fun` does, and makes no Hessian. Errors are those
    of `jvp` and `grad`.

        >>> graphc.hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        array([6., 0.])
    """
    return jvp(grad(fun, argnums), primals, tangents)[1]


def stop_gradient(x: Any) -> Any:
    """Return `x`, an array or a tree of them, as constants: derivatives go no further. Of arrays it is `x` itself.
    Raises no error: a value that is no array stays as it is.

    >>> graphc.grad(lambda x: x * graphc.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return map_leaves(lambda leaf: held_gradient(leaf) if isinstance(leaf, Node) else leaf, x)


# --- the parts --------------------------------------------------------------------------------------------------------


def _checked(by: str, fun: Any, primals: Any, tangents: Any) -> int:
    """Return the number of primals, after checking that there is a tangent for each."""
    for name, each in (("primals", primals), ("tangents", tangents)):
        if not isinstance(each, tuple | list):
            raise GraphTypeError(f"{by} of {title(fun)}: {name} must be a tuple or a list, not {each!r}")
    if len(primals) != len(tangents):
        count = f"{len(primals)} primals and {len(tangents)} tangents"
        raise GradientError(f"{by} of {title(fun)}: there are {count}")
    return len(primals)


def _at_once(fun: Callable[..., Any], build: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return what `build` gives for arguments: a graph of tensors, values of arrays."""
    if _is_symbolic(args):
        return build(*args)
    return retraceable(fun, build)(*args)


def _is_symbolic(args: Any) -> bool:
    return bool(TRACE.depth) or any(isinstance(leaf, Node) for leaf in leaves(args))


def _opened(by: str, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> Opened:
    done = opened(by, fun, tuple(range(len(primals))), has_aux, tuple(primals), {}, floats_only=False)
    return replace(done, results=nodes_in(fun, done.outputs))


def _fitting(by: str, fun: Any, what: str, given: Any, own: Any, nodes: Sequence[Node]) -> list[tuple[Node, Node]]:
    """Return pairs of a floating node and the vector for it. own: the tree of the nodes.

    Raises GradientError where a vector has another structure, rank or size than its node.
    """
    if structure(given) != structure(own):
        raise GradientError(f"{by} of {title(fun)}: the {what} must be like {outline(own)}, not {outline(given)}")
    pairs = []
    for node, leaf, path in zip(nodes, leaves(given), paths(own, what), strict=True):
        if not is_float_node(node):
            continue
        vector = as_node(leaf)
        if shapes_differ(vector.type.shape, node.type.shape):
            raise GradientError(
                f"{by} of {title(fun)}: {path} is {vector.type}, and must have the shape of {describe(node)}, "
                f"{node.type}"
            )
        pairs.append((node, autodiff.of_sizes_of(node, cast(vector, node.type.dtype))))
    return pairs


def _pushed(by: str, fun: Any, done: Opened, tangents: Sequence[Any]) -> Any:
    """Return the tangents of the results, in their tree."""
    pairs = _fitting(by, fun, "tangents", tuple(tangents), done.tree, done.targets)
    ends = [node for node in done.results if is_float_node(node)]
    found: dict[Node, Node] = {}
    if ends and pairs:
        wrt, along = zip(*pairs, strict=True)
        found = dict(zip(ends, autodiff.jvp(ends, list(wrt), list(along), disconnected_inputs="ignore"), strict=True))
    return like(done.outputs, [found.get(node, zeros_of(node)) for node in done.results])


def _pulled(by: str, fun: Any, done: Opened, cotangents: Sequence[Any]) -> Any:
    """Return the cotangents of the arguments, in their tree."""
    if len(cotangents) != 1:
        raise GradientError(f"{by} of {title(fun)}: one cotangent is to be given, like {outline(done.outputs)}")
    pairs = _fitting(by, fun, "cotangent", conjugated(cotangents[0]), done.outputs, done.results)
    wrt = [node for node in dict.fromkeys(done.targets) if is_float_node(node)]
    found: dict[Node, Node] = {}
    if wrt and pairs:
        ends, along = zip(*pairs, strict=True)
        found = dict(zip(wrt, autodiff.vjp(list(ends), wrt, list(along), disconnected_inputs="ignore"), strict=True))
    return conjugated(like(done.tree, [found.get(node, zeros_of(node)) for node in done.targets]))


# --- value and product apart ------------------------------------------------------------------------------------------

Product = Callable[[str, Any, Opened, Sequence[Any]], Any]
"""`_pushed` or `_pulled`."""


def _split(by: str, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, product: Product) -> Any:
    if _is_symbolic(primals):
        done = _opened(by, fun, primals, has_aux)

        def apply(*vectors: Any) -> Any:
            made = done.restored(product(by, fun, done, vectors))
            return boundary.owned(made) if TRACE.depth else made  # which a traced program may write to

        return done.restored(done.outputs), apply, *([done.restored(done.aux)] if has_aux else [])
    split = Split(by, fun, primals, has_aux, product)
    return split.value, split, *([split.aux] if has_aux else [])


class Split:
    """The product of arrays as a function of vectors: `pull` and `push` of `vjp` and `linearize`.

    What the product needs that no vector changes is computed with the value, and kept. value, aux: the results.
    """

    def __init__(
        self, by: str, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, product: Product
    ) -> None:
        self.by, self.fun, self.primals, self.has_aux, self.product = by, fun, primals, has_aux, product
        self.text = ""
        self.value, self.aux, self.kept = retraceable(fun, self.first)(*primals)
        self.apply = retraceable(fun, self.second)

    def __repr__(self) -> str:
        return f"<{self.by} of {title(self.fun)}>"

    def __call__(self, *vectors: Any) -> Any:
        if _is_symbolic(vectors):
            return self.second(*self.primals, self.kept, vectors)
        return self.apply(*self.primals, self.kept, vectors)

    def first(self, *primals: Any) -> Any:
        """Return the value, what else the function returns, and what is kept."""
        done = _opened(self.by, self.fun, primals, self.has_aux)
        whole, args = (done.outputs, done.results) if self.product is _pulled else (done.tree, done.targets)
        vectors = like(whole, [_vector(node) for node in args])
        made = leaves(self.product(self.by, self.fun, done, (vectors,) if self.product is _pulled else vectors))
        kept = kept_for(made, leaves(vectors))
        self.text = print_graph(kept) if kept else ""
        return done.restored((done.outputs, done.aux, kept))

    def second(self, *given: Any) -> Any:
        """Return the product, from the primals, what is kept, and the vectors."""
        *primals, kept, vectors = given
        done = _opened(self.by, self.fun, primals, self.has_aux)
        made = self.product(self.by, self.fun, done, vectors)
        own = kept_for(leaves(made), [each for each in leaves(vectors) if isinstance(each, Node)])
        # Another trace, for axes of one element, may need other values; those are computed anew.
        if len(own) == len(kept) and own and print_graph(own) == self.text:
            pairs = zip(own, kept, strict=True)
            replaced = {node: with_static_sizes(node, as_node(value), "kept value") for node, value in pairs}
            made = map_leaves(lambda node: rebuilt(replaced, as_node(node), done.since), made)
        return done.restored(made)


def _vector(node: Node) -> Node:
    return variable(node.type.dtype if is_float_node(node) else options.floatX, node.type.shape)


def kept_for(made: Sequence[Any], vectors: Sequence[Node]) -> list[Node]:
    """Return the values that a product needs and no vector changes: what is computed of vectors is computed of these,
    of arguments, and of sizes."""
    order = nodes_of([as_node(each) for each in made])
    after = dependents(order, vectors)
    pending = [arg for node in order if node in after for arg in node.args if arg not in after]
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in seen or node.op in LEAVES or node.is_tuple or (not node.ndim and node.type.dtype == "int64"):
            continue
        seen.add(node)
        if node.op.cost == 0.0 and not node.args[0].is_tuple:  # a view: what it shows is kept
            pending += node.args
        else:
            found[node] = None
    return [node for node in order if node in found]


__all__ = ["hvp", "jvp", "linearize", "stop_gradient", "vjp"]
