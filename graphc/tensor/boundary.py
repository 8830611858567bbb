"""The boundary of a traced program: what goes over it into graphc, and what comes back.

    jnp.exp(a)     `given` takes the node of the handle a, `owned` makes a handle of the result
    a.T            `Call.finished` makes a view, since NumPy's function of that name returns one

In: calls of graphc's functions, and of NumPy's by their protocols, that a traced program makes (`by_program()`). Out:
handles (`handles.py`) for arrays that it may write to; what NumPy gives, if all that it is applied to is known.

Arguments of the program and constants from outside are plain nodes, and so are views of them: they refuse writes
(`ir/symbol.py`). Numbers are never handles. `VIEWS` says which functions return views. Where that depends on the order
of elements in memory, which is not always known here, the arrays are relatives: once one of them is written to, the
others can no longer be read.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphc.arrays.dtypes import COMPLEX, NUMPY_DTYPES
from graphc.errors import GraphTypeError
from graphc.ir import sizes
from graphc.ir.node import FUNCTIONS, Comparison, Complex, Constant, Node, Proxy, describe, plain
from graphc.ir.pairs import leaves_of as leaves, tree_of as like
from graphc.ir.source_lines import program_line
from graphc.ir.symbol import asked, refuse_write
from graphc.ops.elementwise import COMPARED, as_node, cast, with_sizes_fitted
from graphc.ops.questions import Number, is_outside
from graphc.ops.shape import iota, reshape
from graphc.startup.hooks import HOOKS
from graphc.tensor.handles import UNKNOWN, Applied, Handle, Item, assigned, fitted, known, relate
from graphc.tensor.indexing import put_item


def given(value: Any) -> Any:
    """A value of the program with nodes and arrays in place of handles, at any depth of a tree."""
    if isinstance(value, Node):
        return plain(value.content() if isinstance(value, Handle) else value)
    kind = type(value)
    if kind is tuple or kind is list:
        found = [given(each) for each in value]
        return value if all(map(operator.is_, found, value)) else kind(found)
    if kind is slice:
        return slice(given(value.start), given(value.stop), given(value.step))
    if isinstance(value, (np.ndarray, np.generic, int, float, str)) or value is None or callable(value):
        return value
    found = leaves(value)
    return like(value, list(map(given, found))) if any(isinstance(each, Handle) for each in found) else value


def nodes(value: Any) -> Any:
    """A tree of values of the program with nodes in place of handles."""
    found = leaves(value)
    return like(value, list(map(plain, found))) if any(isinstance(each, Proxy) for each in found) else value


_ARRAYS = (Node, Constant, Complex)


def owned(result: Any, operands: Sequence[Any] = (), is_dense: bool = False) -> Any:
    """A result as the program has it, with a handle for each array in it. It is dense if its `operands` are."""
    if isinstance(result, Node):
        if type(result) is Comparison and result.operands[0].type.shape:
            result = result.node()
        if type(result) not in _ARRAYS or not result.type.shape:
            return result
        return Handle(result, is_dense or result.ndim == 1 or (bool(operands) and all(map(_is_dense, operands))))
    if result is None or isinstance(result, (str, int, float, np.ndarray, np.generic)):
        return result
    found = leaves(result)
    if not any(type(each) in _ARRAYS and each.type.shape for each in found):
        return result
    return like(result, [owned(each) for each in found])


def computed(result: Any) -> Any:
    """A result of NumPy's own functions as the program has it, with a handle for each array in it."""
    if isinstance(result, np.ndarray):
        return Handle(result, result.flags.c_contiguous) if str(result.dtype) in NUMPY_DTYPES else result
    if isinstance(result, (tuple, list)) and any(isinstance(each, np.ndarray) for each in leaves(result)):
        return like(result, list(map(computed, leaves(result))))
    return result


OPERATORS: dict[str, Callable[..., Any]] = {
    "sub": operator.sub, "mul": operator.mul, "true_div": operator.truediv, "floor_div": operator.floordiv,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "left_shift": operator.lshift, "right_shift": operator.rshift, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
    "positive": operator.pos, "divmod": divmod,
}  # fmt: skip
"""Python's operators by the names of the functions that they are, where `operator` has them under another."""


