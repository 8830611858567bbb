"""Random numbers that are drawn until one is accepted, each in a loop of its own, and arrays in random order.

In: a key and parameters, broadcast to the shape. Out: nodes: a loop over elements around a loop over trials. Trial t of
element i has the blocks of counters (i, 2 t + 2) and (i, 2 t + 3), so that no element waits for another's bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc.control.functional import cond, map, while_loop
from graphc.ir import sizes
from graphc.ir.node import Node, literal
from graphc.ops.derivative import overridden
from graphc.ops.elementwise import as_node, cast, elementwise as E
from graphc.ops.scalar import stop_gradient
from graphc.ops.shape import expand, reshape
from graphc.random.distributions import (
    Shape,
    angle_by_concentration,
    as_key,
    blocks,
    by_its_place,
    float_of,
    fold_in,
    log1p,
    normal,
    not_negative,
    places,
    rademacher,
    sized,
    slope,
    truncated_by_limits,
    unit,
    whole,
    word,
)
from graphc.startup.record import record

EXACTLY = "float64"
"""The dtype that whole numbers are drawn in, whatever the dtypes of parameters."""
TRIALS = 1000
"""Each is accepted with a chance of more than a quarter."""
SMALL_MEAN = 10.0
"""The mean below which a distribution is added up."""
Trial = Callable[[Node, Node], tuple[Node, Node]]
"""The number of a trial, of the counters of its two blocks, and whether it is accepted."""


log, exp = partial(E, "portable_log"), partial(E, "portable_exp")


def log_factorial(k: Node) -> Node:
    """log(k!) of whole numbers: Stirling's series (Abramowitz and Stegun 6.1.41) from 9 on, to which k below is brought
    by factors."""
    is_small = E("less", k, 9.0)
    product = k + 1.0
    for step in range(2, 10):
        product = product * (k + float(step))
    y = E("where", is_small, k + 10.0, k + 1.0)
    z = 1.0 / (y * y)
    series = 1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z * (1.0 / 1188.0))))
    whole = (y - 0.5) * log(y) - y + (0.5 * math.log(2.0 * math.pi)) + series / y
    return whole - log(E("where", is_small, product, 1.0))


class Element:
    """The element that is drawn: its place, its dtype, and its random numbers."""

    def __init__(self, key: Node, index: Node, kind: str) -> None:
        self.key, self.index, self.kind = key, index, kind

    def units(self, draw: int | Node) -> tuple[Node, Node]:
        """Two numbers in (0, 1] of a block."""
        low, high = blocks(self.key, self.index, draw)
        return unit(low, self.kind, above_zero=True), unit(high, self.kind, above_zero=True)

    def normals(self, draw: Node) -> tuple[Node, Node]:
        """Two normal numbers of a block."""
        cosine, sine = (self.half("philox_normal", draw, number) for number in (0, 1))
        return cosine, sine

    def half(self, op: str, draw: Node, which: int) -> Node:
        """The value of an op of one half of a block."""
        counter = E("bitwise_or", E("left_shift", self.index, word(1)), word(which))
        return cast(E(op, counter, cast(draw, "uint64"), self.key), self.kind)

    def normal(self, draw: Node) -> Node:
        return self.normals(draw)[0]

    def until_accepted(self, trial: Trial, begun: tuple[Node, Node, Node] | None = None) -> Node:
        """The number of the first trial that is accepted; NaN where none is, which no chance explains: a parameter is
        NaN, or none of the distribution's. begun: the draw to go on from, and the number before with whether it is
        accepted."""

        def attempt(carry: tuple[Node, Node, Node]) -> tuple[Node, Node, Node]:
            draw, _, _ = carry
            number, accepted = trial(draw, draw + 1)
            return draw + 2, cast(number, self.kind), accepted

        begin = begun or (literal(2), self.number(0.0), literal(np.False_, "bool"))

        def goes_on(carry: tuple[Node, Node, Node]) -> Node:
            return E("logical_and", E("logical_not", carry[2]), E("less", carry[0], 2 * TRIALS))

        _, number, accepted = while_loop(goes_on, attempt, begin)
        return E("where", accepted, number, self.number(math.nan))

    def number(self, value: float) -> Node:
        return literal(np.dtype(self.kind).type(value), self.kind)


def first_accepted(
    name: str, trial_of: Callable[..., Trial], key: Any, shape: Shape, dtype: Any, *parameters: Any, at_once: int = 1
) -> Node:
    """For each element the number of the first of `trial_of(element, *parameters)` that is accepted. The first trials
    are of all elements at once, in vectors; a loop is for those that fail them. It has no derivative of its own."""
    bits, real, own, (index, *flat) = _flat(name, key, shape, dtype, *parameters)
    trial = trial_of(Element(bits, index, real), *flat)
    number, accepted = trial(literal(2), literal(3))
    for draw in range(4, 2 + 2 * at_once, 2):
        another, is_one = trial(literal(draw), literal(draw + 1))
        number, accepted = E("where", accepted, number, another), E("logical_or", accepted, is_one)

    def go_on(elements: Sequence[Node]) -> Node:
        index, number, accepted, *rest = elements
        element = Element(bits, index, real)
        return element.until_accepted(trial_of(element, *rest), (literal(2 + 2 * at_once), number, accepted))

    made: Node = map(go_on, (index, cast(number, real), accepted, *flat))
    return reshape(made, own)


def each(name: str, draw: Callable[..., Node], key: Any, shape: Shape, dtype: Any, *parameters: Any) -> Node:
    """`draw(element, *parameters)` for each element. What it gives has no derivative of its own."""
    bits, real, own, flat = _flat(name, key, shape, dtype, *parameters)
    made: Node = map(lambda elements: draw(Element(bits, elements[0], real), *elements[1:]), flat)
    return reshape(made, own)


def _flat(name: str, key: Any, shape: Shape, dtype: Any, *parameters: Any) -> tuple[Node, str, Any, tuple[Node, ...]]:
    """The key, the dtype and the shape of a draw; and the places and parameters of its elements, as vectors."""
    own, nodes = sized(name, shape, *parameters)
    real = float_of(name, dtype, *nodes)
    vectors = places(own), *(cast(stop_gradient(node), real) for node in nodes)
    return as_key(key), real, own, tuple(reshape(node, (sizes.product(own),)) for node in vectors)


# Gamma numbers, and what is made of them ------------------------------------------------------------------------------


def gamma(key: Any, a: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw gamma numbers of shape `a` and scale 1 (Marsaglia and Tsang, ACM Transactions on Mathematical Software
    26, 2000). Their derivative by `a`: distributions.py."""
    number, alpha = _drawn_gamma("gamma", 0, key, a, shape, dtype)

    def rule(inputs: Sequence[Node], results: Sequence[Node], cotangents: Any, wanted: Any) -> list[Node]:
        drawn = results[0]
        # a number that has underflown goes down no further
        least = literal(np.finfo(drawn.type.dtype).tiny, drawn.type.dtype)
        return [cotangents[0] * drawn * slope(E("log", E("maximum", drawn, least)), inputs[0])]

    return overridden([number], [alpha], rule)[0]


