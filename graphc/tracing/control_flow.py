"""The calls that stand for loops and choices in the rewritten code of a traced program (rewritten.py).

In: tests, and blocks as functions. Out: what Python would do, where the tests are known and outside of traces; else
nodes of loops and branches (repetitions.py, blocks.py). A loop becomes a node where the plan says so, and within
another one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Node, plain
from graphc.ops.elementwise import as_node, cast, elementwise
from graphc.tensor import boundary
from graphc.tensor.handles import Region
from graphc.tensor.python_functions import is_open
from graphc.tracing.blocks import BREAK, Open, Returned, merged, truth, truth_node
from graphc.tracing.loop_plans import giving_up, is_compiled
from graphc.tracing.repetitions import Elements, Repetition, counted, elements_of, repeated

SHORT = 8
"""The most steps that a loop of a known number of steps is written out for, within a loop that is compiled."""
Ask: TypeAlias = Callable[[Any], bool]
"""A function of the program that asks for the truth of a value."""


class Flow:
    """The functions that rewritten code calls in place of loops and choices."""

    BREAK = BREAK
    Returned = Returned

    @staticmethod
    def raised(error: Callable[[], Any]) -> Any:
        """`raise` in a branch of a node, which cannot be a part of it: raises GraphTypeError."""
        raise GraphTypeError(f"it raises {error()!r}")

    @staticmethod
    def is_node() -> bool:
        """True in a block that becomes a part of a node."""
        return Region.is_open()

    @staticmethod
    def branch(ask: Ask, test: Any, then: Callable[[], Any], orelse: Callable[[], Any], names: Sequence[str]) -> Any:
        """`if`. Returns the status."""
        if Region.is_open() and is_open(test):
            return merged(test, (then, orelse), names)
        return then() if ask(test) else orelse()

    @staticmethod
    def loop(
        ask: Ask,
        test: Callable[[], Any],
        place: tuple[int, int],
        body: Callable[[], Any],
        names: Sequence[str],
        first: Sequence[str],
        used: Sequence[str],
        ends: bool,
    ) -> Any:
        """`while`. Returns the status."""
        loop = is_compiled(body, place)
        if loop is not None:
            with giving_up(loop):
                return repeated(Repetition((body, test), names, first, used), lambda _: body(), test, None)
        while True:
            if Region.is_open():
                holds = test()
                if is_open(holds) or (ends and holds):
                    return repeated(Repetition((body, test), names, first, used), lambda _: body(), test, None)
                if not ask(holds):
                    return None
            elif not ask(test()):
                return None
            status = ended_step(ask, body())
            if status is BREAK:
                return None
            if status is not None:
                return status

    @staticmethod
    def each(
        ask: Ask,
        over: Any,
        place: tuple[int, int],
        body: Callable[[Any], Any],
        names: Sequence[str],
        first: Sequence[str],
        used: Sequence[str],
        ends: bool,
    ) -> Any:
        """`for`. Returns the status."""
        loop = is_compiled(body, place)
        elements = elements_of(over)
        if loop is not None:
            with giving_up(loop):
                if elements.at is None:
                    raise GraphTypeError("what it goes over is no range and no array")
                return repeated(Repetition((body,), names, first, used), body, None, elements)
        if Region.is_open() and elements.at is not None:
            is_short = isinstance(elements.length, int) and elements.length <= SHORT and not ends
            if not is_short:
                return repeated(Repetition((body,), names, first, used), body, None, elements)
        for element in elements.plain():
            status = ended_step(ask, body(element))
            if status is BREAK:
                return None
            if status is not None:
                return status
        return None

    @staticmethod
    def elements(function: Any, *given: Any) -> Any:
        """`range(n)`, `enumerate(x)`, `zip(x, y)` that a `for` loop goes over."""
        if function not in (range, enumerate, zip):
            return function(*given)
        if function is range and any(isinstance(each, Node) for each in given):
            start, stop, step = {1: (0, *given, 1), 2: (*given, 1)}.get(len(given), given)
            if isinstance(step, Node):
                return function(*given)
            distance = as_node(boundary.given(stop), "int64") - as_node(boundary.given(start), "int64")
            if step == 0:
                return function(*given)
            count = -((-distance) // step) if step > 0 else -(distance // -step)
            length = sizes.maximum(sizes.as_size(cast(plain(count), "int64")), 0)
            return Elements(lambda: range(*given), length, lambda place: counted(start, step, place))
        if function is enumerate and 1 <= len(given) <= 2:
            inner = elements_of(given[0])
            start = given[1] if len(given) == 2 else 0
            if inner.at is not None:
                at = inner.at
                return Elements(
                    lambda: enumerate(inner.plain(), start), inner.length, lambda k: (counted(start, 1, k), at(k))
                )
        if function is zip and given:
            several = [elements_of(each) for each in given]
            lengths = [each.length for each in several if each.length is not None]
            if len(lengths) == len(several):
                length = reduce(sizes.minimum, lengths)
                return Elements(
                    lambda: zip(*(each.plain() for each in several), strict=False),
                    length,
                    lambda k: tuple(each.at(k) for each in several),  # type: ignore[misc]
                )
        return function(*given) if function is range else function(*map(pythons, given))

    @staticmethod
    def length(function: Any, value: Any) -> Any:
        """`len(x)`: the size of a tensor, which asks nothing."""
        if function is len and isinstance(value, Node) and value.ndim:
            return FUNCTIONS["plain_shape"](boundary.given(value))[0]
        return function(value)

    @staticmethod
    def after(ask: Ask, status: Any, rest: Callable[[], Any], names: Sequence[str], is_short: bool) -> Any:
        """What comes behind a loop that may return. Returns the status."""
        if status is None:
            return rest()
        if type(status) is not Open:
            return status
        is_over = elementwise("equal", status.code, 2)
        if Region.is_open() or is_short:
            return merged(is_over, (lambda: Returned(status.value), rest), names)
        return Returned(status.value) if ask(is_over) else rest()

    @staticmethod
    def decided(ask: Ask, status: Any) -> Any:
        """The status of a loop, asked for where it is open."""
        if type(status) is not Open:
            return status
        return Returned(status.value) if ask(elementwise("equal", status.code, 2)) else None

    @staticmethod
    def result(status: Any) -> Any:
        """The result of a function whose block ended so."""
        if type(status) is Open:
            raise GraphTypeError("it is open whether the function returns")
        return None if status is None else status.value

    @staticmethod
    def both(ask: Ask, *sides: Callable[[], Any]) -> Any:
        """`and`."""
        return combined(ask, sides, True)

    @staticmethod
    def either(ask: Ask, *sides: Callable[[], Any]) -> Any:
        """`or`."""
        return combined(ask, sides, False)

    @staticmethod
    def negated(ask: Ask, value: Any) -> Any:
        """`not`."""
        if Region.is_open() and is_open(value):
            return elementwise("logical_not", truth(value))
        return not ask(value)

    @staticmethod
    def chosen(ask: Ask, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """`a if test else b`."""
        if Region.is_open() and is_open(test):
            status = merged(test, (lambda: Returned(then()), lambda: Returned(orelse())), ())
            return status.value
        return then() if ask(test) else orelse()


FLOW = Flow()


def pythons(value: Any) -> Any:
    """What Python's own functions take in place of elements."""
    return elements_of(value).plain() if isinstance(value, (Elements, Node)) else value


def combined(ask: Ask, sides: Sequence[Callable[[], Any]], goes_on_if: bool) -> Any:
    """`and` of values, or with goes_on_if=False `or`."""
    value = sides[0]()
    if len(sides) == 1:
        return value
    if Region.is_open() and is_open(value):
        holds = truth(value)

        def rest() -> Any:
            return Returned(truth_node(combined(ask, sides[1:], goes_on_if)))

        pair = rest, lambda: Returned(holds)
        return merged(holds, pair if goes_on_if else pair[::-1], ()).value
    if ask(value) is not goes_on_if:
        return value
    return combined(ask, sides[1:], goes_on_if)


def ended_step(ask: Ask, status: Any) -> Any:
    """The status of a step that Python carries out."""
    if type(status) is Open:
        if Region.is_open():
            raise GraphTypeError("a loop of known steps may end early")
        if ask(elementwise("equal", status.code, 2)):
            return Returned(status.value)
        return BREAK if ask(elementwise("equal", status.code, 1)) else None
    return status
