"""The loops of a traced program that become nodes, as questions about values in them are met.

    @graphc.jit
    def root(a):
        x = a
        while abs(x * x - a) > 1e-9:      asks in a loop: `LoopAsked`; the plan has the loop from now on
            x = (x + a / x) / 2           traced again, with calls in place of loops (rewritten.py)
        return x

In: a function of `jit`, while it is traced. Out: a trace in which each loop that asks is a node, or is gone through
step by step where it cannot be one (`NotCompiled`), as where its body appends to a list: its tests are questions again.
Which loops these are follows from the function and the types of its arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from types import CodeType, FrameType, FunctionType
from typing import Any

from graphc.errors import ShapeError
from graphc.ir.node import Node
from graphc.ir.source_lines import PACKAGE, TRACE, is_pythons, written
from graphc.startup.record import record
from graphc.tensor.handles import Region

MANY = 20_000
"""The nodes of a trace, half a second of it, after which a loop that is being gone through is to be a node. Fewer are
faster written out."""


NO_SOURCE = "the source of its function is not at hand, or has `global`, `nonlocal`, `yield`, `eval` or `locals()`"


TRIED = "a function that it may call has a `try`, which might catch what cannot be compiled"


@record()
class Loop:
    """A loop of a program: its file, and its line and column."""

    file: str
    line: int
    column: int


class Restart(BaseException):
    """The function is traced again. The program's own `except` does not see it."""


class LoopAsked(Restart):
    """A question about a value was asked in a loop, or a loop makes very many nodes: the function is traced again, with
    the loop as a node."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.loop = loop


class NotCompiled(Restart):
    """A loop cannot be a node: the function is traced again, step by step."""

    def __init__(self, loop: Loop, reason: str) -> None:
        super().__init__(loop, reason)
        self.loop, self.reason = loop, reason


class Plan:
    """What is known of the loops of a function that is traced. end: the code of the caller of the function. reasons: by
    loop, why it is traced step by step; None of a loop that is compiled. met: the loops that were about to become
    nodes. left: how many nodes are made until a loop that is being gone through is to become one."""

    def __init__(self, end: CodeType) -> None:
        self.end = end
        self.reasons: dict[Loop, str | None] = {}
        self.met: set[Loop] = set()
        self.left = MANY

    @property
    def compiled(self) -> list[Loop]:
        """The loops that are compiled."""
        return [loop for loop, reason in self.reasons.items() if reason is None]

    def counted(self, node: Node) -> Node:
        """Return a node that is made. Raises LoopAsked where there are many of them, and the program is in a loop."""
        self.left -= 1
        if not self.left:
            self.left = MANY
            self.ask()
        return node

    def ask(self) -> None:
        """Raise LoopAsked if the program asks in a loop of which nothing is known."""
        if Region.is_open():
            return
        frame: FrameType | None = sys._getframe(1)
        asking, traced = list[Loop](), list[Loop]()
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith(PACKAGE) and not is_pythons(file):
                around = _source().loops_around(frame.f_code, frame.f_lasti)
                asking = [*(Loop(file, *place) for place in around), *asking]
            elif frame.f_code is self.end:
                traced = asking  # what comes behind may be loops around the call of the function
            frame = frame.f_back
        for loop in traced:
            if loop not in self.reasons:
                raise LoopAsked(loop)
            if self.reasons[loop] is None and loop not in self.met:
                self.reasons[loop] = NO_SOURCE

    def told(self) -> str:
        """Why the last loop that asked is not compiled, for messages; "" if there is none."""
        for loop, reason in reversed(self.reasons.items()):
            if reason is not None:
                return f"; the loop at {written(loop.file, loop.line)} is not compiled: {reason}"
        return ""


def _source() -> Any:
    """The module that reads sources. Imported here: functions that ask nothing need none."""
    return import_module("graphc.tracing.rewritten")


def with_loops(
    plan: Plan, trace: Callable[[], Any], functions: Callable[[], Sequence[FunctionType]], flow: Callable[[], Any]
) -> Any:
    """Trace a function until it is known which of its loops become nodes. functions: gives those of the program that it
    may call; flow: what rewritten code calls."""
    before = dict(plan.reasons)
    while True:
        outer, TRACE.loops = (TRACE.loops, TRACE.strict), plan
        if TRACE.strict is None:
            plan.left, TRACE.strict = MANY, plan.counted
        try:
            if not plan.compiled:
                return trace()
            called = functions()
            if any(_source().has_try(each.__code__) for each in called):
                plan.reasons |= dict.fromkeys(plan.compiled, TRIED)
                continue
            with rewritten(called, flow()):
                return trace()
        except LoopAsked as asked:
            plan.reasons[asked.loop] = None
        except NotCompiled as refused:
            plan.reasons[refused.loop] = refused.reason
        except ShapeError:
            raise
        except Exception as error:  # such as a derivative that loops of unknown length do not have
            if not plan.compiled:  # an error of the program, for these arguments: of its loops it says nothing
                plan.reasons = before
                raise
            plan.reasons |= dict.fromkeys(plan.compiled, str(error).partition("\n")[0])
        finally:
            TRACE.loops, TRACE.strict = outer


SWAPPED: dict[FunctionType, tuple[int, CodeType]] = {}
"""The functions that have another code now: how many traces need it, and their own code."""
LOCK = Lock()


@contextmanager
def rewritten(functions: Sequence[FunctionType], flow: Any) -> Iterator[None]:
    """While the block runs, functions of the program have calls in place of their loops and choices."""
    changed = list[FunctionType]()
    with LOCK:
        for function in functions:
            count, own = SWAPPED.get(function, (0, function.__code__))
            code = _source().rewritten_code(own, function.__globals__, flow)
            if code is not None:
                SWAPPED[function] = count + 1, own
                function.__code__ = code
                changed.append(function)
    try:
        yield
    finally:
        with LOCK:
            for function in changed:
                count, own = SWAPPED.pop(function)
                if count > 1:
                    SWAPPED[function] = count - 1, own
                else:
                    function.__code__ = own


def is_compiled(body: Any, place: tuple[int, int]) -> Loop | None:
    """The loop, if it is to become a node of the function that is traced."""
    plan: Plan | None = TRACE.loops
    if plan is None or not TRACE.depth or Region.is_open():
        return None
    loop = Loop(body.__code__.co_filename, *place)
    if loop not in plan.reasons or plan.reasons[loop] is not None:
        return None
    plan.met.add(loop)
    return loop


@contextmanager
def giving_up(loop: Loop) -> Iterator[None]:
    """Let the function be traced again without this loop as a node, if that is an error."""
    try:
        yield
    except Exception as error:
        raise NotCompiled(loop, str(error).partition("\n")[0] or type(error).__name__) from error
