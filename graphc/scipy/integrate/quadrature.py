"""Integrals of functions: `quad`, adaptive, and `fixed_quad`.

In: a function of one number, two limits, either of which may be infinite. Out: the integral and an estimate of its
error, with derivatives by the limits, by `args`, and by what the function takes from around it.

    quad(lambda x: jnp.exp(-x * x), 0, np.inf)      (0.8862269..., 1.1e-09)

The interval with the largest estimate is halved until the sum of estimates is allowed (QUADPACK's QAG: Piessens and
others, 1983), by Gauss and Kronrod's rule of 21 places. The intervals that a loop has found are gone through once more,
in a loop that has derivatives; the limits have those of Leibniz's rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import graphc.tensor as T
from graphc.autodiff import pulled_back
from graphc.control import functional
from graphc.control.functional import while_loop
from graphc.control.loop import title
from graphc.control.scan import scan, until
from graphc.errors import RankError
from graphc.ir.at_once import all_at_once
from graphc.ir.call_errors import explain_all
from graphc.ir.node import Node, next_serial, variable
from graphc.ir.walk import substitute
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast
from graphc.startup.record import record
from graphc.tensor.elementary import stop_gradient
from graphc.tracing.programs import captured_by, run

HALF = np.array(
    [
        [0.995657163025808080735527280689003, 0.011694638867371874278064396062192, 0],
        [0.973906528517171720077964012084452, 0.032558162307964727478818972459390, 0.066671344308688137593568809893332],
        [0.930157491355708226001207180059508, 0.054755896574351996031381300244580, 0],
        [0.865063366688984510732096688423493, 0.075039674810919952767043140916190, 0.149451349150580593145776339657697],
        [0.780817726586416897063717578345042, 0.093125454583697605535065465083366, 0],
        [0.679409568299024406234327365114874, 0.109387158802297641899210590325805, 0.219086362515982043995534934228163],
        [0.562757134668604683339000099272694, 0.123491976262065851077958109831074, 0],
        [0.433395394129247190799265943165784, 0.134709217311473325928054001771707, 0.269266719309996355091226921569469],
        [0.294392862701460198131126603103866, 0.142775938577060080797094273138717, 0],
        [0.148874338981631210884826001129720, 0.147739104901338491374841515972068, 0.295524224714752870173892994651338],
        [0, 0.149445554002916905664936468389821, 0],
    ]
)
"""Places on half of (-1, 1), the weights of the rule of 21 places, and those of the rule of 10 of them."""
BELOW = np.concatenate([HALF[:-1] * [-1, 1, 1], HALF[::-1]])
PLACES, KRONROD, GAUSS = BELOW.T
COUNT = len(PLACES)


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    *,
    epsabs: Any = 1.49e-8,
    epsrel: Any = 1.49e-8,
    limit: Any = 50,
) -> tuple[Node, Node]:
    """Return the integral of func(x, *args) from `a` to `b`, and an estimate of its error.

    func: a function of one number. a, b: numbers, which may be infinite. epsabs, epsrel: the error that is allowed: the
    estimate is at most max(epsabs, epsrel * abs(integral)), or there were `limit` intervals; then it says how far the
    integral may be off.

    Singular values at a limit are integrated by halving alone, without QUADPACK's extrapolation. Derivatives are by the
    limits, by `args` and by what `func` takes from around it; the function may jump. Raises RankError where
    `func` returns no number.

        >>> quad(lambda x: jnp.exp(-x), 0.0, np.inf)[0].round(9)
        np.float64(1.0)
        >>> graphc.grad(lambda b: quad(lambda x: x**2, 0.0, b)[0])(3.0)
        np.float64(9.0)
    """
    extra = tuple(args) if isinstance(args, tuple | list) else (args,)
    begin, end = _limit(a), _limit(b)
    for name, bound in (("a", begin), ("b", end)):
        if bound.ndim:
            raise RankError(
                f"quad: a limit is a number, and {name} is an array of type {bound.type}; "
                f"graphc.vmap(lambda {name}: quad(func, a, b)[0]) integrates for each of its elements"
            )
    low, high = (stop_gradient(each(begin, end)) for each in (T.minimum, T.maximum))
    integrand, given = Integrand.of(func, extra)

    def value(x: Node) -> Node:
        return integrand.at(x, given)[0]

    *pieces, errors = _refined(value, low, high, epsabs, epsrel, limit)
    return integral(integrand, [begin, end], pieces, given)[0], T.sum(errors)


def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> tuple[Node, None]:
    """Return the integral of func(x, *args) from `a` to `b` by Gauss and Legendre's rule of `n` places, and None.

    func: a function of a vector of places, which is the last axis of what it returns.

        >>> fixed_quad(lambda x: x**8, 0.0, 1.0)[0].round(12)
        np.float64(0.111111111111)
    """
    places, weights = np.polynomial.legendre.leggauss(n)
    extra = tuple(args) if isinstance(args, tuple | list) else (args,)
    begin, end = _limit(a), _limit(b)
    x = (end - begin) * (places + 1) / 2 + begin
    values = as_node(run("fixed_quad", func, [x, *extra]))
    return (end - begin) / 2 * T.sum(values * weights, axis=-1), None


def _limit(value: Any) -> Node:
    return cast(as_node(value), "float64")


def _place(s: Node, low: Node, high: Node) -> tuple[Node, Node]:
    """Return the place for a number between 0 and 1, and the derivative of this map, of which there are four: to an
    interval, to a half-line on either side, to the line."""
    below, above = T.isinf(low), T.isinf(high)
    far = (1 - s) / s
    u = 2 * s - 1
    gap = 1 - u * u
    from_low, to_high = T.switch(below, 0.0, low), T.switch(above, 0.0, high)
    half = T.switch(above, from_low + far, to_high - far)
    infinite = T.switch(below & above, u / gap, half)
    slope = T.switch(below & above, 2 * (1 + u * u) / (gap * gap), 1 / (s * s))
    width = to_high - from_low
    either = below | above
    return T.switch(either, infinite, from_low + width * s), T.switch(either, slope, width)


def _values(f: Callable[[Node], list[Node]], low: Node, high: Node, begin: Node, end: Node) -> list[Node]:
    """Return integrands at the places of the rule in a piece (begin, end) of (0, 1), times the width of it."""

    def one(place: Node) -> list[Node]:
        x, slope = _place(begin + (end - begin) * (place + 1) / 2, low, high)
        return [value * slope for value in f(x)]

    found: list[Node] = functional.map(one, T.constant(PLACES))
    return [each * (end - begin) / 2 for each in found]


def _estimate(f: Callable[[Node], Node], low: Node, high: Node, begin: Node, end: Node) -> tuple[Node, Node]:
    """Return the integral over a piece, and QUADPACK's estimate of its error (QK21)."""
    (values,) = _values(lambda x: [f(x)], low, high, begin, end)
    best = T.dot(values, KRONROD)
    error = abs(best - T.dot(values, GAUSS))
    around = T.dot(abs(values - best / 2), KRONROD)
    size = T.dot(abs(values), KRONROD)
    scaled = around * T.minimum(1.0, (200 * error / T.switch(around > 0, around, 1.0)) ** 1.5)
    error = T.switch((around > 0) & (error > 0), scaled, error)
    tiny = np.finfo("float64")
    return best, T.switch(size > tiny.tiny / (50 * tiny.eps), T.maximum(50 * tiny.eps * size, error), error)


