"""Solutions of equations, differentiated by the implicit function theorem: `custom_linear_solve`, `custom_root`.

In: an equation, as a function; a function that solves it, in any way; where derivatives are wanted, one that solves the
linear equation of the derivative. Out: the solution, whose derivative does not go through the steps that found it.

    custom_linear_solve(lambda v: a @ v, b, solve)        x with a @ x = b; by b and by a
    custom_root(lambda x: x**2 - a, 1.0, solve, ...)      x with x**2 = a; by a

The derivative is that by what the equation takes from around it, for which fresh variables stand when it is made: it is
a rule of values (`ops/derivative.py: overridden`), as those of `tracing/custom.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graphc.autodiff import jvp, pulled_back
from graphc.control.loop import title
from graphc.errors import GradientError
from graphc.ir.node import Node, next_serial, variable
from graphc.ir.walk import substitute
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.shape import zeros
from graphc.tracing.programs import captured_by, depend, nodes_in, run
from graphc.trees import leaves, like, outline, structure

Vectors = Any
Function = Callable[[Any], Any]


class Equation:
    """A function of the program's over variables. variables: in place of its argument, which is like `tree`. results:
    what it returns for them. captured: the tensors that it takes from around it; others: variables in their place."""

    def __init__(self, by: str, function: Function, tree: Any) -> None:
        since = next_serial()
        self.by, self.function, self.tree = by, function, tree
        self.variables = [variable(node.type.dtype, node.type.shape) for node in map(as_node, leaves(tree))]
        made = run(by, function, [like(tree, self.variables)])
        if structure(made) != structure(tree):
            raise GradientError(
                f"{by}: {title(function)} must return what is like its argument, {outline(tree)}, not {outline(made)}"
            )
        found = nodes_in(function, made)
        self.captured = captured_by(found, since)
        self.others = [variable(node.type.dtype, node.type.shape, node.name) for node in self.captured]
        self.results = substitute(found, dict(zip(self.captured, self.others, strict=True)))

    def over(
        self, nodes: Sequence[Node], arguments: Sequence[Node], others: Sequence[Node], more: Any = ()
    ) -> list[Node]:
        """Return nodes with values in place of the variables."""
        given = zip([*self.variables, *self.others], [*arguments, *others], strict=True)
        return substitute(nodes, {**dict(given), **dict(more)})

    def transposed(self, cotangents: Sequence[Node], arguments: Sequence[Node], others: Sequence[Node], by: Any) -> Any:
        """Return the cotangents of the variables `by`, from those of the results, at a place."""
        along = [variable(node.type.dtype, node.type.shape) for node in self.results]
        seeds: dict[Node, Node] = {}
        for result, each in zip(self.results, along, strict=True):
            seeds[result] = seeds[result] + each if result in seeds else each
        return self.over(pulled_back(seeds, by), arguments, others, zip(along, cotangents, strict=True))


def custom_linear_solve(
    matvec: Function,
    b: Vectors,
    solve: Callable[[Function, Vectors], Any],
    transpose_solve: Callable[[Function, Vectors], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Return x with `matvec(x) = b`, as `solve` finds it, with derivatives by `b`, and by what `matvec` takes from
    around it.

    matvec: a linear function of an array, or a tree of them, like `b`. solve(matvec, b): returns x. transpose_solve:
    the same for the transpose of `matvec`, which derivatives need; symmetric: `matvec` is its own transpose, and
    `solve` serves for both. has_aux: `solve` and `transpose_solve` return `(x, aux)`, and so does this function.

        >>> a = T.constant([[4.0, 1.0], [1.0, 3.0]])
        >>> def by_steps(matvec, b):
        ...     return lax.fori_loop(0, 60, lambda i, x: x + 0.2 * (b - matvec(x)), b)
        >>> lax.custom_linear_solve(lambda v: a @ v, T.constant([1.0, 2.0]), by_steps, symmetric=True).eval().round(6)
        array([0.090909, 0.636364])

    Derivatives raise GradientError where there is neither `transpose_solve` nor `symmetric`.
    """
    by = "custom_linear_solve"
    given = [as_node(leaf) for leaf in leaves(b)]
    whole = like(b, given)
    equation = Equation(by, matvec, whole)
    count, solution, aux = len(given), run(by, solve, [matvec, whole]), None
    if has_aux:
        solution, aux = _pair(by, solve, solution)
    values = _fitting(by, solve, solution, whole)

    def rule(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node]:
        others = inputs[count:]
        along = like(whole, _all_of(results, cotangents))

        def transposed(vectors: Any) -> Any:
            found = nodes_in(matvec, vectors)
            return like(whole, equation.transposed(found, equation.variables, others, equation.variables))

        def forward(vectors: Any) -> Any:
            return like(whole, equation.over(equation.results, nodes_in(matvec, vectors), others))

        if symmetric:
            found = custom_linear_solve(forward, along, solve, None, True, has_aux)
        elif transpose_solve is not None:
            found = custom_linear_solve(transposed, along, transpose_solve, solve, False, has_aux)
        else:
            raise GradientError(f"{by} of {title(matvec)}: its derivative needs transpose_solve, or symmetric=True")
        back = nodes_in(solve, found[0] if has_aux else found)
        negative = [elementwise("neg", each) for each in back]
        return [*back, *equation.transposed(negative, results, others, equation.others)]

    made = like(whole, overridden(values, [*given, *equation.captured], rule))
    return (made, aux) if has_aux else made


