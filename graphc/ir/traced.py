"""Values that functions are traced with: variables in place of arguments, and what follows from them.

In: a node, the frame that asks. Out: whether a function is traced, what errors say where the program asks for a value,
which is not known then (`graphc.tracing`), and what an instruction of the program does.
"""

from __future__ import annotations

import sys
from _thread import _local
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from opcode import opname
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from graphc.ir.source_lines import PACKAGE, is_pythons

TRACED: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Variables that stand for arguments while a function is traced, and what messages call them."""


LEFT: WeakSet[Any] = WeakSet()
"""Those of them whose function has returned: what follows from them and is no result of it has no value any more."""


class Trace(_local):
    """What a thread traces: `depth`, the functions within one another that are called at this moment; `scalars`, the
    tensors of no axes that were made meanwhile, which the program cannot hash; `refused`, the last error about a value
    that is not known, with its line: NumPy drops such errors, and says something else."""

    def __init__(self) -> None:
        self.depth = 0
        self.refused: tuple[Any, Any] = (None, None)
        self.scalars: list[Any] = []

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if not self.depth:
            scalars, self.scalars = self.scalars, []
            for scalar in scalars:
                scalar.stand_back()


TRACE = Trace()
"""To be entered around each call of a function that is written for arrays, with tensors in their place."""


def traced_from(node: Any, by_sizes: bool = True) -> str | None:
    """What messages call the argument that a value follows from, None where there is none; `by_sizes`: be it from the
    sizes of the argument alone."""
    found = _argument(node, by_sizes)
    return None if found is None else str(TRACED[found])


def _argument(node: Any, by_sizes: bool = True) -> Any:
    """The variable that stands for the argument that a value follows from, or None."""
    pending, seen = [] if node is None else [node], set[Any]()
    while pending and TRACED:
        found = pending.pop()
        if by_sizes and found.op.name == "size":
            owner = found.sized()
            found = found if owner is None else owner
        if found in TRACED:
            return found
        if found not in seen:
            seen.add(found)
            pending += found.args
    return None


def traced_hint(node: Any) -> str:
    """What an error about a value that is not known says of the function that is traced."""
    found = _argument(node)
    if found is None:
        return ""
    why = "whose value only static_argnames would make known"
    if found in LEFT:
        why = "which has returned: what is used outside it must be among its results"
    return f"; it {'is' if node is found else 'follows from'} {TRACED[found]}, {why}"


def asked_by_user(depth: int = 2) -> bool:
    """Whether a user's function called the one of graphc's that asks this, or Python did for it."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE):
            return False
        if not is_pythons(file):
            return True
        frame = frame.f_back
    return True


def instruction(depth: int = 2) -> tuple[str, str]:
    """What a frame of the program is doing, and what it does next: the names of two instructions."""
    frame = sys._getframe(depth)
    code, place = frame.f_code.co_code, frame.f_lasti
    after = place + 2
    while after < len(code) and opname[code[after]] == "CACHE":
        after += 2
    return opname[code[place]], opname[code[after]] if after < len(code) else ""


# --- fresh ------------------------------------------------------------------------------------------------------------
# Tensors that stand for arrays of their own, and names that are alone with one: these a program may change in place.
#
# In: what a function that is traced calls, with arguments and results. Out: whether nothing but one name of the
# program could see the array that NumPy would have in place of a tensor. A tensor is fresh while it was made by an
# operation that gives a new array in NumPy, and no other one took or gave it, which might have made a view. Who holds
# it is counted by Python: beyond the name, only what was computed of it by such operations.


_serial = count()

CREATIONS = {"arange", "array", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones",
             "ones_like", "tri", "zeros", "zeros_like"}  # fmt: skip
"""Functions that make an array of nothing, or of numbers: each call gives another one."""

OPERATIONS = CREATIONS | set(
    "all amax amin any append argmax argmin argsort astype average cast clip column_stack concat concatenate copy "
    "count_nonzero cov cross cumprod cumsum delete dot dstack flatten hstack inner insert inv isclose kron matmul max "
    "maximum mean median min minimum nan_to_num nanmax nanmean nanmin nansum outer pad prod ptp repeat roll round "
    "searchsorted solve sort stack std sum take tensordot tile tril triu var vdot vstack where add subtract multiply "
    "divide true_divide sub mul true_div power pow exp log sqrt square tanh sin cos abs absolute negative sign floor "
    "ceil sigmoid relu softmax logaddexp expm1 log1p".split()
)
"""Functions, by NumPy's names and graphc's, that give a new array whatever they are called with."""