def operate(function: str, operands: Sequence[Any]) -> Any:
    """The result of an operator of a traced program."""
    values = known(operands)
    if values is not UNKNOWN and any(isinstance(each, Handle) for each in operands):
        return computed((OPERATORS.get(function) or getattr(operator, function))(*values))
    nodes: Sequence[Any] = [*map(given, operands)]
    if function not in COMPARED:
        nodes = with_sizes_fitted(nodes)
    return owned(FUNCTIONS[function](*nodes), operands)


def _is_dense(operand: Any) -> bool:
    """True if an operand leaves the elements of a result in C order: NumPy's operators keep the order of operands."""
    if isinstance(operand, Handle):
        return operand.is_dense
    if isinstance(operand, np.ndarray):
        return bool(operand.flags.c_contiguous)
    return getattr(operand, "ndim", 0) < 2 and not isinstance(operand, (list, tuple))


def is_array(left: Any, right: Any) -> bool:
    """True if a traced program compares arrays of its own, not variables that it looks up."""
    if isinstance(left, Handle) or isinstance(right, Handle):
        return True
    if type(left) is Comparison or not left.type.shape:
        return False
    return not is_outside(left) and not (isinstance(right, Node) and is_outside(right))


def item(x: Node, key: Any) -> Any:
    """`x[key]` of a program: a number, a view, or a copy of what integer arrays and masks select."""
    values, written, key = known(key), key, given(key)
    keys = key if type(key) is tuple else (key,)
    if isinstance(x, Handle) and (part := x.part_at(Item(key, written), x.is_dense and _keeps_order(keys))) is not None:
        return part
    if isinstance(x, Handle) and values is not UNKNOWN and isinstance(whole := x.content(), np.ndarray):
        part = whole[key]
        if not isinstance(part, np.ndarray) or not all(map(_is_basic, keys)):
            return computed(part)
        return x.derived(part, Item(key, written), x.is_dense and _keeps_order(keys))
    made = plain(x).part(key)
    if not all(map(_is_basic, keys)):
        copied = owned(made)
        if isinstance(x, Handle) and isinstance(key, Node) and key.type.dtype == "bool" and key.type.shape:
            copied.masked = (x, x.content(), key, x.node())
        return copied
    is_array = made.type.shape or any(each is Ellipsis for each in keys)
    if not isinstance(x, Handle) or not is_array:
        return outside(made, x) if is_array and x.type.shape else made
    return x.derived(made, Item(key, written), x.is_dense and _keeps_order(keys))


def is_number(value: Any) -> bool:
    """True for a tensor that stands for a number, of Python's or of NumPy's."""
    return isinstance(value, Node) and FUNCTIONS["class_of"](value) is not np.ndarray


def outside(made: Any, x: Node) -> Any:
    """A view of an argument: if it has no axes, a handle, or it would be taken for a number, which has no views."""
    if not isinstance(made, Node) or made.type.shape:
        return made
    handle = Handle(plain(made), True)
    handle.storage.outside = x
    return handle


def _is_basic(each: Any) -> bool:
    """True for a part of a key that selects without a copy."""
    if isinstance(each, Node):
        return not each.type.shape and each.type.dtype != "bool"
    whole = isinstance(each, (int, np.integer, slice)) and not isinstance(each, bool)
    return whole or each is None or each is Ellipsis


def _keeps_order(keys: Sequence[Any]) -> bool:
    """True if a key takes elements that follow one another: integers, then at most one slice without a step."""
    found = [each for each in keys if each is not None and each is not Ellipsis]
    cut = [isinstance(each, slice) for each in found]
    steps = all(each.step in (None, 1) for each in found if isinstance(each, slice))
    after = found[cut.index(True) + 1 :] if True in cut else []
    whole = all(isinstance(each, slice) and each == slice(None) for each in after)
    return steps and whole and not any(each is Ellipsis for each in keys[:-1])


