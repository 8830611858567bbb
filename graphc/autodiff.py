"""Reverse-mode differentiation from graph to graph: `grad`, `vjp`, `jvp`, Jacobians and Hessians.

In: nodes. Out: nodes of the same graph language, so that derivatives can be differentiated again, and go through the
same rewrites, scheduler and cache. The arguments of `grad` are Theano's.

    x = T.dvector("x")
    (x**2).sum()                          cost
    graphc.grad((x**2).sum(), x)          a node: 2 * x, computed from x
    graphc.vjp(x**2, x, v)                v J = 2 * x * v, for a cotangent v of the shape of x**2
    graphc.jvp(x**2, x, t)                J t = 2 * x * t, for a tangent t of the shape of x

`_gradients` does the work: it goes over the graph from the cost to the targets, and adds up the cotangents that each
node passes on to its arguments (`_pull_back`). The op of the node says which: `Op.vjp(node, cotangent)`.

`jvp` is the transpose of the transpose: `vjp` is linear in its cotangents, so that differentiating it with respect to
them gives J t.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from graphc import errors
from graphc.arrays.dtypes import can_cast_safely, is_float, is_inexact
from graphc.ir import sizes
from graphc.ir.body import ITEM, close, item
from graphc.ir.call_errors import explained
from graphc.ir.node import OPS, Complex, Guard, Node, describe, literal, make, next_serial, pair, variable
from graphc.ir.sizes import shapes_differ
from graphc.ir.source_lines import lazy_format, warn_user
from graphc.ir.walk import mention, nodes_of, rebuilt, substitute
from graphc.ops.branch import sink_into_branches
from graphc.ops.custom import DIRECTION, OWN, Absent, DisconnectedType, NullType
from graphc.ops.derivative import Masks, hold_shifts, release, routes
from graphc.ops.elementwise import aligned, cast, elementwise
from graphc.ops.scan import depends_on_loop, scan_node
from graphc.ops.shape import concatenate, expand, filled, guard_axis, iota, zeros
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.process import temporarily
from graphc.trees import as_list

Nodes: TypeAlias = "Node | Sequence[Node]"
Disconnected: TypeAlias = Literal["raise", "warn", "ignore"]

WRITTEN_OUT = 4
"""The most rows of a Jacobian that are written out; more become a loop."""


def grad(
    cost: Any,
    wrt: Any = None,
    consider_constant: Iterable[Node] | None = None,
    disconnected_inputs: Disconnected = "raise",
    add_names: bool = True,
    known_grads: Mapping[Node, Any] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
    **of_function: Any,
) -> Any:
    """Return the gradient of a scalar `cost` with respect to `wrt`.

    For a function of arrays, `grad(f, argnums=0, has_aux=False, *, static_argnums=None, static_argnames=None)` returns
    a function of the same arguments, as in JAX; see docs/jit.md. The rest is about nodes.

    wrt: a node, or a list or tuple of nodes, inputs or intermediate values. The result has the same structure, each
    gradient the dtype and shape of its node. consider_constant: nodes that count as constants. known_grads: {node: its
    gradient}, from which differentiation goes on; `cost` may then be None. disconnected_inputs: for a `wrt` that the
    cost does not depend on, "raise" raises DisconnectedInputError, "warn" and "ignore" return zeros.
    return_disconnected: "zero"; or in place of zeros None ("None"), or a variable of `DisconnectedType`
    ("Disconnected"). add_names: name gradients (dcost/dx) where both have names. null_gradients: where an op says that
    its derivative is undefined, "raise" raises NullTypeGradError, "return" returns a variable of `NullType`.

    Dependence through integers alone (a comparison, a rounding cast, an integer cost) has gradient zero. A `wrt` of
    integers counts as the real numbers that it is cast to; its gradient is floating. Raises CostError where the cost is
    no scalar, GradientError where an op has no derivative.

        >>> x = T.dvector("x")
        >>> graphc.grad((x**2).sum(), x).eval({x: [1, 2]})
        array([2., 4.])
    """
    if _is_function_alone(cost, of_function):
        return HOOKS.of_functions.grad(cost, **_chosen(wrt, of_function), **of_function)
    if any(hasattr(target, "with_data") for target in as_list(wrt)):
        return _of_entries(
            wrt,
            partial(
                grad,
                cost,
                consider_constant=consider_constant,
                known_grads=known_grads,
                disconnected_inputs=disconnected_inputs,
                return_disconnected=return_disconnected,
            ),
        )
    targets = as_list(wrt)
    seeds = _seeds(cost, known_grads)
    if null_gradients not in ("raise", "return") or return_disconnected not in ("zero", "None", "Disconnected"):
        words = f"null_gradients={null_gradients!r} or return_disconnected={return_disconnected!r}"
        raise errors.GradientError(f"{words}: one is 'raise' or 'return', the other 'zero', 'None' or 'Disconnected'")
    since = next_serial()
    fresh, cotangents = _at_own_sizes(seeds)
    gradients = _gradients(fresh, targets, consider_constant or (), disconnected_inputs)
    if cotangents:
        gradients = _each_made(gradients, partial(_with, cotangents))
    results: list[Any] = []
    for target, each in zip(targets, gradients, strict=True):
        gradient: Any = each
        if isinstance(gradient, Absent) and gradient.is_null and null_gradients == "raise":
            raise errors.NullTypeGradError(f"the gradient by {describe(target)} is undefined: {_why(gradient)}")
        if isinstance(gradient, Absent) and not gradient.is_null and return_disconnected != "Disconnected":
            gradient = None if return_disconnected == "None" else _zeros_of(target)
        named = cost.name if add_names and cost is not None and target.name else None
        if named and isinstance(gradient, Node) and gradient.serial > since and gradient.args and not gradient.name:
            gradient.name = f"(d{named}/d{target.name})"
        results.append(gradient)
    return _like(wrt, results)


def _of_entries(wrt: Any, gradients: Callable[[list[Node]], list[Node]]) -> Any:
    """Return gradients where some targets are sparse matrices: those are sparse with entries at the same places."""
    targets = as_list(wrt)
    of_data = gradients([target.data if hasattr(target, "with_data") else target for target in targets])
    pairs = zip(targets, of_data, strict=True)
    return _like(wrt, [target.with_data(each) if hasattr(target, "with_data") else each for target, each in pairs])


def subgraph_grad(
    wrt: Sequence[Node],
    end: Sequence[Node],
    start: Mapping[Node, Any] | None = None,
    cost: Node | None = None,
    details: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of a part of a graph with respect to `wrt` and `end`, at which differentiation stops.

    start: {node: its known gradient}; cost: a scalar. Gradients from both are added. Returns two lists, for `wrt` and
    `end`; details: two more lists, the parts from `start` and from `cost` (None where not given), for the nodes of both
    without repetition. A node that nothing depends on has gradient zero. Raises GradientError without `start` and
    `cost`.

        >>> x, v, w, t = T.dvector("x"), T.dmatrix("v"), T.dvector("w"), T.dscalar("t")
        >>> h = T.tanh(T.dot(x, v))
        >>> (dw,), (dh,) = subgraph_grad([w], [h], cost=((T.dot(h, w) - t) ** 2).sum())
        >>> (dv,), _ = subgraph_grad([v], [x], start={h: dh})
    """
    if cost is None and start is None:
        raise errors.GradientError("subgraph_grad needs a cost or start")
    params = list(dict.fromkeys([*wrt, *end]))
    parts = [
        None
        if all(item is None for item in (of, known))
        else grad(of, params, consider_constant=end, disconnected_inputs="ignore", known_grads=known)
        for of, known in ((None, start), (cost, None))
    ]
    given = [part for part in parts if part is not None]
    total = {node: given[0][n] if len(given) == 1 else _add(given[0][n], given[1][n]) for n, node in enumerate(params)}
    both = [total[node] for node in wrt], [total[node] for node in end]
    return (*both, *parts) if details else both


