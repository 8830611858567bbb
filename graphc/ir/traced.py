"""State of tracing: which function is traced, which tensors follow from its arguments, and who asks.

In: a node, or the frame that asks. Out:

- `TRACE.depth`: above 0 while a function written for arrays is called with tensors (`graphc.tracing`).
- `traced_hint(node)`: for an error about an unknown value, the argument it follows from.
- `by_program()`: True if a traced program called the graphc function that asks: it is given handles then
  (`tensor/handles.py`), which may be written.
"""

from __future__ import annotations

import sys
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dis import get_instructions
from itertools import count
from opcode import opname
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from graphc.ir.source_lines import PACKAGE, is_pythons
from graphc.startup.hooks import HOOKS

TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments of a traced function, with their descriptions for messages."""


LEFT: WeakSet[Any] = WeakSet()
"""Such variables whose function has returned. A tensor that follows from them and is not a result has no value any
more."""


class Trace(_local):
    """The tracing state of a thread. depth: nesting of the traced functions being called. levels: an object for each of
    them; an array is written to only where it was made. scalars: tensors without axes made meanwhile, which the program
    must not hash. refused: the last error about an unknown value, with its line; NumPy drops such errors and raises its
    own. at_hand: the sizes of the arguments (`ops.at_hand`); None without. asked_of: the descriptions of the arguments
    that the value in the last error follows from. has_asked_class: the program has asked for the class of an argument
    without axes, which is an array or a number of NumPy's. seeded: the outermost level in which the program has called
    np.random.seed. may_draw: it may draw without. watch: a context around each call of a step, a branch or an
    element, which is traced once and runs many times: what it draws is an error."""

    def __init__(self) -> None:
        self.depth = 0
        self.levels: list[object] = []
        self.at_hand: Any = None
        self.refused: tuple[Any, Any] = (None, None)
        self.scalars: list[Any] = []
        self.asked_of: frozenset[str] = frozenset()
        self.has_asked_class = False
        self.seeded: object = None
        self.may_draw = False
        self.watch: Callable[[Any], Any] = nullcontext

    def __enter__(self) -> None:
        self.depth += 1
        self.levels.append(object())
        if self.depth == 1:
            HOOKS.creations.replace()

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        self.levels.pop()
        if not self.depth:
            HOOKS.creations.restore()
            scalars, self.scalars = self.scalars, []
            for scalar in scalars:
                scalar.stand_back()


TRACE = Trace()
"""A context manager, entered around each call of a function written for arrays with tensors in their place."""


def traced_from(node: Any, by_sizes: bool = True) -> str | None:
    """The description of the argument that a value follows from; None if there is none. by_sizes: count dependence on
    the argument's sizes, too."""
    found = next(_arguments(node, by_sizes), None)
    return None if found is None else str(TRACED[found])


def _arguments(node: Any, by_sizes: bool = True) -> Iterator[Any]:
    """The variables of the arguments that a value follows from."""
    pending, seen = [] if node is None else [node], set[Any]()
    while pending and TRACED:
        found = pending.pop()
        if by_sizes and found.op.name == "size":
            owner = found.sized()
            found = found if owner is None else owner
        if found in seen:
            continue
        seen.add(found)
        if found in TRACED:
            yield found
        else:
            pending += found.args


def traced_hint(node: Any) -> str:
    """The part of an error message that names the argument of the traced function a value follows from, and the
    remedy."""
    arguments = list(_arguments(node))
    TRACE.asked_of = frozenset(TRACED[each] for each in arguments)
    if not arguments:
        return ""
    found = arguments[0]
    why = "whose value only static_argnames would make known"
    if found in LEFT:
        why = "which has returned: what is used outside it must be among its results"
    return f"; it {'is' if node is found else 'follows from'} {TRACED[found]}, {why}"


def asked_by_user(depth: int = 2) -> bool:
    """True if the calling graphc function was called by user code, directly or through Python's or NumPy's own
    modules."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE):
            return False
        if not is_pythons(file):
            return True
        frame = frame.f_back
    return True


def called_names() -> list[str]:
    """The names in the call that the program's innermost frame makes: ["np", "float64"] of `np.float64(x)`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(PACKAGE) or is_pythons(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is None:
        return []
    place = frame.f_lasti
    done = [each for each in get_instructions(frame.f_code) if each.offset <= place]
    begins = [each.positions and (each.positions.lineno, each.positions.col_offset) for each in done]
    pairs = zip(done, begins, strict=True)
    named = [each for each, begin in pairs if begin == begins[-1] and each.opname.startswith("LOAD_")]
    return [str(each.argval) for each in named if each.opname != "LOAD_CONST"]


def instruction(depth: int = 2) -> tuple[str, str]:
    """The names of the bytecode instruction that a frame executes and of the next one."""
    frame = sys._getframe(depth)
    code, place = frame.f_code.co_code, frame.f_lasti
    after = place + 2
    while after < len(code) and opname[code[after]] == "CACHE":
        after += 2
    return opname[code[place]], opname[code[after]] if after < len(code) else ""


_serial = count()


def next_serial() -> int:
    """A serial number above those of all existing nodes."""
    return next(_serial)


def by_program(depth: int = 2) -> bool:
    """True if a traced program called the calling graphc function directly."""
    return bool(TRACE.depth) and not sys._getframe(depth).f_code.co_filename.startswith(PACKAGE)


# --- tensors that stand for numbers -----------------------------------------------------------------------------------
# What a traced program learns of a tensor by its class and by `hasattr`: of a number other things than of an array.
#
#     isinstance(x.sum(), float)       True, as of NumPy's number (`ops/questions.py: class_of`)
#     hasattr(x.sum(), "__len__")      False: numbers have no length
#     isinstance(x.sum(), Iterable)    False
#
# In: the class of tensors that stand for numbers. Out: a metaclass and descriptors that hide from it what arrays have.


class Numbers(type):
    """The metaclass of tensors that stand for numbers. Python's abstract classes look for methods in `__mro__`, and
    find none of a tensor's."""

    @property
    def __mro__(cls) -> tuple[type, ...]:
        return (object,)


class OfArrays:
    """A method or attribute that a number lacks: `hasattr` and `getattr` of a traced program do not find it. Uses of it
    are told what is wrong by the method itself."""

    def __init__(self, inherited: Any) -> None:
        self.inherited = inherited

    def __get__(self, node: Any, owner: type | None = None) -> Any:
        if node is not None and TRACE.depth and asked_by_user() and called_names()[:1] in (["hasattr"], ["getattr"]):
            raise AttributeError("a number has no attribute of this name")
        return self.inherited.__get__(node, owner)

    def __set__(self, node: Any, value: Any) -> None:
        self.inherited.__set__(node, value)
