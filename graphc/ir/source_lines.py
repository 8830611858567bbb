"""The program that uses graphc: its lines, whether a function of it is traced, and who asks. Lazy texts for messages.

In: the frames of a call; a node; functions that write a text. Out:

- the innermost frame outside graphc (`Where`), and texts that are formatted when they are read (`lazy_text`).
- `TRACE.depth`: above 0 while a function written for arrays is called with tensors (`graphc.tracing`).
- `traced_hint(node)`: for an error about an unknown value, the argument it follows from.
- `by_program()`: True if a traced program called the graphc function that asks: it is given handles then
  (`tensor/handles.py`), which may be written.
"""

from __future__ import annotations

import os
import sys
import warnings
from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dis import get_instructions
from functools import lru_cache, partial, partialmethod
from itertools import count
from opcode import opname
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from graphc.startup.hooks import HOOKS
from graphc.startup.record import record

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@record()
class Words:
    """The wording of a check that one node makes on behalf of another (`ops.shape.guard_axis`): a guard's message, in
    which {left} is the actual size of the argument, or, if `turned`, the required one."""

    message: str
    turned: bool


@record()
class Where:
    """A line of the user's program. words: the wording of the check that the node makes for another. derivative: the
    node was made while taking a derivative on that line."""

    file: str
    line: int
    words: Words | None = None
    derivative: bool = False

    def __str__(self) -> str:
        return written(self.file, self.line)


def written(file: str, line: int) -> str:
    """A line in messages: "program.py:3"; "cell 2, line 3" for the second cell that a notebook has run."""
    kernel = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(kernel, "compile", None), "format_code_name", lambda file: None)
    cell = "".join(filter(str.isdigit, str(name_of(file) or "")))  # of IPython's ("Cell", "In[2]")
    return f"cell {cell}, line {line}" if cell else f"{os.path.basename(file)}:{line}"


PLACED = r"(:|, line )\d+\)"
"""Matches a source line in a message."""


def user_line() -> Where | None:
    """The line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    derivative = False
    while frame is not None:
        file = frame.f_code.co_filename
        known = OWN_FILES.get(file)
        if known:
            derivative = True
        elif known is None:
            if not file.startswith(PACKAGE):
                return _where(file, frame.f_lineno, None, True) if derivative else _where(file, frame.f_lineno)
            OWN_FILES[file] = False
        frame = frame.f_back
    return None


def program_line() -> Where | None:
    """Like `user_line`, without modules of Python and NumPy that call for the program: `random.shuffle(x)`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and not is_pythons(file):
            return _where(file, frame.f_lineno)
        frame = frame.f_back
    return None


def is_pythons(file: str) -> bool:
    """True if a file belongs to Python's standard library or to NumPy."""
    return file.startswith(NUMPY) or (file.startswith(STANDARD) and "site-packages" not in file)


STANDARD, NUMPY = (os.path.dirname(str(module.__file__)) + os.sep for module in (os, np))

OWN_FILES: dict[str, bool] = {f"{PACKAGE}autodiff.py": True, partialmethod.__init__.__code__.co_filename: False}
"""graphc's files seen so far, looked up for each frame of each node; True for the file that takes derivatives. Also
functools, which calls cached properties."""
_where = lru_cache(maxsize=1024)(Where)


class LazyText:
    """A text that is formatted each time it is read."""

    __slots__ = ("write",)

    def __init__(self, write: Callable[[], str]) -> None:
        self.write = write

    def __str__(self) -> str:
        return self.write()

    def __format__(self, form: str) -> str:
        return self.write()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (self.write(),)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the innermost frame outside graphc."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def lazy_text(write: Callable[[], str]) -> str:
    """A lazy text for messages, also within other lazy texts: it costs nothing until it is read, as few are."""
    lazy: Any = LazyText(write)
    return lazy


def lazy_format(template: str, *parts: object) -> str:
    """`template.format(*parts)`, formatted when it is read."""
    return lazy_text(partial(template.format, *parts))


def error_line(error: Exception, without: str | None = None) -> tuple[str, int] | None:
    """The innermost (file, line) of the traceback that is not Python's, nor below the folder `without`, or None."""
    line, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not is_pythons(file) and not (without and file.startswith(without)):
            line = file, step.tb_lineno
        step = step.tb_next
    return line


# --- tracing ----------------------------------------------------------------------------------------------------------


TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments of a traced function, with their descriptions for messages."""


GIVEN: WeakSet[Any] = WeakSet()
"""Such variables that graphc gives, and no call of the program: the guess of a solver, an element of a batch. They
cannot be static."""


LEFT: WeakSet[Any] = WeakSet()
"""Such variables whose function has returned. A tensor that follows from them and is not a result has no value any
more."""


class Trace(_local):
    """The tracing state of a thread. depth: nesting of the traced functions being called. levels: an object for each of
    them; an array is written to only where it was made. scalars: tensors without axes made meanwhile, which the program
    must not hash. refused: the last error about an unknown value, with its line; NumPy drops such errors and raises its
    own. at_hand: the sizes of the arguments (ops.questions); None without. asked_of: the descriptions of the arguments
    that the value in the last error follows from. has_asked_class: the program has asked for the class of an argument
    without axes, which is an array or a number of NumPy's. seeded: the outermost level in which the program has called
    np.random.seed. may_draw: it may draw without. watch: a context around each call of a step, a branch or an
    element, which is traced once and runs many times: what it draws is an error. strict: called with each node that is
    made, which it returns unless its sizes disagree (`ops.questions.agreeing`); None without. values: the values of
    tensors for the arguments of this call (`tracing.answers.Values`); None where a trace serves many calls. loops: the
    loops of the program that become nodes (`tracing.control_flow.Plan`); None where none does."""

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
        self.strict: Callable[[Any], Any] | None = None
        self.values: Any = None
        self.loops: Any = None

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
    """The description of the argument that a value follows from, or None. by_sizes: also from the argument's sizes."""
    argument = next(_arguments(node, by_sizes), None)
    return None if argument is None else str(TRACED[argument])


def _arguments(node: Any, by_sizes: bool = True) -> Iterator[Any]:
    """The variables of the arguments that a value follows from."""
    pending, seen = [] if node is None else [node], set[Any]()
    while pending and TRACED:
        argument = pending.pop()
        if by_sizes and argument.op.name == "size":
            owner = argument.sized()
            argument = argument if owner is None else owner
        if argument in seen:
            continue
        seen.add(argument)
        if argument in TRACED:
            yield argument
        else:
            pending += argument.args


def traced_hint(node: Any) -> str:
    """The part of an error message that names the argument that a value follows from, and the remedy."""
    arguments = list(_arguments(node))
    TRACE.asked_of = frozenset(TRACED[each] for each in arguments)
    if not arguments:
        return ""
    argument = arguments[0]
    why = "whose value only static_argnames would make known"
    if argument in GIVEN:
        why = "whose value is not known in advance"
    if argument in LEFT:
        why = "which has returned: what is used outside it must be among its results"
    return f"; it {'is' if node is argument else 'follows from'} {TRACED[argument]}, {why}"


def asked_by_user(depth: int = 2) -> bool:
    """True if the calling function was called by user code, directly or through Python's or NumPy's modules."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_code is not OfArrays.__get__.__code__:  # it reads an attribute for its caller
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