CREATIONS = set("arange array copy empty eye flatten full identity linspace ones tri zeros".split())
"""Functions whose results lie in C order."""

MADE_OF_NUMBERS = {"asarray", "asanyarray", "require"}
"""Functions that give an array as it is, and make one of a number."""

ARRAYS_OF_ONE = CREATIONS | {"empty_like", "full_like", "ones_like", "where", "zeros_like"}
"""Functions that give an array, which can be written to, where it has no axes, too."""

VIEWS = dict.fromkeys(
    "transpose swapaxes moveaxis rollaxis matrix_transpose permute_dims dimshuffle squeeze expand_dims atleast_1d "
    "atleast_2d atleast_3d flip fliplr flipud rot90 split array_split hsplit vsplit dsplit unstack".split(),
    "view",
)
VIEWS |= dict.fromkeys("reshape ravel ascontiguousarray asfortranarray require".split(), "by order")
VIEWS |= dict.fromkeys(
    "asarray asanyarray as_tensor as_tensor_variable conj conjugate real real_if_close".split(), "itself"
)
VIEWS |= dict.fromkeys("broadcast_to diagonal diag".split(), "read only")
VIEWS |= dict.fromkeys("einsum trim_zeros ix_ diff broadcast_arrays meshgrid".split(), "perhaps")
VIEWS |= dict.fromkeys("as_strided sliding_window_view".split(), "perhaps")
"""NumPy's functions that may return a view: `view` always, `by order` depending on the order of elements, `itself` the
argument where its dtype is wanted, `perhaps` in cases that are not told apart. All others return new arrays."""

HALVES = {"real", "imag"}
OF_COMPLEX = HALVES | {"conj", "conjugate"}
"""Functions that give another array of complex numbers than of real ones: a view of half of them, and a new one."""

OF_ORDER = {"flatten", "ravel", "reshape"}
"""Functions that take the elements in an order, which is another result."""

DENSE = {"squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d"}
"""Views of arrays in C order that are in C order."""