def log_gamma_number(key: Any, a: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """The logarithms of gamma numbers: where `a` is small the numbers themselves underflow."""
    number, alpha = _drawn_gamma("loggamma", 1, key, a, shape, dtype)

    def rule(inputs: Sequence[Node], results: Sequence[Node], cotangents: Any, wanted: Any) -> list[Node]:
        return [cotangents[0] * slope(results[0], inputs[0])]

    return overridden([number], [alpha], rule)[0]


def _drawn_gamma(name: str, which: int, key: Any, a: Any, shape: Shape, dtype: Any) -> tuple[Node, Node]:
    """Gamma numbers or their logarithms, and the parameter in their shape and dtype."""
    own, (alpha,) = sized(name, shape, a)
    real = float_of(name, dtype, alpha)
    alpha = cast(alpha, real)
    cube = first_accepted(name, _cubes, key, own, real, alpha)
    element = Element(as_key(key), places(own), real)
    return _gamma(element, stop_gradient(alpha), cube)[which], alpha


def _third(alpha: Node) -> tuple[Node, Node]:
    """Tell whether a parameter is below 1, where numbers of alpha + 1 are drawn; and what is drawn, less a third."""
    is_small = E("less", alpha, literal(np.dtype(alpha.type.dtype).type(1.0), alpha.type.dtype))
    return is_small, E("where", is_small, alpha + 1.0, alpha) - 1.0 / 3.0


def _cubes(element: Element, alpha: Node) -> Trial:
    """Return the trial whose result is a cube of a linear function of a normal number (Marsaglia and Tsang, 2000)."""
    _, third = _third(alpha)
    slope = 1.0 / E("sqrt", 9.0 * third)

    def trial(first: Node, second: Node) -> tuple[Node, Node]:
        x = element.normal(first)
        side = 1.0 + slope * x
        cube = side * side * side
        chance = 0.5 * x * x + third * (1.0 - cube + log(E("maximum", cube, element.number(0.0))))
        return cube, E("logical_and", E("greater", cube, 0.0), E("less", log(element.units(second)[0]), chance))

    return trial


def _gamma(element: Element, alpha: Node, cube: Node) -> tuple[Node, Node]:
    """A number and its logarithm. Below 1 it is one of alpha + 1 times u ** (1 / alpha)."""
    is_small, third = _third(alpha)
    whole = third * cube
    whole = E("where", E("less", alpha, 0.0), element.number(math.nan), whole)  # -1/2 + 1 is a parameter as well
    power = log(element.units(1)[0]) / alpha
    return (E("where", is_small, whole * exp(power), whole), E("where", is_small, log(whole) + power, log(whole)))


def generalized_normal(key: Any, p: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw numbers of a density proportional to exp(-abs(x) ** p): gamma numbers of shape 1 / p, to the power 1 / p,
    with a random sign.

        >>> graphc.random.generalized_normal(graphc.random.key(0), 2.0, (5,)).shape
        (5,)
    """
    own, (power,) = sized("generalized_normal", shape, p)
    real = float_of("generalized_normal", dtype, power)
    power = cast(power, real)
    size = log_gamma_number(fold_in(key, 0), 1.0 / power, own, real)
    return rademacher(fold_in(key, 1), own, real) * E("portable_exp", size / power)


def maxwell(key: Any, shape: Shape = (), dtype: Any = None) -> Node:
    """Draw lengths of standard normal vectors in three dimensions.

    >>> graphc.random.maxwell(graphc.random.key(0), (5,)).shape
    (5,)
    """
    own, _ = sized("maxwell", shape)
    return E("sqrt", E("sqr", normal(key, (*own, 3), dtype)).sum(axis=-1))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw loc + scale * m, where m is a Maxwell number with a random sign.

    >>> graphc.random.double_sided_maxwell(graphc.random.key(0), 0.0, 1.0, (5,)).shape
    (5,)
    """
    own, (middle, width) = sized("double_sided_maxwell", shape, loc, scale)
    real = float_of("double_sided_maxwell", dtype, middle, width)
    drawn = maxwell(fold_in(key, 0), own, real) * rademacher(fold_in(key, 1), own, real)
    return cast(middle, real) + cast(width, real) * drawn


def chisquare(key: Any, df: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw chi-square numbers with `df` degrees of freedom: twice gamma numbers of shape df / 2."""
    return 2.0 * gamma(key, 0.5 * as_node(df), shape, dtype)


def beta(key: Any, a: Any, b: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw beta numbers: g1 / (g1 + g2) of gamma numbers of shapes `a` and `b`. Logarithms avoid 0 / 0."""
    own, (left, right) = sized("beta", shape, a, b)
    logs = [log_gamma_number(fold_in(key, n), each, own, dtype) for n, each in enumerate((left, right))]
    difference = logs[0] - logs[1]
    is_above = E("greater", difference, 0.0)
    odds = exp(E("where", is_above, -difference, difference))
    return E("where", is_above, 1.0, odds) / (1.0 + odds)


def dirichlet(key: Any, alpha: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw vectors along the last axis whose sum is 1: gamma numbers over their sum. shape: without that axis."""
    chances = as_node(alpha)
    if shape is not None:
        front, _ = sized("dirichlet", shape)
        shape = (*front, chances.type.shape[-1])
    logs = log_gamma_number(key, chances, shape, dtype)
    powers = exp(logs - logs.max(axis=-1, keepdims=True))
    return powers / expand(powers.cumsum(axis=-1)[..., -1], (powers.ndim - 1,))


def t(key: Any, df: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw Student's t numbers: z / sqrt(c / df), where z is standard normal and c is chi-square."""
    own, (freedom,) = sized("t", shape, df)
    real = float_of("t", dtype, freedom)
    half = 0.5 * cast(freedom, real)
    return normal(fold_in(key, 0), own, real) * E("sqrt", half / gamma(fold_in(key, 1), half, own, real))


def f(key: Any, dfnum: Any, dfden: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw F numbers: the ratio of two chi-square numbers, each over its degrees of freedom."""
    own, (above, under) = sized("f", shape, dfnum, dfden)
    real = float_of("f", dtype, above, under)
    halves = [0.5 * cast(each, real) for each in (above, under)]
    numbers = [gamma(fold_in(key, n), each, own, real) / each for n, each in enumerate(halves)]
    return numbers[0] / numbers[1]


# Whole numbers --------------------------------------------------------------------------------------------------------


def poisson(key: Any, lam: Any, shape: Shape = None, dtype: Any = "int64") -> Node:
    """Draw Poisson numbers of mean `lam`. Below a mean of 10 the probabilities are summed; above it Hörmann's method
    PTRS (Insurance: Mathematics and Economics 12, 1993) is used. A mean that is negative, NaN or too large gives -1."""

    def hat_of(mean: Node) -> _TransformedRejection:
        b = 0.931 + 2.53 * E("sqrt", mean)
        return _TransformedRejection(
            -0.059 + 0.02483 * b, b, mean + 0.43, 0.9277 - 3.6224 / (b - 2.0), 1.1239 + 1.1328 / (b - 3.4)
        )

    def small(limit: Node, mean: Node) -> Node:
        return _add_up(limit, exp(-mean), lambda k: mean / k)

    def chance_of(mean: Node) -> Callable[[Node], Node]:
        log_mean = log(mean)
        return lambda k: k * log_mean - mean - log_factorial(k)

    own, (mean,) = sized("poisson", shape, lam)
    drawn = _added_up_or_tried("poisson", _TwoMethods(lambda mean: mean, small, hat_of, chance_of), key, own, mean)
    return whole(drawn, E("greater_equal", mean, 0), dtype)


def binomial(key: Any, n: Any, p: Any, shape: Shape = None, dtype: Any = "int64") -> Node:
    """Draw the number of successes in `n` trials, of probability `p` each. Where few are expected, the probabilities
    are summed; elsewhere Hörmann's method BTRS (Journal of Statistical Computation and Simulation 46, 1993) is used.
    Invalid parameters give -1."""

    def rarer(chance: Node) -> Node:
        return E("where", E("less_equal", chance, 0.5), chance, 1.0 - chance)

    def hat_of(count: Node, chance: Node) -> _TransformedRejection:
        q = rarer(chance)
        width = E("sqrt", count * q * (1.0 - q))
        b = 1.15 + 2.53 * width
        a, c, quick = -0.0873 + 0.0248 * b + 0.01 * q, count * q + 0.5, 0.92 - 4.2 / b
        return _TransformedRejection(a, b, c, quick, (2.83 + 5.1 / b) * width, count)

    def small(limit: Node, count: Node, chance: Node) -> Node:
        q = rarer(chance)
        odds = q / (1.0 - q)
        return _add_up(limit, exp(count * log1p(-q)), lambda k: (count - k + 1.0) / k * odds, count)

    def chance_of(count: Node, chance: Node) -> Callable[[Node], Node]:
        q = rarer(chance)
        mode, log_odds = E("floor", (count + 1.0) * q), log(q / (1.0 - q))
        top = log_factorial(mode) + log_factorial(count - mode)

        def log_chance(k: Node) -> Node:
            return top - log_factorial(k) - log_factorial(count - k) + (k - mode) * log_odds

        return log_chance

    own, (count, chance) = sized("binomial", shape, n, p)
    ways = _TwoMethods(lambda count, chance: count * rarer(chance), small, hat_of, chance_of)
    drawn = _added_up_or_tried("binomial", ways, key, own, count, chance)
    successes = E("where", E("less_equal", chance, 0.5), drawn, cast(count, EXACTLY) - drawn)
    is_chance = E("logical_and", E("greater_equal", chance, 0), E("less_equal", chance, 1))
    holds = E("logical_and", is_chance, E("greater_equal", count, 0))
    return whole(successes, holds, dtype)


def negative_binomial(key: Any, n: Any, p: Any, shape: Shape = None, dtype: Any = "int64") -> Node:
    """Draw the number of failures before `n` successes of probability `p`: Poisson numbers of a gamma mean."""
    own, (count, chance) = sized("negative_binomial", shape, n, p)
    count, chance = cast(count, EXACTLY), cast(chance, EXACTLY)
    mean = gamma(fold_in(key, 0), count, own, EXACTLY) * (1.0 - chance) / chance
    return poisson(fold_in(key, 1), mean, own, dtype)


def _add_up(limit: Node, first: Node, ratio: Callable[[Node], Node], most: Node | None = None) -> Node:
    """The first k at which the chances of 0 … k exceed `limit`, a uniform number; ratio(k) is that of chance k to the
    one before."""

    def goes_on(carry: tuple[Node, Node, Node]) -> Node:
        k, chance, total = carry
        more = E("logical_and", E("less", total, limit), E("greater", chance, 0.0))
        return more if most is None else E("logical_and", more, E("less", k, most))

    def step(carry: tuple[Node, Node, Node]) -> tuple[Node, Node, Node]:
        k, chance, total = carry
        following = chance * ratio(k + 1.0)
        return k + 1.0, following, total + following

    total: Node = while_loop(goes_on, step, (literal(0.0, EXACTLY), first, first))[0]
    return total


class _TransformedRejection:
    """Hörmann's transformed rejection: k = floor((2 a / (1/2 - |u|) + b) u + c), taken at once where v is at most
    `quick`, else where v * scale / (a / (1/2 - |u|)**2 + b) is at most the chance of k. most: the largest k."""

    def __init__(self, a: Node, b: Node, c: Node, quick: Node, scale: Node, most: Node | None = None) -> None:
        self.a, self.b, self.c, self.quick, self.scale, self.most = a, b, c, quick, scale, most

    def trial(self, element: Element, draw: Node, log_chance: Callable[[Node], Node], one: bool) -> tuple[Node, Node]:
        """The number of a trial, and whether it is accepted. one: of a single element, for which there are logarithms
        only where it is not quick; about half are."""
        u, v = element.units(draw)
        u = u - 0.5
        near = 0.5 - abs(u)
        k = E("floor", (2.0 * self.a / near + self.b) * u + self.c)
        is_quick = E("logical_and", E("greater_equal", near, 0.07), E("less_equal", v, self.quick))
        fits = E("greater_equal", k, 0.0)
        if self.most is not None:
            fits = E("logical_and", fits, E("less_equal", k, self.most))

        def is_under() -> Node:
            clamped = E("maximum", k, element.number(0.0))
            clamped = clamped if self.most is None else E("minimum", clamped, self.most)
            below = log(v * self.scale / (self.a / (near * near) + self.b))
            return E("less_equal", below, log_chance(clamped))

        is_taken: Node = (
            cond(is_quick, lambda: literal(np.True_, "bool"), is_under)
            if one
            else E("logical_or", is_quick, is_under())
        )
        return k, E("logical_and", fits, is_taken)


@record()
class _TwoMethods:
    """Two ways to draw a number, by functions of parameters. mean: the distribution is added up where it is below 10.
    small(limit, *parameters): that, of a uniform number. hat, chance: of trials otherwise, and the logarithm of the
    chance of a number, up to what all have."""

    mean: Callable[..., Node]
    small: Callable[..., Node]
    hat: Callable[..., _TransformedRejection]
    chance: Callable[..., Callable[[Node], Node]]


def _added_up_or_tried(name: str, ways: _TwoMethods, key: Any, shape: Shape, *parameters: Any) -> Node:
    """A number for each element. The uniform numbers and the first trials are of all elements at once, in vectors. A
    loop over elements adds up, and goes through the trials of those that failed the first."""
    bits, real, own, (index, *flat) = _flat(name, key, shape, EXACTLY, *parameters)

    def is_small(parameters: Sequence[Node]) -> Node:
        return E("less", ways.mean(*parameters), SMALL_MEAN)

    element = Element(bits, index, real)
    k, accepted = ways.hat(*flat).trial(element, literal(2), ways.chance(*flat), one=False)
    begun = E("where", is_small(flat), element.units(1)[0], E("where", accepted, k, -1.0))

    def go_on(elements: Sequence[Node]) -> Node:
        index, begun, *rest = elements

        def try_on() -> Node:
            element, hat, chance = Element(bits, index, real), ways.hat(*rest), ways.chance(*rest)

            def trial(first: Node, second: Node) -> tuple[Node, Node]:
                return hat.trial(element, first, chance, one=True)

            return element.until_accepted(trial, (literal(4), begun, literal(np.False_, "bool")))

        def kept_or_tried() -> Node:
            number: Node = cond(E("greater_equal", begun, 0.0), lambda: begun, try_on)
            return number

        drawn: Node = cond(is_small(rest), lambda: ways.small(begun, *rest), kept_or_tried)
        return drawn

    made: Node = map(go_on, (index, begun, *flat))
    return reshape(made, own)


# Angles and parts of the normal distribution --------------------------------------------------------------------------


def vonmises(key: Any, mu: Any, kappa: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw angles about `mu` of concentration `kappa` (Best and Fisher, Applied Statistics 28, 1979), from -pi to pi.
    Their derivatives: distributions.py."""

    def trial_of(element: Element, kappa: Node) -> Trial:
        r = 1.0 + E("sqrt", 1.0 + 4.0 * kappa * kappa)
        # (r - sqrt(2 r)) / (2 kappa), which cancels for a small kappa
        rho = 2.0 * kappa / (r + E("sqrt", 2.0 * r))
        s = (1.0 + rho * rho) / (2.0 * rho)

        def trial(first: Node, second: Node) -> tuple[Node, Node]:
            # the cosine of a random angle, by the tangent of its half, which has one half of a block, v the other
            square = E("sqr", element.half("philox_cauchy", first, 0))
            z, v = (1.0 - square) / (1.0 + square), element.units(first)[1]
            w = (1.0 + s * z) / (s + z)
            c = kappa * (s - w)
            accepted = E("logical_or", E("less", v, c * (2.0 - c)), E("greater_equal", log(c / v) + 1.0, c))
            return w, accepted

        return trial

    own, (centre, concentration) = sized("vonmises", shape, mu, kappa)
    real = float_of("vonmises", dtype, centre, concentration)
    concentration = not_negative(concentration, real)
    cosine = first_accepted("vonmises", trial_of, fold_in(key, 0), own, real, concentration, at_once=2)
    low, high = blocks(fold_in(key, 1), places(own))
    side = E("where", E("less", unit(low, real), 0.5), -1.0, 1.0)
    # without concentration the angle is uniform
    flat = (2.0 * unit(high, real) - 1.0) * math.pi
    angle = E("where", E("less", stop_gradient(concentration), 1e-8), flat, side * E("portable_arccos", cosine))
    angle = by_its_place(cast(angle, real), [concentration], angle_by_concentration)
    turned = E("mod", cast(centre, real) + angle + math.pi, 2.0 * math.pi) - math.pi
    return cast(turned, real)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape = None, dtype: Any = None) -> Node:
    """Draw standard normal numbers between two limits (Robert, Statistics and Computing 5, 1995). Their derivatives by
    these: distributions.py."""

    def draw(element: Element, low: Node, high: Node) -> Node:
        turned = E("less", high, element.number(0.0))
        a, b = E("where", turned, -high, low), E("where", turned, -low, high)

        def anywhere() -> Node:
            def trial(first: Node, second: Node) -> tuple[Node, Node]:
                x = element.normal(first)
                return x, E("logical_and", E("greater_equal", x, a), E("less_equal", x, b))

            return element.until_accepted(trial)

        def evenly() -> Node:
            peak = E("maximum", a, element.number(0.0))

            def trial(first: Node, second: Node) -> tuple[Node, Node]:
                u, v = element.units(first)
                x = a + (b - a) * u
                return x, E("less_equal", log(v), 0.5 * (peak * peak - x * x))

            return element.until_accepted(trial)

        def tail() -> Node:
            rate = 0.5 * (a + E("sqrt", a * a + 4.0))

            def trial(first: Node, second: Node) -> tuple[Node, Node]:
                u, v = element.units(first)
                x = a - log(u) / rate
                within = E("less_equal", x, b)
                return x, E("logical_and", within, E("less_equal", log(v), -0.5 * E("sqr", x - rate)))

            return element.until_accepted(trial)

        is_wide = E(
            "greater", b - a, E("where", E("less_equal", a, 0.0), 2.5, 2.0 / E("maximum", a, element.number(0.1)))
        )
        drawn = cond(is_wide, lambda: cond(E("less_equal", a, 0.3), anywhere, tail), evenly)
        return E("where", turned, -drawn, drawn)

    own, limits = sized("truncated_normal", shape, lower, upper)
    real = float_of("truncated_normal", dtype, *limits)
    number = each("truncated_normal", draw, key, own, real, *limits)
    number = E("where", E("less_equal", *(cast(stop_gradient(limit), real) for limit in limits)), number, math.nan)
    return by_its_place(number, [cast(limit, real) for limit in limits], truncated_by_limits)
