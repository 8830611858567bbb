"""Theano's `gradient`: differentiation under its names, and checks of derivatives against finite differences.

In: nodes; for `verify_grad` a function of tensors, and arrays to check it at. Out: nodes; a `GradientMismatch` where a
derivative is not what differences say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from warnings import warn

import numpy as np

from graphc.arrays.dtypes import FLOATS
from graphc.autodiff import Lop, Rop, grad, hessian, jacobian, subgraph_grad
from graphc.errors import DisconnectedInputError, GradientError, GraphTypeError, NullTypeGradError
from graphc.functions.function import function
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Array, Node, describe, variable
from graphc.ops.custom import Absent, DisconnectedType, NullType, not_implemented, undefined
from graphc.ops.derivative import grad_clip, grad_scale, undefined_grad, zero_grad
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.ops.reduce import reduce_sum
from graphc.tensor.elementary import stop_gradient as disconnected_grad

null_type = NullType()
disconnected_type = DisconnectedType()
grad_undefined = undefined
grad_not_implemented = not_implemented

consider_constant_ = zero_grad_ = zero_grad
disconnected_grad_ = disconnected_grad
undefined_grad_ = undefined_grad


def format_as(use_list: bool, use_tuple: bool, outputs: Any) -> Any:
    """`outputs` as a list, a tuple, or the only one of them."""
    found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    return found if use_list else tuple(found) if use_tuple else found[0]


STEPS = {"float64": 1e-7, "float32": 3e-4}
"""Theano's steps of a difference quotient; here it is a central one, of (f(x + step) - f(x - step)) / (2 step)."""
TOLERANCE = {"float64": 1e-4, "float32": 1e-2}


def sparse_grad(var: Any) -> Node:
    """`var`, rows of a tensor that a vector chooses: `x[rows]`. Theano's word for a derivative by x that has these rows
    alone. Here `grad` gives an array with zeros in the others; an update that adds a multiple of it to a shared
    variable writes these rows and no others, with this word or without. Raises GraphTypeError, a TypeError, for
    anything else, as Theano does.

        >>> table, words = T.dmatrix("table"), T.lvector("words")
        >>> graphc.sparse_grad(table[words]).ndim
        2
    """
    node = as_node(var)
    if node.op.name != "gather" or node.args[1].ndim != 1:
        raise GraphTypeError(f"sparse_grad: {describe(node)} is not a tensor indexed by a vector of integers")
    return node


def consider_constant(x: Any) -> Node:
    """Theano's old name for `zero_grad`: `x`, whose derivative is zero. It warns that it is old."""
    warn("consider_constant is old: zero_grad or disconnected_grad say what is meant", DeprecationWarning, stacklevel=2)
    return zero_grad(x)


class GradientMismatch(GradientError, AssertionError):
    """A derivative that is not what differences say. arg: which argument; err_pos: which of its elements, counted in C
    order; shape; val1: what the graph gives; val2: the differences; abs_err, rel_err, abs_tol, rel_tol."""

    def __init__(
        self,
        arg: int,
        err_pos: int,
        shape: tuple[int, ...],
        val1: float,
        val2: float,
        abs_err: float,
        rel_err: float,
        abs_tol: float,
        rel_tol: float,
    ) -> None:
        self.arg, self.err_pos, self.shape, self.val1, self.val2 = arg, err_pos, shape, val1, val2
        self.abs_err, self.rel_err, self.abs_tol, self.rel_tol = abs_err, rel_err, abs_tol, rel_tol
        super().__init__(
            f"the derivative by argument {arg} of shape {shape} at element {err_pos}: the graph gives {val1:.8g}, "
            f"differences {val2:.8g}; absolute error {abs_err:.3g} (allowed {abs_tol:.3g}), relative error "
            f"{rel_err:.3g} (allowed {rel_tol:.3g})"
        )