class Call:
    """A call of a graphc function by a traced program. args, kwargs: without handles, for the function. native: NumPy's
    function in its place, if all that it is applied to is known."""

    __slots__ = ("args", "function", "given", "kwargs", "name", "native", "out")

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        native: Callable[..., Any] | None = None,
    ) -> None:
        self.function, self.name, self.given = function, function.__name__, (*args, *kwargs.values())
        self.native, self.out = native, None
        named = dict(kwargs)
        if kwargs.get("out") is not None:
            self.out = named.pop("out")
        if self.name == "cast":  # the method astype
            self.name = "astype" if named.pop("copy", True) else "asarray"
            if self.name == "astype":  # an array of its own, in whatever order
                named = {name: each for name, each in named.items() if name not in ("order", "subok")}
        self.args, self.kwargs = [given(each) for each in args], {name: given(each) for name, each in named.items()}
        if self.name in OF_ORDER and native is None:
            self.check_order()

    def check_order(self) -> None:
        """Raise GraphTypeError if the elements are taken as they lie in memory, which is known of C order only."""
        orders = [each for each in (self.kwargs.get("order"), *self.args[1:]) if isinstance(each, str)]
        subject = self.given[0] if self.given else None
        if orders and orders[0] in ("A", "K") and not _is_dense(subject):
            told = f"{self.name} of {describe(given(subject))}" if isinstance(subject, Node) else self.name
            raise GraphTypeError(
                f"{told}: order={orders[0]!r} takes the elements as they lie in memory, which is not known of this "
                "array; order='C' counts along the last axis first, order='F' along the first"
            )

    def finished(self, result: Any) -> Any:
        """The result as the program has it: handles on new arrays, views, or the array that was asked for by `out`."""
        if self.out is not None:
            return store(self.out, result, self.name, self.kwargs)
        kind, subject = VIEWS.get(self.name), self.given[0] if self.given else None
        if self.name in ("astype", "array", "asarray", "nan_to_num") and self.kwargs.get("copy", True) is not True:
            kind = "itself"
        if isinstance(subject, Node) and subject.type.dtype in COMPLEX and self.name in OF_COMPLEX:
            if self.name not in HALVES:
                return self.new(result)
            return getattr(subject, self.name) if isinstance(subject, Handle) else result  # which takes no writes
        if self.name == "nan_to_num" and kind == "itself":
            return store(subject, result, "nan_to_num", {})
        if self.name in MADE_OF_NUMBERS and is_number(subject):
            return Handle(as_node(result), True)
        if kind is None or isinstance(subject, (list, tuple)) or self.copies():
            return self.new(result)
        if not any(isinstance(each, Handle) for each in leaves(self.given)):  # of an argument, perhaps a view of it
            is_cast = kind == "itself" and str(result.dtype) != str(getattr(subject, "dtype", result.dtype))
            if is_cast or not isinstance(subject, (Node, np.ndarray)):
                return self.new(result)
            return outside(result, subject) if isinstance(subject, Node) and subject.type.shape else result
        return self.viewed(kind, subject, result)

    def copies(self) -> bool:
        """True if this call of a function that may return a view gives a new array."""
        count = sum(isinstance(each, (Node, np.ndarray)) and each.ndim > 0 for each in self.given)
        if self.name == "diag":
            return bool(self.given[0].ndim == 1)
        if self.name == "einsum":
            return count > 1
        if self.name == "diff":
            return bool(self.kwargs.get("n", [*self.args, 1, 1][1]) != 0)
        return self.kwargs.get("copy", self.name == "meshgrid") is True

    def new(self, result: Any) -> Any:
        """A result that shares no memory with an argument."""
        if self.native is not None:
            return computed(result)
        is_array = self.name in ARRAYS_OF_ONE and (self.name != "copy" or isinstance(self.given[0], Handle))
        if is_array and isinstance(result, Node) and not result.type.shape and type(result) is not Number:
            return Handle(as_node(result), True)
        return owned(result, (), self.name in CREATIONS and self.in_c_order())

    def in_c_order(self) -> bool:
        """True if an array that this call makes lies in C order; copies keep the order of an array, as `np.array(x)`,
        but for the method `x.copy()`."""
        given = self.kwargs.get("order"), *self.args[1:]
        orders = [each for each in given if isinstance(each, str) and each in ("C", "F", "A", "K")]
        keeps = self.name in ("array", "copy") and getattr(self.function, "__qualname__", "") != "copy"
        order, subject = orders[0] if orders else "K" if keeps else "C", self.given[0] if self.given else None
        kept = not isinstance(subject, Node) or (isinstance(subject, Handle) and subject.is_dense)
        return order == "C" or (order in ("K", "A") and kept)

    def viewed(self, kind: str, subject: Any, result: Any) -> Any:
        """A result that is a view of the first argument, or may be one of any."""
        order = self.kwargs.get("order") or "K"
        if kind == "itself" and isinstance(subject, Handle) and (order in "KA" or (order == "C" and subject.is_dense)):
            return subject if str(result.dtype) == subject.type.dtype else self.new(result)
        is_dense = isinstance(subject, Handle) and subject.is_dense
        in_order = is_dense and self.kwargs.get("order", "C") == "C" and self.name != "asfortranarray"
        exact = kind in ("view", "read only") or (kind == "by order" and in_order)
        several = self.name[:7] == "atleast" and len(self.args) > 1
        if not exact or several or not isinstance(subject, Handle):
            return related([each for each in leaves(self.given) if isinstance(each, Handle)], self.new(result))
        is_dense = is_dense and (self.name in DENSE or kind == "by order" or subject.ndim < 2)
        args, kwargs = (self.args[1:], self.kwargs) if self.args else ([], dict([*self.kwargs.items()][1:]))
        named = [*self.kwargs][:1] if not self.args else []

        def part(function: Any, position: int) -> Any:
            def apply(whole: Any) -> Any:
                made = function(*(() if named else (whole,)), *args, **dict.fromkeys(named, whole), **kwargs)
                return leaves(made)[position]

            return None if function is None else apply

        made = [
            subject.derived(
                each, Applied(part(self.function, place), part(self.native, place), kind != "read only"), is_dense
            )
            for place, each in enumerate(leaves(result))
        ]
        return like(result, made)