def value_and_grad(cost: Any, wrt: Any = None, **arguments: Any) -> Any:
    """Return the pair `(cost, grad(cost, wrt, ...))`. As outputs of one function the two share common work.

    The arguments, dtypes and shapes are those of `grad`. For a function of arrays, return a function that computes the
    value and the gradient. Raises what `grad` raises: CostError for a cost that is no floating scalar.

        >>> square = graphc.value_and_grad(lambda x: (x**2).sum())
        >>> square(np.array([1.0, 2.0]))
        (np.float64(5.0), array([2., 4.]))
    """
    if _is_function(cost, arguments):
        return HOOKS.of_functions.value_and_grad(cost, **_chosen(wrt, arguments), **arguments)
    return cost, grad(cost, wrt, **arguments)


def _is_function(cost: Any, arguments: Mapping[str, Any]) -> bool:
    """True where `cost` is a function of arrays. Raises GraphTypeError for a node with arguments for functions."""
    if callable(cost) and not isinstance(cost, Node):
        return True
    for name in arguments:
        if name in ("argnums", "has_aux", "mode", "static_argnums", "static_argnames", "threads"):
            raise errors.GraphTypeError(f"{name} is for derivatives of functions; {cost!r} is none: give wrt")
    return False


def _is_function_alone(cost: Any, others: Mapping[str, Any]) -> bool:
    """Return `_is_function`; raise TypeError for any of `others` where `cost` is a node."""
    if not _is_function(cost, others) and others:
        raise TypeError(f"a derivative has no argument {next(iter(others))!r}")
    return callable(cost) and not isinstance(cost, Node)