class numeric_grad:  # noqa: N801 - Theano's name
    """The gradient of a function of arrays that gives a number, by central differences.

    f: the function. pt: an array, or a list or tuple of them, of floats. eps: the step. gf: the gradient, in the form
    of `pt`. Raises GraphTypeError for arrays that are not floating.
    """

    type_eps = STEPS

    def __init__(self, f: Callable[..., Any], pt: Any, eps: float | None = None, out_type: str | None = None) -> None:
        points = [np.array(p) for p in (pt if isinstance(pt, list | tuple) else [pt])]
        dtypes = [point.dtype.name for point in points]
        for dtype in dtypes:
            if dtype not in FLOATS:
                raise GraphTypeError(f"numeric_grad: arrays must be floating, not {dtype}")
        least = "float32" if "float32" in (*dtypes, out_type) else "float64"
        step = eps if eps is not None else STEPS[least]
        found = []
        for point in points:
            gradient = np.zeros_like(point)
            for place in np.ndindex(point.shape):
                before = point[place]
                point[place] = before + step
                above, upper = float(f(*points)), float(point[place])
                point[place] = before - step
                below, lower = float(f(*points)), float(point[place])
                point[place] = before
                gradient[place] = (above - below) / (upper - lower)
            found.append(gradient)
        self.gf: Any = found if isinstance(pt, list | tuple) else found[0]

    @staticmethod
    def abs_rel_err(a: Array, b: Array) -> tuple[Array, Array]:
        """The absolute difference, and what it is of the sum of both values."""
        error = np.abs(a - b)
        return error, error / np.maximum(np.abs(a) + np.abs(b), 1e-8)

    def abs_rel_errors(self, g_pt: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Both for each argument, given the gradients that another way gave."""
        own = self.gf if isinstance(self.gf, list) else [self.gf]
        if len(g_pt) != len(own):
            raise GradientError(f"there are {len(own)} gradients; got {len(g_pt)} to compare")
        for given, mine in zip(g_pt, own, strict=True):
            if np.shape(given) != mine.shape:
                raise GradientError(
                    f"a gradient of shape {np.shape(given)} cannot be compared with one of {mine.shape}"
                )
        return [self.abs_rel_err(np.asarray(given), mine) for given, mine in zip(g_pt, own, strict=True)]

    def max_err(self, g_pt: Sequence[Array], abs_tol: float, rel_tol: float) -> tuple[int, int, float, float]:
        """The place where the error is the largest against what is allowed: argument, element, both errors."""
        worst = (0, 0, 0.0, 0.0)
        largest = -1.0
        for number, (absolute, relative) in enumerate(self.abs_rel_errors(g_pt)):
            if not absolute.size:
                continue
            ratios = np.minimum(absolute / abs_tol, relative / rel_tol).ravel()
            ratios = np.where(np.isnan(ratios), np.inf, ratios)
            place = int(ratios.argmax())
            if ratios[place] > largest:
                largest = float(ratios[place])
                worst = (number, place, float(absolute.flat[place]), float(relative.flat[place]))
        return worst


def verify_grad(
    fun: Callable[..., Any],
    pt: Sequence[Any],
    n_tests: int = 2,
    rng: Any = None,
    eps: float | None = None,
    out_type: str | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Check the derivative of a function of tensors at arrays, in random directions of its result.

    fun: takes a tensor for each array of `pt` and gives one floating tensor. n_tests: how many directions. rng: a
    generator of random numbers, as np.random.RandomState. eps: the step of the differences. abs_tol, rel_tol: an
    element is wrong where both errors are larger; 1e-4 for float64 where None, 1e-2 where float32 is among the dtypes.
    mode: as `function` takes it. cast_to_output_type, out_type: dtype in which the result is compared; no_debug_ref is
    Theano's and changes nothing. Raises GradientMismatch (`verify_grad.E_grad`), and GraphTypeError for arrays that are
    not floating or without `rng`.

        >>> verify_grad(lambda x: T.tanh(x).sum(axis=0), [np.ones((2, 3))], rng=np.random.RandomState(0))
    """
    arrays = [np.array(p) for p in pt]
    for number, array in enumerate(arrays):
        if array.dtype.name not in FLOATS:
            raise GraphTypeError(f"verify_grad: point {number} must be floating, not {array.dtype}")
    if rng is None:
        raise GraphTypeError("verify_grad needs rng, a generator such as np.random.RandomState(0)")
    inputs = [  # whose axes of size 1 broadcast, as those of constants do
        variable(a.dtype.name, [1 if size == 1 else None for size in a.shape], f"input {number}")
        for number, a in enumerate(arrays)
    ]
    output = fun(*inputs)
    if not isinstance(output, Node):
        raise GraphTypeError(f"verify_grad checks a function of one result; got {output!r}")
    if out_type is not None and cast_to_output_type:
        output = cast(output, out_type)
    names = {a.dtype.name for a in arrays} | {output.type.dtype} | {out_type}
    least = "float32" if "float32" in names else "float64"
    abs_tol, rel_tol = (TOLERANCE[least] if tol is None else tol for tol in (abs_tol, rel_tol))
    shape = function(inputs, output, mode=mode, on_unused_input="ignore")(*arrays).shape
    wide = output.type.dtype if cast_to_output_type else "float64"  # sums in float32 are too coarse for differences
    weights = variable(wide, [None] * output.ndim, "a random projection")
    product = elementwise("mul", output, weights)
    cost = reduce_sum(product, range(product.ndim)) if product.ndim else product
    value = function([*inputs, weights], cost, mode=mode, on_unused_input="ignore")
    slopes = grad(cost, inputs, disconnected_inputs="ignore")
    derivative = function([*inputs, weights], slopes, mode=mode, on_unused_input="ignore")
    for _ in range(n_tests):
        projection = np.asarray(rng.uniform(size=shape) + 0.5, wide)
        numeric = numeric_grad(lambda *given, w=projection: value(*given, w), arrays, eps, out_type)
        found = derivative(*arrays, projection)
        arg, place, absolute, relative = numeric.max_err(found, abs_tol, rel_tol)
        if not (absolute <= abs_tol or relative <= rel_tol):
            values = float(found[arg].flat[place]), float(numeric.gf[arg].flat[place])
            raise GradientMismatch(arg, place, arrays[arg].shape, *values, absolute, relative, abs_tol, rel_tol)


verify_grad.E_grad = GradientMismatch  # type: ignore[attr-defined]  # as Theano's programs name it

__all__ = [
    "Absent", "DisconnectedInputError", "DisconnectedType", "GradientError", "GradientMismatch", "Lop", "NullType",
    "NullTypeGradError", "Rop", "consider_constant", "disconnected_grad", "disconnected_type", "format_as", "grad",
    "grad_clip", "grad_not_implemented", "grad_scale", "grad_undefined", "hessian", "jacobian", "null_type",
    "numeric_grad", "sparse_grad", "subgraph_grad", "undefined_grad", "verify_grad", "zero_grad",
]  # fmt: skip

explain_all(globals())