def custom_root(
    f: Function,
    initial_guess: Vectors,
    solve: Callable[[Function, Vectors], Any],
    tangent_solve: Callable[[Function, Vectors], Any],
    has_aux: bool = False,
) -> Any:
    """Return x with `f(x) = 0`, as `solve` finds it, with derivatives by what `f` takes from around it.

    f: a function of an array, or a tree of them, that returns what is like its argument. solve(f, initial_guess):
    returns x. tangent_solve(g, y): returns t with `g(t) = y`, for a linear function g; of numbers `lambda g, y: y /
    g(1.0)` does. has_aux: `solve` returns `(x, aux)`, and so does this function. The initial guess has derivative zero.

        >>> def newton(f, x):
        ...     return lax.fori_loop(0, 20, lambda i, x: x - f(x) / graphc.grad(f)(x), x)
        >>> def cube_root(a):
        ...     return lax.custom_root(lambda x: x**3 - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> graphc.grad(cube_root)(8.0).round(6)
        np.float64(0.083333)

    Derivatives raise GradientError where `tangent_solve` is not linear.
    """
    by = "custom_root"
    guess = like(initial_guess, [as_node(leaf) for leaf in leaves(initial_guess)])
    solution, aux = run(by, solve, [f, guess]), None
    if has_aux:
        solution, aux = _pair(by, solve, solution)
    values = _fitting(by, solve, solution, guess)
    equation = Equation(by, f, like(guess, values))

    def rule(
        others: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Collection[int]
    ) -> list[Node]:
        def slope(vectors: Any) -> Any:
            along = [variable(node.type.dtype, node.type.shape) for node in equation.variables]
            made = jvp(equation.results, equation.variables, along, disconnected_inputs="ignore")
            given = zip(along, map(_fitted, nodes_in(f, vectors), along), strict=True)
            return like(guess, equation.over(made, results, others, given))

        right = [variable(node.type.dtype, node.type.shape) for node in results]
        ends = _fitting(by, tangent_solve, run(by, tangent_solve, [slope, like(guess, right)]), guess)
        seeds: dict[Node, Node] = {}
        for end, cotangent in zip(ends, _all_of(results, cotangents), strict=True):
            seeds[end] = seeds[end] + cotangent if end in seeds else cotangent
        found = pulled_back(seeds, right)
        if depend(found, right):
            raise GradientError(f"{by}: {title(tangent_solve)} is not linear in the right-hand side")
        found = substitute(found, {each: zeros(each.type.dtype, each.type.shape) for each in right})
        negative = [elementwise("neg", each) for each in found]
        back: list[Node] = equation.transposed(negative, results, others, equation.others)
        return back

    made = like(guess, overridden(values, equation.captured, rule))
    return (made, aux) if has_aux else made


def _pair(by: str, solve: Any, returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise GradientError(f"{by} with has_aux: {title(solve)} must return the solution and what else there is")
    return returned


def _fitting(by: str, solve: Any, solution: Any, tree: Any) -> list[Node]:
    """Return the leaves of a solution, in the dtypes of what it is like. Raises GradientError where it is like nothing
    that was given."""
    if structure(solution) != structure(tree):
        raise GradientError(f"{by}: {title(solve)} must return what is like {outline(tree)}, not {outline(solution)}")
    return [_fitted(node, own) for node, own in zip(nodes_in(solve, solution), leaves(tree), strict=True)]


def _fitted(node: Node, own: Node) -> Node:
    return cast(node, own.type.dtype)


def _all_of(results: Sequence[Node], cotangents: Mapping[int, Node]) -> list[Node]:
    """Return a cotangent for each result, zeros where there is none."""
    return [
        cotangents[place] if place in cotangents else zeros(node.type.dtype, node.type.shape)
        for place, node in enumerate(results)
    ]