def _chosen(argnums: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `argnums` of a derivative of a function; `named`: the others, which must not spell it otherwise."""
    if "argnum" in named:
        raise errors.ArgumentError("argnum= is autograd's word: here it is argnums=, an int or several")
    return {} if argnums is None else {"argnums": argnums}


def vjp(outputs: Any, *given: Any, **named: Any) -> Any:
    """Return the vector-Jacobian product of cotangents with the Jacobian of `outputs` by inputs.

    It is called as `vjp(outputs, inputs, cotangents, disconnected_inputs="raise", consider_constant=None)`. cotangents:
    one for each output, of its shape and dtype. The result has the structure of `inputs`, each part the shape and dtype
    of its input. Errors are those of `grad`.

    For a function of arrays, `vjp(f, *arguments, has_aux=False)` returns `(value, pull)`, as in JAX; see docs/jit.md.

        >>> x = T.dvector("x")
        >>> graphc.vjp(x**2, x, T.ones_like(x)).eval({x: [1, 2]})
        array([2., 4.])
    """
    if _is_function(outputs, named):
        return HOOKS.of_functions.vjp(outputs, *given, **named)
    return _vjp_of_nodes(outputs, *given, **named)


def _vjp(
    outputs: Nodes,
    inputs: Nodes,
    cotangents: Any,
    disconnected_inputs: Disconnected = "raise",
    consider_constant: Iterable[Node] | None = None,
) -> Any:
    seeds: dict[Node, Node] = {}
    for output, cotangent in zip(as_list(outputs), as_list(cotangents), strict=True):
        seed = _as_cotangent(output, cotangent)
        seeds[output] = _add(seeds[output], seed) if output in seeds else seed
    fresh, given = _at_own_sizes(seeds)
    products = _backward(fresh, as_list(inputs), consider_constant or (), disconnected_inputs, replace=False)
    return _like(inputs, _with(given, products) if given else products)


_vjp.__name__ = "vjp"
_vjp_of_nodes = explained(_vjp, "graphc")


def jvp(
    outputs: Any, inputs: Any, tangents: Any, disconnected_inputs: Disconnected = "raise", **of_function: Any
) -> Any:
    """Return the Jacobian-vector product of the Jacobian of `outputs` by `inputs` with `tangents`.

    tangents: one for each input, of its shape and dtype. The result has the structure of `outputs`, each part the shape
    and dtype of its output. Errors are those of `grad`. An input that no output depends on is disconnected; an output
    that depends on no input has tangent zero.

    For a function of arrays, `jvp(f, arguments, tangents, has_aux=False)` returns `(value, tangent)`, as in JAX; see
    docs/jit.md.

        >>> x = T.dvector("x")
        >>> graphc.jvp(x.sum() * x, x, T.ones_like(x)).eval({x: [1, 2]})
        array([5., 7.])
    """
    if _is_function_alone(outputs, of_function):
        return HOOKS.of_functions.jvp(outputs, inputs, tangents, **of_function)
    ends, starts = as_list(outputs), as_list(inputs)
    directions = [_as_cotangent(start, t) for start, t in zip(starts, as_list(tangents), strict=True)]
    # The cotangents are variables: the vjp is linear in them, and its derivative does not contain them.
    dummies = [variable(end.dtype, end.type.shape) for end in ends]
    with temporarily(DIRECTION, is_transposed=True):
        transposed = vjp(ends, starts, dummies, disconnected_inputs)
    fresh, cotangents = _at_own_sizes(_summed(zip(transposed, directions, strict=True)))
    with temporarily(DIRECTION, is_forward=True):
        products = _backward(fresh, dummies, (), "ignore", replace=False)
    products = _with(cotangents, products) if cotangents else products
    return _like(outputs, substitute(products, {dummy: zeros(dummy.type.dtype, dummy.type.shape) for dummy in dummies}))


def Lop(  # noqa: N802 - Theano's name
    f: Nodes,
    wrt: Nodes,
    eval_points: Any,
    consider_constant: Iterable[Node] | None = None,
    disconnected_inputs: Disconnected = "raise",
) -> Any:
    """Return the vector-Jacobian product of `eval_points` with the Jacobian of `f` by `wrt`: Theano's name for `vjp`.

    eval_points: the cotangents, one for each output of `f`, of its shape. The result and the errors are of `vjp`;
    GradientError for a cotangent of another dtype or rank.

        >>> x = T.dvector("x")
        >>> graphc.Lop(x**2, x, T.ones_like(x)).eval({x: [1, 2]})
        array([2., 4.])
    """
    return vjp(f, wrt, eval_points, disconnected_inputs, consider_constant)


def Rop(  # noqa: N802 - Theano's name
    f: Nodes,
    wrt: Nodes,
    eval_points: Any,
    disconnected_outputs: Disconnected = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Return the Jacobian-vector product: Theano's form of `jvp`, without an error for an input that nothing uses.

    An output that is cut off from all inputs, as by `disconnected_grad`, or is a variable itself, is disconnected:
    `disconnected_outputs` and `return_disconnected` are as those of `grad`. An output computed from other variables has
    tangent zero. Raises DisconnectedInputError for a disconnected output, GradientError for another word as
    `return_disconnected`, or a tangent of another dtype or rank than its input.

        >>> x = T.dvector("x")
        >>> graphc.Rop(x**2, x, T.ones_like(x)).eval({x: [1, 2]})
        array([2., 4.])
    """
    ends, starts = as_list(f), as_list(wrt)
    tangents = as_list(jvp(ends, starts, as_list(eval_points), "ignore"))
    order = nodes_of(ends)
    connected, related = _dependents(order, starts, {OPS["stop_gradient"]}), _dependents(order, starts, ())
    instead = return_disconnected.lower()
    if instead not in ("zero", "none", "disconnected"):
        raise errors.GradientError(
            f"return_disconnected={return_disconnected!r}: must be 'zero', 'None' or 'Disconnected'"
        )
    for place, end in enumerate(ends):
        if end not in connected and end in related:
            message = f"{describe(end)} does not depend on any of the inputs"
            advice = 'where that is meant, graphc.Rop(…, disconnected_outputs="ignore") gives zeros'
            _tell(message, advice, disconnected_outputs, "disconnected_outputs")
            if instead != "zero":
                tangents[place] = None if instead == "none" else DisconnectedType()()
    return _like(f, tangents)


def hessian_vector_product(cost: Node, wrt: Nodes, vectors: Any) -> Any:
    """Return the product of the Hessian of a scalar `cost` by `wrt` with `vectors`, both of the structure of `wrt`.

    It is the derivative of the inner product of the gradient with `vectors`: two reverse passes, without the Hessian.
    Errors are those of `grad`.

        >>> x = T.dvector("x")
        >>> graphc.hessian_vector_product((x**3).sum(), x, T.ones_like(x)).eval({x: [1, 2]})
        array([ 6., 12.])
    """
    targets = as_list(wrt)
    gradients = grad(cost, targets)
    return _like(wrt, vjp(gradients, targets, as_list(vectors), "ignore"))


def jacobian(
    expression: Any,
    wrt: Any = None,
    consider_constant: Iterable[Node] | None = None,
    disconnected_inputs: Disconnected = "raise",
    **of_function: Any,
) -> Any:
    """Return the Jacobian of a vector with respect to `wrt`.

    The result has the structure of `wrt`. Each part has the shape of `expression` followed by the shape of its node. A
    loop over the elements of `expression` computes the rows, and computes common parts once. A few rows, whose number
    is static, are computed without a loop. The Jacobian of a scalar is its gradient. Other arguments and errors are
    those of `grad`. For a function of arrays it is `jacrev`.

    Raises GradientError for an `expression` of more than one axis, and what `grad` raises.

        >>> x = T.dvector("x")
        >>> graphc.jacobian(x**2, x).eval({x: [1, 2]})
        array([[2., 0.],
               [0., 4.]])
    """
    if _is_function_alone(expression, of_function):
        return HOOKS.of_functions.jacobian(expression, **_chosen(wrt, of_function), **of_function)
    targets = as_list(wrt)
    if not isinstance(expression, Node) or expression.ndim == 0:
        return grad(expression, wrt, consider_constant, disconnected_inputs=disconnected_inputs)
    what = f"jacobian of {describe(expression)} of type {expression.type}"
    if expression.ndim > 1:
        raise errors.GradientError(f"{what}: it must be a vector; flatten it")
    (size,) = expression.type.shape
    constants = tuple(consider_constant or ())

    def row(place: Node) -> list[Node]:
        return _backward({expression: _basis_vector(expression, place)}, targets, constants, disconnected_inputs)

    if isinstance(size, int) and size <= WRITTEN_OUT and not depends_on_loop([expression]):
        rows = [row(literal(place, "int64")) for place in range(size)]
        return _like(wrt, [_stack([each[n] for each in rows], target) for n, target in enumerate(targets)])
    since, place = next_serial(), variable("int64", ())
    body, captured = close([place], row(place), since)
    loop = scan_node(size, body, [iota(size)], (), captured)
    return _like(wrt, [item(loop, n) for n in range(len(targets))])


def hessian(
    cost: Any,
    wrt: Any = None,
    consider_constant: Iterable[Node] | None = None,
    disconnected_inputs: Disconnected = "raise",
    **of_function: Any,
) -> Any:
    """Return the Hessian of a scalar `cost` with respect to a vector, or to each vector of a list or tuple.

    cost: a floating scalar. wrt: a vector of n elements, or a list or tuple of vectors. The result is a matrix of
    n x n elements of the dtype of the vector, or a list or tuple of such matrices, made as by `jacobian`. Errors are
    those of `grad` and `jacobian`. For a function of arrays, return a function that computes its second derivatives,
    with the arguments of `grad` of functions.

        >>> x = T.dvector("x")
        >>> graphc.hessian((x**3).sum(), x).eval({x: [1, 2]})
        array([[ 6.,  0.],
               [ 0., 12.]])
        >>> graphc.hessian(lambda x: x**3)(2.0)
        np.float64(12.0)
    """
    if _is_function_alone(cost, of_function):
        return HOOKS.of_functions.hessian(cost, **_chosen(wrt, of_function), **of_function)
    targets, constants = as_list(wrt), tuple(consider_constant or ())
    gradients = grad(cost, targets, constants, disconnected_inputs=disconnected_inputs)
    pairs = zip(gradients, targets, strict=True)
    return _like(wrt, [jacobian(gradient, target, constants, "ignore") for gradient, target in pairs])


def _basis_vector(vector: Node, place: Node) -> Node:
    """The vector of the type of `vector` that is 1 at `place` and 0 elsewhere."""
    here = make(OPS["equal"], (iota(vector.type.shape[0]), filled(place, vector.type.shape)))
    return make(OPS["cast"], (here,), {"dtype": vector.type.dtype})


def _stack(rows: Sequence[Node], of: Node) -> Node:
    """Stack rows of the type of `of` along a new first axis."""
    return concatenate([expand(row, (0,)) for row in rows], 0) if rows else zeros(of.type.dtype, (0, *of.type.shape))


def _seeds(cost: Any, known_grads: Any) -> dict[Node, Node]:
    """Return the cotangents that a gradient starts from: 1 for the cost, and those of `known_grads`."""
    if known_grads is not None and not isinstance(known_grads, Mapping):
        raise errors.GraphTypeError(f"known_grads is a dict of gradients by their nodes, not {known_grads!r}")
    seeds = dict(known_grads or {})
    if cost is None and not seeds:
        raise errors.GradientError("grad needs a cost or known_grads")
    if cost is not None and (not isinstance(cost, Node) or cost.ndim or type(cost) is Complex):
        label = f"{describe(cost)} of type {cost.type}" if isinstance(cost, Node) else repr(cost)
        raise errors.CostError(f"the cost must be a floating scalar, not {label}")
    if cost is not None and cost not in seeds:
        seeds[cost] = literal(1, cost.type.dtype if is_float(cost.type.dtype) else options.floatX)
    for node, value in seeds.items():
        if isinstance(value, Absent) and value.is_null:
            raise errors.NullTypeGradError(
                f"the gradient by {describe(node)} that is given is undefined: {_why(value)}"
            )
    return {node: _as_cotangent(node, value) for node, value in seeds.items() if not isinstance(value, Absent)}


def pulled_back(seeds: Mapping[Node, Node], targets: Sequence[Node]) -> list[Node]:
    """Return the cotangents of `targets` from those of other nodes; zeros for a target that no seed depends on."""
    return _backward(seeds, targets, (), "ignore", replace=False)


def _like(structure: Any, parts: Sequence[Node]) -> Any:
    """Return `parts` in the form of `structure`: a list, a tuple or a single node."""
    return type(structure)(parts) if isinstance(structure, list | tuple) else parts[0]


def _as_cotangent(node: Node, value: Any) -> Node:
    """Return `value` as a node of the rank of `node`, cast to its dtype where that is wider; floating for integers."""
    dtype = node.type.dtype if is_inexact(node.type.dtype) else options.floatX
    cotangent = value if isinstance(value, Node) else literal(value, dtype)
    if (
        is_inexact(cotangent.type.dtype)
        and cotangent.type.dtype != dtype == node.type.dtype
        and can_cast_safely(cotangent.type.dtype, dtype)
    ):
        cotangent = cast(cotangent, dtype)
    if not is_inexact(cotangent.type.dtype):
        raise errors.GradientError(f"the derivative given for {describe(node)} must be floating, not {cotangent.type}")
    _check_cotangent(node, cotangent, "the derivative given for")
    return cotangent


def _at_own_sizes(seeds: Mapping[Node, Node]) -> tuple[dict[Node, Node], dict[Node, Node]]:
    """Replace cotangents whose sizes are not written as those of their nodes by variables with these sizes. Returns the
    new seeds, and {variable: the cotangent, with a check of its sizes at each call}. A derivative then refers to no
    size of nodes behind its own, from which the cotangent may come."""
    fresh, cotangents = dict(seeds), {}
    for node, cotangent in seeds.items():
        if not all(map(sizes.equal, node.type.shape, cotangent.type.shape)):
            fresh[node] = variable(cotangent.type.dtype, node.type.shape)
            cotangents[fresh[node]] = of_sizes_of(node, cotangent)
    return fresh, cotangents


def _with(replaced: Mapping[Node, Node], nodes: Sequence[Node]) -> list[Node]:
    """Substitute nodes for variables in `nodes`. The types, with their sizes, stay."""
    done = dict(replaced)
    return [rebuilt(done, node) for node in nodes]


def of_sizes_of(node: Node, cotangent: Node) -> Node:
    """Return a given cotangent with a check, at each call, that it has the sizes of its node."""
    for axis, (size, actual) in enumerate(zip(node.type.shape, cotangent.type.shape, strict=True)):
        if not sizes.equal(size, actual):
            text = "the derivative given for {} has size {{left}} along axis {}, not {{right}}"
            cotangent = guard_axis(cotangent, axis, Guard(actual, "==", size, lazy_format(text, describe(node), axis)))
    return cotangent


def _check_cotangent(node: Node, cotangent: Node, what: str) -> None:
    if cotangent.type.is_same(node.type):
        return
    other = is_inexact(node.type.dtype) and node.type.dtype != cotangent.type.dtype
    if other or shapes_differ(node.type.shape, cotangent.type.shape):
        raise errors.GradientError(f"{what} {describe(node)} must be {node.type}, not {cotangent.type}")


def _add(left: Any, right: Any) -> Any:
    """Return the sum of two cotangents; undefined where one is."""
    for part in (left, right):
        if isinstance(part, Absent):
            return part
    if left.dtype != right.dtype:  # by integers
        return elementwise("add", left, right)
    return make(OPS["add"], (left, right))


def _summed(pairs: Iterable[tuple[Node, Node]]) -> dict[Node, Node]:
    """Return a mapping from pairs, in which the values of equal keys are added."""
    total: dict[Node, Node] = {}
    for key, value in pairs:
        total[key] = _add(total[key], value) if key in total else value
    return total


def _backward(
    seeds: Mapping[Node, Node],
    targets: Sequence[Node],
    constants: Iterable[Node],
    disconnected: Disconnected,
    replace: bool = True,
) -> list[Node]:
    """Return `_gradients`, with zeros for disconnected targets. Raises NullTypeGradError for an undefined one."""
    gradients = _gradients(seeds, targets, constants, disconnected, replace)
    for target, gradient in zip(targets, gradients, strict=True):
        if isinstance(gradient, Absent) and gradient.is_null:
            raise errors.NullTypeGradError(f"the gradient by {describe(target)} is undefined: {_why(gradient)}")
    return [_zeros_of(t) if isinstance(g, Absent) else g for t, g in zip(targets, gradients, strict=True)]


def _why(gradient: Absent) -> str:
    return gradient.type.why_null if isinstance(gradient.type, NullType) else ""


def _zeros_of(target: Node) -> Node:
    return zeros(target.type.dtype if is_inexact(target.type.dtype) else options.floatX, target.type.shape)


def _gradients(
    seeds: Mapping[Node, Node],
    targets: Sequence[Node],
    constants: Iterable[Node],
    disconnected: Disconnected,
    replace: bool = True,
) -> list[Node | Absent]:
    """Propagate the cotangents in `seeds` backwards to the targets.

    replace: a seed is the whole cotangent of its node, as Theano's known_grads; otherwise those from other seeds are
    added to it. Returns a node or an `Absent` (disconnected or undefined) for each target.
    """
    for target in targets:
        if not isinstance(target, Node):
            raise errors.GraphTypeError(f"{target!r} is not a node of the graph")
    mention([*seeds, *targets])
    constants = list(constants)
    if any(type(node) is Complex for node in (*seeds, *targets, *constants)):
        return _of_complex(seeds, targets, constants, disconnected, replace)
    return _of_real(seeds, targets, constants, disconnected, replace)


def _of_real(
    seeds: Mapping[Node, Node],
    targets: Sequence[Node],
    constants: Sequence[Node],
    disconnected: Disconnected,
    replace: bool,
) -> list[Node | Absent]:
    """`_gradients` of real nodes."""
    seeds, targets, constants = _within_branches(seeds, targets, constants)
    held_shifts = hold_shifts(list(seeds), [*targets, *constants])
    if held_shifts:
        seeds = {held_shifts[node]: cotangent for node, cotangent in seeds.items()}
        targets, constants = ([held_shifts[node] for node in nodes] for nodes in (targets, constants))
    order = nodes_of(seeds)
    constant: set[object] = {OPS["stop_gradient"], *constants}
    connected = _dependents(order, targets, constant)
    whole = {target for target in targets if not is_float(target.type.dtype)}
    cotangents: dict[Node, Node | Absent] = dict(seeds)
    reached = connected.intersection(seeds)
    several: dict[Node, dict[int, Node | Absent]] = {}
    masks = Masks()
    for node in reversed(order):
        if node not in reached or node.op in constant or node in constant:
            continue
        ways = routes(node) if node.is_tuple or node.op is ITEM else node.args
        passed_on = [arg for arg in ways if arg in connected]
        if not node.is_tuple:  # whose results have said which of its arguments each depends on
            reached.update(passed_on)
        if node.op is ITEM:
            reached.add(node.args[0])
            if node in cotangents and is_float(node.type.dtype):
                several.setdefault(node.args[0], {})[node.attrs["index"]] = cotangents[node]
            continue
        # A node without elements passes nothing on. Sums over it are 0, which an infinite derivative would make NaN.
        empty = any(isinstance(n, int) and n == 0 for n in node.type.shape)
        has_one = node in several or (node in cotangents and is_float(node.type.dtype))
        if passed_on and has_one and not empty:
            cotangent_of_node = several[node] if node in several else cotangents[node]
            for arg, cotangent in _pull_back(node, cotangent_of_node, reached, whole, masks):
                if not (replace and arg in seeds):
                    cotangents[arg] = _add(cotangents[arg], cotangent) if arg in cotangents else cotangent
    gradients = [_result(target, cotangents, reached, disconnected) for target in targets]
    return _each_made(gradients, release) if held_shifts else gradients


def _of_complex(
    seeds: Mapping[Node, Node],
    targets: Sequence[Node],
    constants: Sequence[Node],
    disconnected: Disconnected,
    replace: bool,
) -> list[Node | Absent]:
    """`_gradients` where a node is complex: of its parts. The cotangent of x + iy is that of x less i times that of y,
    so that the gradient of an analytic function's real part is its derivative."""
    real: dict[Node, Node] = {}
    for node, cotangent in seeds.items():
        if type(node) is Complex:
            real[node.args[0]] = HOOKS.pairs.real_of(cotangent)
            real[node.args[1]] = elementwise("neg", HOOKS.pairs.imag_of(cotangent))
        else:
            real[node] = cotangent
    halves = [node.args if type(node) is Complex else (node,) for node in targets]
    fixed = [part for node in constants for part in (node.args if type(node) is Complex else (node,))]
    # a target that depends on the seeds by one part has zeros for the other one
    gradients = iter(_gradients(real, [part for half in halves for part in half], fixed, "ignore", replace))
    results: list[Node | Absent] = []
    for target, half in zip(targets, halves, strict=True):
        parts = [next(gradients) for _ in half]
        absent = [part for part in parts if isinstance(part, Absent)]
        if len(absent) == len(parts) or any(part.is_null for part in absent):
            if not any(part.is_null for part in absent):
                _tell(f"the cost does not depend on {describe(target)}", _MEANT, disconnected)
            results.append(absent[0])
        elif len(parts) == 1:
            results.append(parts[0])
        else:
            re, im = (_zeros_of(part) if isinstance(g, Absent) else g for part, g in zip(half, parts, strict=True))
            results.append(pair(re, elementwise("neg", im)))
    return results


_MEANT = 'where that is meant, graphc.grad(…, disconnected_inputs="ignore") gives zeros'


def _each_made(parts: Sequence[Node | Absent], change: Callable[[list[Node]], Sequence[Node]]) -> list[Node | Absent]:
    """Apply `change` to the gradients that are nodes."""
    nodes = [each for each in parts if isinstance(each, Node)]
    shown = dict(zip(nodes, change(nodes), strict=True))
    return [shown[each] if isinstance(each, Node) else each for each in parts]


def _within_branches(
    seeds: Mapping[Node, Node], targets: Sequence[Node], constants: Sequence[Node]
) -> tuple[Mapping[Node, Node], Sequence[Node], Sequence[Node]]:
    """Move nodes that only one branch of a conditional needs into it, so that their derivatives are within it too."""
    roots = [*seeds, *targets, *constants]
    new = dict(zip(roots, sink_into_branches(roots), strict=True))
    return (
        {new[node]: cotangent for node, cotangent in seeds.items()},
        [new[node] for node in targets],
        [new[node] for node in constants],
    )


def _dependents(order: Sequence[Node], targets: Sequence[Node], constant: Collection[object]) -> set[Node]:
    """Return the nodes that depend on a target; one that is in `constant`, or whose op is, depends on itself alone."""
    wanted = set(targets)
    connected: set[Node] = set()
    for node in order:
        ways = routes(node) if node.is_tuple or node.op is ITEM else node.args
        passes = node.op not in constant and node not in constant and not connected.isdisjoint(ways)
        if node in wanted or passes:
            connected.add(node)
    return connected


def _pull_back(
    node: Node,
    cotangent: Node | Absent | Mapping[int, Node | Absent],
    reached: set[Node],
    whole: set[Node],
    masks: Masks,
) -> list[tuple[Node, Node | Absent]]:
    """Return pairs of an argument in `reached` and the cotangent that the node passes on to it. whole: integer targets,
    which get a cotangent where they are cast to real numbers."""
    parts_given = [*cotangent.values()] if isinstance(cotangent, Mapping) else [cotangent]
    null = next((part for part in parts_given if isinstance(part, Absent)), None)
    if null is not None:
        return [(arg, null) for arg in routes(node) if arg in reached and is_float(arg.type.dtype)]
    if node.op.name == "cast" and node.args[0] in whole:
        return [(node.args[0], parts_given[0])]
    others: list[Guard] = []
    if node.op.vjps is not None and isinstance(cotangent, Mapping):
        wanted = [place for place, arg in enumerate(node.args) if arg in reached and is_float(arg.type.dtype)]
        known = {place: part for place, part in cotangent.items() if isinstance(part, Node)}
        parts = node.op.vjps(node, known, wanted)
    elif node.op.vjp is not None and isinstance(cotangent, Node):
        guards = [g for g in node.op.guards(node) if (g.relation, g.error) == ("==", "shape")]
        cotangent, others = _guard_sizes(cotangent, guards)
        derivative = partial(node.op.vjp, node)
        parts = masks.outward(derivative, cotangent) if _is_elementwise(node) else derivative(cotangent)
    else:
        raise errors.GradientError(f"op {node.op.name} has no derivative: {describe(node)}")
    if len(parts) != len(node.args):
        raise errors.GradientError(
            f"the derivative of op {node.op.name} gives {len(parts)} cotangents for {len(node.args)} arguments"
        )
    passed: list[tuple[Node, Node | Absent]] = []
    for arg, part in zip(node.args, parts, strict=True):
        if isinstance(part, Absent):
            if part.is_null and arg in reached and is_float(arg.type.dtype):
                passed.append((arg, part))
        elif part is not None and arg in reached and is_float(arg.type.dtype):
            _check_cotangent(arg, part, f"the derivative that op {node.op.name} gives for")
            passed.append((arg, _guard_sizes(part, others)[0]))
    return passed


def _is_elementwise(node: Node) -> bool:
    """True for an elementwise op of graphc's own: it multiplies each element of a cotangent by a derivative."""
    return node.op.batch is aligned and node.op.version in ("", OWN)


def _guard_sizes(cotangent: Node, guards: Sequence[Guard]) -> tuple[Node, list[Guard]]:
    """Attach the guards of a node to its cotangent, so that the derivative checks the sizes that the function checks,
    though it may not need the guarded values. Returns the cotangent, and the guards about none of its axes."""
    others: list[Guard] = []
    for guard in guards:
        for before in (guard.left, guard.right):
            axes = [axis for axis, size in enumerate(cotangent.type.shape) if sizes.equal(size, before)]
            if axes and not sizes.equal(before, 1):
                cotangent = guard_axis(cotangent, axes[0], guard)
                break
        else:
            others.append(guard)
    return cotangent, others


def _result(
    target: Node, cotangents: Mapping[Node, Node | Absent], reached: set[Node], disconnected: Disconnected
) -> Node | Absent:
    if target in cotangents:
        return cotangents[target]
    if target in reached:
        return _zeros_of(target)
    computed = "it is computed anew where it is written: differentiate by what it is made of, and take the part after"
    _tell(f"the cost does not depend on {describe(target)}", computed if target.args else _MEANT, disconnected)
    return DisconnectedType()()


def _tell(message: str, advice: str, disconnected: str, argument: str = "disconnected_inputs") -> None:
    """Raise or warn of a disconnected node, by the value of the argument called `argument`."""
    if disconnected == "raise":
        raise errors.DisconnectedInputError(f"{message}; {advice}")
    if disconnected == "warn":
        warn_user(message)
    elif disconnected != "ignore":
        raise errors.GradientError(f"{argument}={disconnected!r}: must be 'raise', 'warn' or 'ignore'")