def call(
    function: Callable[..., Any], native: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The result of a function that a traced program calls: of NumPy's `native` if all arguments are known, which are
    handles or values, else of `function`."""
    is_known = known((tuple(args), {name: each for name, each in kwargs.items() if name != "out"})) is not UNKNOWN
    done = Call(function, args, kwargs, native if is_known else None)
    return done.finished((native if is_known else function)(*done.args, **done.kwargs))


def attribute(x: Handle, name: str) -> Any:
    """An attribute or a method of NumPy's array, of a handle whose value is known."""
    found = getattr(x.content(), name)
    if not callable(found):
        return found

    def method(*args: Any, **kwargs: Any) -> Any:
        def function(node: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(as_node(node), name)(*args, **kwargs)

        function.__name__ = name
        return call(function, lambda array, *args, **kwargs: getattr(array, name)(*args, **kwargs), (x, *args), kwargs)

    return method


def related(handles: Sequence[Handle], result: Any) -> Any:
    """A result that may share memory with handles: none of them is read after another one was written to."""
    made = [each for each in leaves(result) if isinstance(each, Handle)]
    relate(each.storage for each in (*handles, *made))
    for each in made:
        each.is_dense = False
    return result


def store(out: Any, result: Any, name: str, kwargs: Mapping[str, Any], where: Any = True) -> Any:
    """The array that was asked for by `out`, after the result was written to it."""
    outs, results = (out, result) if isinstance(out, tuple) and len(out) > 1 else ((out,), (result,))
    outs = tuple(each[0] if isinstance(each, tuple) else each for each in outs)
    done: list[Any] = [*outs]
    for place, (each, made) in enumerate(zip(outs, results, strict=True)):
        if each is None:  # one of several that is to be a new array
            done[place] = owned(made)
            continue
        target = own(each, f"{name}(out=x)")
        if not isinstance(made, Node) and where is True and target.changed(np.copyto, made):
            continue
        node = fitted(as_node(made), target.node(), f"{name}(out=x)", casting=kwargs.get("casting") or "same_kind")
        if where is not True:
            node = FUNCTIONS["where"](where, node, target.node())
        target.write(node, f"{name}(out=x)")
    return done[0] if len(done) == 1 else tuple(done)


def own(target: Any, what: str) -> Handle:
    """The array that is to be written to. Raises GraphTypeError if it is none of the program's own."""
    if isinstance(target, Handle):
        return target
    if isinstance(target, Node):
        raise refuse_write(target, what)
    raise GraphTypeError(
        f"`{what}`: an array of NumPy's, of type {type(target).__name__}, cannot take a value that is not computed "
        f"yet; jnp.zeros(shape) makes one that can (called at {program_line()})"
    )


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One of NumPy's functions of elements, or a method of it, called by a traced program."""
    if known((tuple(inputs), dict(kwargs))) is not UNKNOWN:
        return _apply_known(getattr(ufunc, method), inputs, kwargs, method == "at")
    named, out = {name: given(value) for name, value in kwargs.items() if name != "out"}, kwargs.get("out")
    if method == "at":
        return change_at(ufunc, *inputs)
    outs = [each for each in (out if isinstance(out, tuple) else (out,)) if each is not None]
    nodes: Sequence[Any] = [*map(given, inputs)]
    if method == "__call__" and ufunc.__name__ not in COMPARED:
        nodes = with_sizes_fitted(nodes)
    if not outs:
        return owned(HOOKS.ufunc(ufunc, method, nodes, named), inputs)
    where = named.pop("where", True) if method == "__call__" else True
    casting = named.pop("casting", None)
    for each in outs:
        own(each, f"np.{ufunc.__name__}(out=x)")
    made = HOOKS.ufunc(ufunc, method, nodes, named)
    return store(out, made, f"np.{ufunc.__name__}", {"casting": casting}, where)


def _apply_known(function: Callable[..., Any], inputs: Sequence[Any], kwargs: Mapping[str, Any], is_at: bool) -> Any:
    """A function of elements of what is known; an array that it writes to is changed as a copy."""
    named, values = {name: given(each) for name, each in kwargs.items() if name != "out"}, [*map(given, inputs)]
    out = kwargs.get("out")
    outs = [inputs[0]] if is_at else [] if out is None else [*out] if isinstance(out, tuple) else [out]
    copies = [each.content().copy() if isinstance(each, Handle) else each for each in outs]
    if outs and not is_at:
        named["out"] = tuple(copies)
    made = function(copies[0], *values[1:]) if is_at else function(*values, **named)
    for each, copy in zip(outs, copies, strict=True):
        if isinstance(each, Handle):
            each.write(copy, f"np.{getattr(function, '__name__', 'ufunc.at')}(out=x)")
    return computed(made) if not outs or is_at else outs[0] if len(outs) == 1 else tuple(outs)


def change_at(ufunc: Any, x: Any, indices: Any, values: Any = None) -> None:
    """`np.add.at(x, indices, values)`, and the `at` of others, with values or without: where an index repeats, an
    element is changed as often."""
    what = f"np.{ufunc.__name__}.at(x, indices{', values' if ufunc.nin == 2 else ''})"
    target = own(x, what)
    if ufunc not in (np.add, np.subtract):

        def change(part: Node, value: Any) -> Node:
            return as_node(HOOKS.ufunc(ufunc, "__call__", [part, value][: ufunc.nin], {}))

        selected = HOOKS.at(target.node())[given(indices)]
        target.write(selected.folded(ufunc.__name__, 0 if values is None else given(values), change, {}), what)
        return
    part = target.node().part(given(indices))
    value = as_node(given(values))
    if not np.can_cast(np.result_type(value.type.dtype, part.type.dtype), part.type.dtype, "same_kind"):
        raise GraphTypeError(f"{describe(target)}: `{what}` would give {value.type.dtype}{asked(describe(target))}")
    value = cast(value, part.type.dtype)
    target.write(FUNCTIONS["inc_subtensor"](part, value if ufunc is np.add else FUNCTIONS["neg"](value)), what)


def apply_function(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One of NumPy's functions, called by a traced program."""
    if function in (np.shares_memory, np.may_share_memory):
        told = describe(plain(next(each for each in (*args, *kwargs.values()) if isinstance(each, Node))))
        raise GraphTypeError(f"np.{function.__name__} of {told}: a tensor has no memory{asked(told)}")
    if function in WRITERS:
        names, write = WRITERS[function]
        bound, what = dict(zip(names.split(), args, strict=False)) | dict(kwargs), f"np.{function.__name__}(x, …)"
        if not bound.keys() <= {*names.split()} or names.split()[0] not in bound:
            return HOOKS.array_function(function, args, kwargs)  # the error for a wrong call
        first = bound.pop(names.split()[0])
        values = known(bound)
        if isinstance(first, np.ndarray) and values is not UNKNOWN:
            return function(first, **values)
        target = own(first, what)
        if target.changed(lambda array, values: function(array, **values), bound):
            return None
        made = write(target.node(), **{name: given(value) for name, value in bound.items()})
        target.write(fitted(made, target.node(), what, casting="unsafe"), what)
        return None

    def symbolic(*args: Any, **kwargs: Any) -> Any:
        return HOOKS.array_function(function, args, kwargs)

    symbolic.__name__ = function.__name__
    return call(symbolic, function, args, kwargs)


HOOKS.handles = sys.modules[__name__]


# --- NumPy's functions that write -------------------------------------------------------------------------------------


def _copyto(dst: Node, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    value = as_node(src) if not isinstance(src, (bool, int, float)) else assigned(src, dst)
    new = fitted(value, dst, "np.copyto(x, y)", casting=casting)
    return new if where is True else as_node(FUNCTIONS["where"](where, new, dst))


def _put(a: Node, ind: Any, v: Any, mode: str = "raise") -> Node:
    flat, value = FUNCTIONS["flatten"](a), FUNCTIONS["flatten"](assigned(v, a) if np.isscalar(v) else as_node(v))
    places = FUNCTIONS["flatten"](as_node(ind))
    if mode != "raise":
        size = FUNCTIONS["size"](a)
        places = places % size if mode == "wrap" else FUNCTIONS["clip"](places, 0, size - 1)
    value = cast(_cycled(value, places.type.shape[0]), a.type.dtype)
    return reshape(put_item(flat, places, value), a.type.shape)


def _cycled(values: Node, count: Any) -> Node:
    """The first `count` elements of a vector that begins again where it ends."""
    if sizes.equal(values.type.shape[0], count) or sizes.equal(values.type.shape[0], 1):
        return values
    return values.part(iota(count) % values.type.shape[0])


def _place(arr: Node, mask: Any, vals: Any) -> Node:
    values, chosen = FUNCTIONS["flatten"](as_node(vals, arr.type.dtype)), cast(as_node(mask), "bool")
    flat = FUNCTIONS["flatten"](chosen)
    number = FUNCTIONS["cumsum"](flat) - 1
    return _where(chosen, values.part(FUNCTIONS["maximum"](number, 0) % values.type.shape[0]), arr)


def _putmask(a: Node, mask: Any, values: Any) -> Node:
    given = FUNCTIONS["flatten"](as_node(values, a.type.dtype))
    return _where(cast(as_node(mask), "bool"), _cycled(given, sizes.product(a.type.shape)), a)


def _where(mask: Node, flat: Node, a: Node) -> Node:
    """`a` with the elements of a vector, in C order, where the mask is true."""
    wide = reshape(flat, a.type.shape) if not sizes.equal(flat.type.shape[0], 1) else flat.part(0)
    made: Node = FUNCTIONS["where"](mask, cast(wide, a.type.dtype), a)
    return made


def _put_along_axis(arr: Node, indices: Any, values: Any, axis: Any = -1) -> Node:
    if axis is None:
        return reshape(put_item(FUNCTIONS["flatten"](arr), indices, as_node(values)), arr.type.shape)
    places, axis = as_node(indices), range(arr.ndim)[axis]
    key: list[Any] = []
    for each in range(arr.ndim):
        line = iota(places.type.shape[each])
        key.append(
            places if each == axis else line.part((None,) * each + (slice(None),) + (None,) * (arr.ndim - 1 - each))
        )
    return put_item(arr, tuple(key), partial(assigned, values))


def _fill_diagonal(a: Node, val: Any, wrap: bool = False) -> Node:
    """Write a value to the main diagonal of an array, in place. With `wrap` the diagonal of a tall matrix begins anew.

    Raises ValueError for a vector, and GraphTypeError for a tensor outside of traced functions."""
    if wrap and a.ndim == 2:
        step = slice(None, None, sizes.add(a.type.shape[1], 1))
        return reshape(put_item(FUNCTIONS["flatten"](a), step, partial(assigned, val)), a.type.shape)
    part = FUNCTIONS["diagonal"](a) if a.ndim == 2 else a
    filled: Node = FUNCTIONS["later"]("fill_diagonal")(a, assigned(val, part))
    return filled


WRITERS: dict[Any, tuple[str, Callable[..., Node]]] = {
    np.copyto: ("dst src casting where", _copyto), np.put: ("a ind v mode", _put), np.place: ("arr mask vals", _place),
    np.putmask: ("a mask values", _putmask), np.fill_diagonal: ("a val wrap", _fill_diagonal),
    np.put_along_axis: ("arr indices values axis", _put_along_axis),
}  # fmt: skip
"""NumPy's functions that write to their first argument: their parameters, and the function that gives its new value."""
