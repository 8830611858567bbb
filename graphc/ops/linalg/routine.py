"""Ops that factorise matrices, each from one row: what a routine is given and makes, and that as NumPy computes it.

In: a `Routine`. Out: the op's record: type, guards, value, the call that computes it, its batch. Before their own axes
all operands have the same axes of a batch, and so have the results.

    gc_lapack_<name>_<t>(count, sizes…, flags…, slots, operands…, results…, workspaces…) -> status

is the function behind it (codegen/lapack). count: matrices; sizes: of the letters, in the order in which operands name
them; flags: numbers, the attributes of the node, then, where the routine may fail, whether NaN is the result of a
matrix on which it does; slots, of a routine with workspaces: how many matrices may be computed at a time. An operand is
an address, the stride of the batch, and one for each letter; a result an address, behind which it is contiguous; a
workspace an address, and the elements of each slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, RankError
from graphc.ir import sizes
from graphc.ir.body import item, nodes_within, outputs_of
from graphc.ir.lowering import SUFFIXES, Call, Extent, Number, Passed, Result, Strided, Workspace
from graphc.ir.node import (
    Array,
    Guard,
    Node,
    Op,
    Size,
    Type,
    Vjp,
    Vjps,
    define_op,
    lazy_format,
    lazy_text,
    make,
    tuple_of,
)
from graphc.ir.types import Samples
from graphc.ops.elementwise import describe_origin, repeated
from graphc.ops.shape import OF_OTHER_SIZES, equality_guard, label_op, label_origin, shape_guards
from graphc.startup.record import record


class LinAlgError(GraphcError, np.linalg.LinAlgError):
    """A matrix that has no factors of the wanted kind, or an equation without a solution. Here, because a process that
    compiles has the errors and no NumPy."""


Letters: TypeAlias = Mapping[str, Size]
"""Sizes by the letters of a routine."""

SLOTS = 16
"""Matrices of a batch that have workspaces of their own, so that as many threads may compute them."""
LARGEST = 64**3
"""Additions of a matrix from which on LAPACK shares it out itself: such come one after the other."""
ON_ERROR = "on_error"
"""The attribute that says what is done about a matrix on which a routine fails: "raise" or "nan"."""


def shorter(letters: Letters) -> Letters:
    """The shorter side k of m x n matrices."""
    return {"k": sizes.minimum(letters["m"], letters["n"])}


@record()
class Routine:
    """A routine of linear algebra.

    operands, results: for each a letter for every axis, sizes of equal letters being equal; the dtype of a result that
    has not that of the operands stands behind a colon. derived: sizes of letters that only results have. flags: the
    attributes of the node, true or false or whole numbers. failures: what it means to the user that the routine fails,
    with status 1, 2, …, in NumPy's words; none where it never does. compute(*stacks, **flags): the result, or results,
    of stacks of matrices in NumPy; raises LinAlgError. work: the letters whose product is the number of additions.
    spaces: the dtypes of workspaces, "" that of the operands; lengths: those of each. overwritten: the positions of
    an operand and of a result that may lie in the same place. one_by_one: `compute` takes a matrix at a time.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    compute: Callable[..., Any]
    work: str
    flags: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    derived: Callable[[Letters], Letters] = lambda letters: {}
    spaces: tuple[str, ...] = ()
    lengths: Callable[[Letters], Sequence[Size]] = lambda letters: ()
    overwritten: tuple[int, int] | None = None
    one_by_one: bool = False

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the letters whose sizes are passed."""
        return tuple(dict.fromkeys("".join(self.operands)))

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The letters and the dtype of each result."""
        return [(axes, dtype) for axes, _, dtype in (result.partition(":") for result in self.results)]

    def slots(self, letters: Letters, count: Size) -> Size:
        """The number of matrices, of `count`, that may be computed at a time, as there is memory for each."""
        work = sizes.product(letters[letter] for letter in self.work)
        small = sizes.floor_divide(LARGEST, sizes.maximum(work, 1))
        return sizes.maximum(sizes.minimum(sizes.minimum(count, SLOTS), sizes.multiply(small, SLOTS)), 1)


ROUTINES: dict[str, Routine] = {}
"""Every routine by name."""


def define_routine(
    name: str,
    form: str,
    compute: Callable[..., Any],
    work: str,
    *,
    doc: str,
    samples: Samples,
    vjp: Vjp | None = None,
    vjps: Vjps | None = None,
    **more: Any,
) -> Op:
    """The op of a routine. form: its operands and results, as "nn nk -> nk". more: other fields of `Routine`. vjp: of
    one with one result, vjps of others (`Op`)."""
    operands, results = (tuple(part.split()) for part in form.split("->"))
    routine = ROUTINES[name] = Routine(name, operands, results, compute, work, **more)
    call, quiet = (_call(routine, failures) for failures in (routine.failures, ()))
    return define_op(
        name,
        infer=lambda args, attrs: _infer(routine, args),
        eval=lambda node, *arrays: _evaluate(routine, node, arrays),
        lower=lambda node: quiet if node.attrs.get(ON_ERROR) == "nan" else call,
        vjp=vjp,
        guards=lambda node: _guards(routine, node),
        cost=100.0,
        samples=samples,
        doc=doc,
        vjps=vjps,
        batch=_batch,
    )