def _refined(
    f: Callable[[Node], Node], low: Node, high: Node, epsabs: Any, epsrel: Any, limit: Any
) -> tuple[Node, ...]:
    """Return where pieces of (0, 1) begin and end, how many there are, and the estimates of their errors."""
    places = T.arange(cast(as_node(limit), "int64"))
    nothing = T.zeros_like(cast(places, "float64"))

    def put(array: Node, at: Node, new: Node) -> Node:
        return T.switch(T.eq(places, at), new, array)

    first, error = _estimate(f, low, high, T.constant(0.0), T.constant(1.0))
    zero = T.constant(np.int64(0))
    one, none = T.constant(1.0), nothing
    start = none, put(none, zero, one), put(none, zero, first), put(none, zero, error), zero + 1

    def go_on(state: tuple[Node, ...]) -> Node:
        _, _, integrals, errors, count = state
        allowed = T.maximum(epsabs, epsrel * abs(T.sum(integrals)))
        return (T.sum(errors) > allowed) & (count < places.shape[0])

    def halve(state: tuple[Node, ...]) -> tuple[Node, ...]:
        begins, ends, integrals, errors, count = state
        worst = T.argmax(errors)
        begin, end = begins[worst], ends[worst]
        middle = (begin + end) / 2
        left, left_error = _estimate(f, low, high, begin, middle)
        right, right_error = _estimate(f, low, high, middle, end)
        return (
            put(begins, count, middle),
            put(put(ends, worst, middle), count, end),
            put(put(integrals, worst, left), count, right),
            put(put(errors, worst, left_error), count, right_error),
            count + 1,
        )

    begins, ends, _, errors, count = while_loop(go_on, halve, start)
    return stop_gradient(begins), stop_gradient(ends), count, stop_gradient(errors)