UNLESS = {"copy", "out", "like"}
"""Keywords with which they may give an argument back."""


def next_serial() -> int:
    """A number above the serial numbers of all nodes there are."""
    return next(_serial)


def by_program(depth: int = 2) -> bool:
    """Whether a function of a program that is traced calls the one of graphc's that asks this."""
    return bool(TRACE.depth) and not sys._getframe(depth).f_code.co_filename.startswith(PACKAGE)


def tensors(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among arguments or results."""
    for value in values:
        if hasattr(type(value), "told"):
            yield value
        elif isinstance(value, Mapping):
            yield from tensors(value.values())
        elif isinstance(value, list | tuple):
            yield from tensors(value)


def viewed(*values: Any) -> None:
    """Tensors may from now on have views, or be such."""
    for each in tensors(values):
        each.__dict__.pop("_users", None)


def as_view(of: Any, view: Any) -> Any:
    """A view of a tensor, as such."""
    viewed(of, view)
    return view


def is_copied(key: Any) -> bool:
    """Whether NumPy copies what an index takes: there are arrays or lists in it."""
    return any(isinstance(each, list) or getattr(each, "ndim", 0) for each in (key if type(key) is tuple else (key,)))


def begun(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Before a call of the program's: a number for `ended`, -1 where it may give a view."""
    if name in OPERATIONS and UNLESS.isdisjoint(kwargs):
        return next_serial()
    viewed(*args, *kwargs.values())
    return -1


def ended(start: int, result: Any, is_creation: bool = False) -> Any:
    """After a call of the program's, what it gives: what is new is fresh, and uses what is fresh. An array that is
    created is a tensor of its own, though there is an equal one."""
    if start < 0:
        viewed(result)
        return result
    if is_creation and result.serial < start and result.type.shape and (result.args or result.op.name == "constant"):
        result = type(result)(result.op, result.args, result.attrs, result.type)
    for each in tensors([result]):
        if "compared" in type(each).__dict__ or each.serial < start:
            continue
        if each.args or each.op.name == "constant":
            each.__dict__.setdefault("_users", [])
        _used(each, start)
    return result


def _used(made: Any, start: int) -> None:
    """Remember a new tensor, and those that were made on the way to it, at what is fresh among their arguments."""
    pending, seen = [made], {id(made)}
    while pending:
        node = pending.pop()
        for arg in node.args:
            users = arg.__dict__.get("_users")
            if users is not None:
                users.append(ref(node))
            if arg.serial > start and id(arg) not in seen:
                seen.add(id(arg))
                pending.append(arg)


def holders(node: Any) -> int:
    """How many references to a tensor those hold that were computed of it."""
    found = {id(user.args): user.args for each in node.__dict__["_users"] if (user := each()) is not None}
    return sum(arg is node for args in found.values() for arg in args)


def is_alone(node: Any, references: int, symbol: str, doubled: bool) -> bool:
    """Whether a statement `x += y` of the frame that called the caller changes an array that is seen by no other name,
    view or container. references: as the caller counts them; doubled: whether y is x."""
    if "_users" not in node.__dict__ or references - holders(node) > references_of_one(symbol, doubled):
        return False
    frame = sys._getframe(2)
    done, then = instruction(3)
    is_own = then.startswith("STORE_FAST") or (then == "STORE_DEREF" and not frame.f_code.co_freevars)
    return done == "BINARY_OP" and is_own  # and not operator.iadd(x, y), x.name += y, x[key] += y, nonlocal x


@cache
def references_of_one(symbol: str, doubled: bool) -> int:
    """The references to what one name holds that are counted within `x += y`, as this Python has them."""
    scope: dict[str, Any] = {"Counted": Counted}
    exec(f"def counted():\n    x = Counted()\n    x {symbol}= {'x' if doubled else '0'}\n    return x", scope)
    return int(scope["counted"]())


def counts(self: Any, other: Any) -> int:
    return sys.getrefcount(self)


class Counted:
    """Something whose in-place operators count the references to it."""

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = counts
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = counts