def apply_routine(op: Op, args: Sequence[Node], on_error: str | None = None, **flags: int) -> Node:
    """The node of a routine. on_error: of one that may fail, "raise" or "nan"."""
    if on_error is not None and on_error not in ("raise", "nan"):
        raise GraphValueError(f"{op.name}: on_error={on_error!r}: it is 'raise' or 'nan'")
    attrs: dict[str, Any] = dict(flags)
    return make(op, args, attrs if on_error is None else {**attrs, ON_ERROR: on_error})


def _batch(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Any:
    batch = make(node.op, repeated(args, batched, size), node.attrs)
    return [(item(batch, place), True) for place in range(len(outputs_of(batch)))] if batch.is_tuple else batch


# --- types ------------------------------------------------------------------------------------------------------------


def _infer(routine: Routine, args: Sequence[Node]) -> Type:
    first = args[0]
    what = lazy_text(
        lambda: f"{routine.name} of {' and '.join(f'{describe_origin(a)} of type {a.type}' for a in args)}"
    )
    if any(arg.type.dtype != first.type.dtype or not is_float(arg.type.dtype) for arg in args):
        raise GraphTypeError(f"{what}: the operands should be floats of one dtype")
    rank = first.ndim - len(routine.operands[0])
    if rank < 0 or any(arg.ndim - len(axes) != rank for arg, axes in zip(args, routine.operands, strict=True)):
        wanted = " and ".join(str(len(axes)) for axes in routine.operands)
        raise RankError(f"{what}: the ranks should be {wanted}, and as many more as there are axes of a batch")
    outer = list(first.type.shape[:rank])
    for arg in args[1:]:
        for axis, size in enumerate(arg.type.shape[:rank]):
            outer[axis] = sizes.common(outer[axis], size, what, f", axis {axis}")
    letters: dict[str, Size] = {}
    for arg, axes in zip(args, routine.operands, strict=True):
        for axis, letter in enumerate(axes, rank):
            size = arg.type.shape[axis]
            letters[letter] = sizes.common(letters.get(letter, size), size, what, f", axis {axis}")
    letters |= routine.derived(letters)
    types = [
        Type(dtype or first.type.dtype, (*outer, *map(letters.__getitem__, axes))) for axes, dtype in routine.parts
    ]
    return types[0] if len(types) == 1 else tuple_of(types)


def letters_of(routine: Routine, node: Node) -> Letters:
    """The sizes of a node's routine."""
    sizes: dict[str, Size] = {}
    for arg, axes in zip(node.args, routine.operands, strict=True):
        for letter, size in zip(axes, arg.type.shape[arg.ndim - len(axes) :], strict=True):
            sizes[letter] = size if isinstance(size, int) else sizes.get(letter, size)
    return {**sizes, **routine.derived(sizes)}


def _guards(routine: Routine, node: Node) -> list[Guard]:
    first = node.args[0]
    template = "{} of " + " and ".join("{}" for _ in node.args)
    what = lazy_format(template, label_op(node), *map(label_origin, node.args))
    rank = first.ndim - len(routine.operands[0])
    guards: list[Guard] = []
    for arg in node.args[1:]:
        guards += shape_guards(first.type.shape[:rank], arg.type.shape[:rank], OF_OTHER_SIZES, what)
    known: dict[str, tuple[Node, Size]] = {}
    for arg, axes in zip(node.args, routine.operands, strict=True):
        for letter, size in zip(axes, arg.type.shape[rank:], strict=True):
            other, before = known.setdefault(letter, (arg, size))
            guards += equality_guard(before, size, lazy_format(NOT_SQUARE if other is arg else OF_OTHER_ROWS, what))
    return guards


NOT_SQUARE = "{}: a matrix should be square, and has {{left}} rows and {{right}} columns"
OF_OTHER_ROWS = "{}: the matrices have {{left}} and {{right}} rows"


# --- values -----------------------------------------------------------------------------------------------------------


def _evaluate(routine: Routine, node: Node, arrays: Sequence[Array]) -> Any:
    """The results of all matrices at once; where the routine fails on one, of one after the other."""
    options = {name: node.attrs[name] for name in routine.flags}
    try:
        made = None if routine.one_by_one else _computed(routine, arrays, options)
    except np.linalg.LinAlgError:
        made = None
    made = _one_by_one(routine, node, arrays, options) if made is None else made
    dtypes = [each.type.dtype for each in outputs_of(node)]
    results = tuple(np.ascontiguousarray(each, dtype) for each, dtype in zip(made, dtypes, strict=True))
    return results if node.is_tuple else results[0]


def _computed(routine: Routine, arrays: Sequence[Array], options: Mapping[str, int]) -> Sequence[Array]:
    with np.errstate(all="ignore"):
        results = routine.compute(*arrays, **options)
    return results if isinstance(results, tuple) else (results,)


def _one_by_one(routine: Routine, node: Node, arrays: Sequence[Array], options: Mapping[str, int]) -> list[Array]:
    outer = arrays[0].shape[: arrays[0].ndim - len(routine.operands[0])]
    flat = [array.reshape(prod(outer), *array.shape[len(outer) :]) for array in arrays]
    count, found = len(flat[0]), list[Sequence[Array] | None]()
    for number in range(count):
        try:
            found.append(_computed(routine, [array[number] for array in flat], options))
        except np.linalg.LinAlgError as error:
            if node.attrs[ON_ERROR] == "raise":
                raise LinAlgError(failed(node, str(error), (number, count) if outer else None)) from None
            found.append(None)
    letters: dict[str, Any] = {}
    for array, axes in zip(arrays, routine.operands, strict=True):
        letters |= dict(zip(axes, array.shape[len(outer) :], strict=True))
    letters |= routine.derived(letters)
    results: list[Array] = []
    for place, (axes, dtype) in enumerate(routine.parts):
        shape = (count, *(letters[letter] for letter in axes))
        result = np.zeros(shape, dtype or arrays[0].dtype)
        for number, parts in enumerate(found):
            result[number] = (np.nan if not dtype else 0) if parts is None else parts[place]
        results.append(result.reshape(*outer, *shape[1:]))
    return results


def failed(node: Node, words: str, place: tuple[int, int] | None = None) -> str:
    """The message about a matrix on which a routine fails. place: its number, and how many there are."""
    which = "" if place is None else f" (number {place[0]} of a batch of {place[1]})"
    line = f" ({node.where})" if node.where else ""
    return f"{words}{which}: {node.name or node.op.name} of {origin_of(node.args[0])}{line}"


def near_failures(nodes: Sequence[Node]) -> str:
    """The message where compiled code says that one of the nodes' routines failed, and the interpreter does
    not: both round. Nothing where none may fail."""
    messages: dict[str, None] = {}
    for node in (*nodes, *nodes_within(nodes)):
        routine = ROUTINES.get(node.op.name)
        if routine is not None and routine.failures and node.attrs[ON_ERROR] == "raise":
            messages[failed(node, routine.failures[0])] = None
    return " or ".join(messages)


def origin_of(node: Node) -> str:
    """A matrix as the user knows it: of a factor what it is a factor of."""
    while node.name is None and node.op.name == "item" and node.args[0].op.name in ROUTINES:
        node = node.args[0].args[0]
    return describe_origin(node)


# --- calls ------------------------------------------------------------------------------------------------------------


def symbol(routine: str, suffix: str) -> str:
    """The symbol of a routine's function, for a dtype by its suffix."""
    return f"gc_lapack_{routine}_{suffix}"


def _call(routine: Routine, failures: tuple[str, ...]) -> Call:
    """The call of a routine's function."""

    def rank_of(node: Node) -> int:
        return node.args[0].ndim - len(routine.operands[0])

    def passed(node: Node) -> list[Passed]:
        first, letters, rank = node.args[0], letters_of(routine, node), rank_of(node)
        flags = [node.attrs[name] for name in routine.flags]
        flags += [node.attrs[ON_ERROR] == "nan"] if routine.failures else []
        outer = (rank - 1 if rank else None,)
        count = first.type.shape[rank - 1] if rank else 1
        slots = routine.slots(letters, count) if routine.spaces else 1
        return [
            Extent(count),
            *(Extent(letters[letter]) for letter in routine.letters),
            *(Number(int(flag), "int64") for flag in flags),
            *([Extent(slots)] if routine.spaces else []),
            *(Strided(arg, (*outer, *range(rank, arg.ndim))) for arg in node.args),
            *(Result(place) for place in range(len(routine.results))),
            *(
                part
                for dtype, length in zip(routine.spaces, routine.lengths(letters), strict=True)
                for part in (Workspace(dtype or first.type.dtype, (slots, length)), Extent(length))
            ),
        ]

    def work(node: Node) -> list[Size]:
        letters = letters_of(routine, node)
        return [*node.args[0].type.shape[: rank_of(node)], *map(letters.__getitem__, routine.work)]

    return Call(
        lambda node: symbol(routine.name, SUFFIXES[node.args[0].type.dtype]),
        passed,
        work,
        failures,
        lambda node: max(rank_of(node) - 1, 0),
        routine.overwritten,
    )