@record(eq=False)
class Integrand:
    """A function of one number as a graph. x: the variable in place of the number; others: those in place of the floats
    that it takes from around it. results: what it returns."""

    x: Node
    others: list[Node]
    results: list[Node]

    @staticmethod
    def of(func: Callable[..., Any], args: Sequence[Any]) -> tuple[Integrand, list[Node]]:
        """Return a function of the program's, and what it takes from around it. Raises RankError where it returns no
        number."""
        since, x = next_serial(), variable("float64", (), "x")
        made = as_node(run("quad", func, [x, *args]))
        if made.ndim:
            raise RankError(f"quad: {title(func)} must return a number, not an array of type {made.type}")
        result = cast(made, "float64")
        captured = captured_by([result], since)
        others = [variable(node.type.dtype, node.type.shape, node.name) for node in captured]
        return Integrand(x, others, substitute([result], dict(zip(captured, others, strict=True)))), captured

    def at(self, x: Node, given: Sequence[Node]) -> list[Node]:
        """Return the values at a place."""
        return substitute(self.results, {self.x: x, **dict(zip(self.others, given, strict=True))})


def integral(f: Integrand, ends: Sequence[Node], pieces: Sequence[Node], given: Sequence[Node]) -> list[Node]:
    """Return integrals over all pieces. The derivative by what is given is the integral of that of `f`, and that by an
    end the value there (Leibniz)."""
    begin, end = map(stop_gradient, ends)
    low, high = T.minimum(begin, end), T.maximum(begin, end)
    sign = T.switch(end >= begin, 1.0, -1.0)
    totals = [sign * total for total in _summed(lambda x: f.at(x, given), low, high, pieces)]

    def rule(
        inputs: Sequence[Node], results: Sequence[Node], cotangents: Mapping[int, Node], wanted: Any
    ) -> list[Node | None]:
        ends, pieces, given = inputs[:2], inputs[2:5], inputs[5:]
        along = {f.results[place]: cotangent for place, cotangent in cotangents.items()}
        seeds = {result: variable(each.type.dtype, each.type.shape) for result, each in along.items()}
        more = [*along.values()]
        weighted = T.add(*(T.sum(result * seed) for result, seed in seeds.items()), T.constant(0.0))
        others = [*f.others, *seeds.values()]
        lower, upper = (Integrand(f.x, others, [weighted]).at(place, [*given, *more])[0] for place in ends)
        back = Integrand(f.x, others, pulled_back(seeds, f.others))
        parts = integral(back, ends, pieces, [*given, *more]) if given else []
        return [-lower, upper, None, None, None, *parts]

    return overridden(totals, [*ends, *pieces, *given], rule)


def _summed(f: Callable[[Node], list[Node]], low: Node, high: Node, pieces: Sequence[Node]) -> list[Node]:
    """Return the integrals over all pieces."""
    begins, ends, count = pieces

    def add(begin: Node, end: Node, done: Node, *totals: Node) -> Any:
        values = _values(f, low, high, begin, end)
        found = [total + T.tensordot(KRONROD, each, 1) for total, each in zip(totals, values, strict=True)]
        return [done + 1, *found], until(done + 1 >= count)

    kinds = f(T.constant(0.5))
    start = [T.constant(np.int64(0)), *map(T.zeros_like, kinds)]
    (_, *sums), _ = scan(add, sequences=[begins, ends], outputs_info=start)
    return [each[-1] for each in sums]


__all__ = ["fixed_quad", "quad"]

all_at_once(globals())
explain_all(globals())
