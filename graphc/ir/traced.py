"""State of tracing: which function is traced, which tensors follow from its arguments, and which may change in place.

In: a node, or the frame that asks. Out:

- `TRACE.depth`: above 0 while a function written for arrays is called with tensors (`graphc.tracing`).
- `traced_hint(node)`: for an error about an unknown value, the argument it follows from.
- `is_unaliased(node, ...)`: True if `x += y` may be traced as `x = x + y`, because no other name, view or container
  could see the array. This is an escape analysis at run time: a tensor is *fresh* while it was made by an operation
  that allocates (`OPERATIONS`) and no view of it was taken. Python's reference count, less the references from nodes
  computed of it, then tells if one local name alone holds it.
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
"""Variables that stand for arguments of a traced function, with their descriptions for messages."""


LEFT: WeakSet[Any] = WeakSet()
"""Such variables whose function has returned. A tensor that follows from them and is not a result has no value any
more."""


class Trace(_local):
    """The tracing state of a thread. depth: nesting of the traced functions being called. scalars: tensors without axes
    made meanwhile, which the program must not hash. refused: the last error about an unknown value, with its line;
    NumPy drops such errors and raises its own."""

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
"""A context manager, entered around each call of a function written for arrays with tensors in their place."""


def traced_from(node: Any, by_sizes: bool = True) -> str | None:
    """The description of the argument that a value follows from; None if there is none. by_sizes: count dependence on
    the argument's sizes, too."""
    found = _argument(node, by_sizes)
    return None if found is None else str(TRACED[found])


def _argument(node: Any, by_sizes: bool = True) -> Any:
    """The variable of the argument that a value follows from, or None."""
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
    """The part of an error message that names the argument of the traced function a value follows from, and the
    remedy."""
    found = _argument(node)
    if found is None:
        return ""
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


def instruction(depth: int = 2) -> tuple[str, str]:
    """The names of the bytecode instruction that a frame executes and of the next one."""
    frame = sys._getframe(depth)
    code, place = frame.f_code.co_code, frame.f_lasti
    after = place + 2
    while after < len(code) and opname[code[after]] == "CACHE":
        after += 2
    return opname[code[place]], opname[code[after]] if after < len(code) else ""


# --- freshness: which tensors may change in place ---------------------------------------------------------------------
# A fresh tensor has the attribute `_users`: weak references to the nodes computed of it.


_serial = count()

CREATIONS = {"arange", "array", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace", "ones",
             "ones_like", "tri", "zeros", "zeros_like"}  # fmt: skip
"""Functions that allocate an array from nothing or from numbers."""

OPERATIONS = CREATIONS | set(
    "all amax amin any append argmax argmin argsort astype average cast clip column_stack concat concatenate copy "
    "count_nonzero cov cross cumprod cumsum delete dot dstack flatten hstack inner insert inv isclose kron matmul max "
    "maximum mean median min minimum nan_to_num nanmax nanmean nanmin nansum outer pad prod ptp repeat roll round "
    "searchsorted solve sort stack std sum take tensordot tile tril triu var vdot vstack where add subtract multiply "
    "divide true_divide sub mul true_div power pow exp log sqrt square tanh sin cos abs absolute negative sign floor "
    "ceil sigmoid relu softmax logaddexp expm1 log1p".split()
)
"""Functions, by NumPy's and graphc's names, that always return a new array, never a view."""

UNLESS = {"copy", "out", "like"}
"""Keywords with which they may return an argument itself."""


def next_serial() -> int:
    """A serial number above those of all existing nodes."""
    return next(_serial)


def by_program(depth: int = 2) -> bool:
    """True if a traced program called the calling graphc function directly."""
    return bool(TRACE.depth) and not sys._getframe(depth).f_code.co_filename.startswith(PACKAGE)


def tensors(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among arguments or results, at any depth of lists, tuples and mappings."""
    for value in values:
        if hasattr(type(value), "told"):
            yield value
        elif isinstance(value, Mapping):
            yield from tensors(value.values())
        elif isinstance(value, list | tuple):
            yield from tensors(value)


def mark_viewed(*values: Any) -> None:
    """Mark tensors as no longer fresh: they may have views, or be views."""
    for each in tensors(values):
        each.__dict__.pop("_users", None)


def as_view(of: Any, view: Any) -> Any:
    """`view`, after marking it and the tensor `of` as no longer fresh."""
    mark_viewed(of, view)
    return view


def is_copied(key: Any) -> bool:
    """True if indexing with `key` copies in NumPy: it contains an array or a list."""
    return any(isinstance(each, list) or getattr(each, "ndim", 0) for each in (key if type(key) is tuple else (key,)))


def before_call(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """The serial number to pass to `after_call`, or -1 if this operation of a traced program may return a view."""
    if name in OPERATIONS and UNLESS.isdisjoint(kwargs):
        return next_serial()
    mark_viewed(*args, *kwargs.values())
    return -1


def after_call(start: int, result: Any, is_creation: bool = False) -> Any:
    """Call after an operation of a traced program: the result. If it is new it is marked as fresh, and recorded as a
    user of its fresh arguments. A creation returns a new node even if an equal one exists, since it stands for another
    array."""
    if start < 0:
        mark_viewed(result)
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
    """Record a new tensor, and the nodes made on the way to it, as users of their fresh arguments."""
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


def references_from_users(node: Any) -> int:
    """The number of references to a tensor from the argument tuples of live nodes computed of it."""
    found = {id(user.args): user.args for each in node.__dict__["_users"] if (user := each()) is not None}
    return sum(arg is node for args in found.values() for arg in args)


def is_unaliased(node: Any, references: int, symbol: str, doubled: bool) -> bool:
    """True if the statement `x += y`, two frames up, changes an array that no other name, view or container can see.
    references: the reference count of x as the caller sees it. doubled: y is x."""
    if "_users" not in node.__dict__ or references - references_from_users(node) > references_of_one(symbol, doubled):
        return False
    frame = sys._getframe(2)
    done, then = instruction(3)
    is_own = then.startswith("STORE_FAST") or (then == "STORE_DEREF" and not frame.f_code.co_freevars)
    return done == "BINARY_OP" and is_own  # and not operator.iadd(x, y), x.name += y, x[key] += y, nonlocal x


@cache
def references_of_one(symbol: str, doubled: bool) -> int:
    """The reference count of x within `x += y` if one local name holds it, as measured on this Python."""
    scope: dict[str, Any] = {"Counted": Counted}
    exec(f"def counted():\n    x = Counted()\n    x {symbol}= {'x' if doubled else '0'}\n    return x", scope)
    return int(scope["counted"]())


def counts(self: Any, other: Any) -> int:
    return sys.getrefcount(self)


class Counted:
    """An object whose in-place operators return its reference count."""

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = counts
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = counts
