"""The graph: types, ops, and interned nodes.

In: an op, argument nodes, attributes. Out: the one node that stands for this value:

    x = T.dvector("x")           a leaf (INPUT) of type float64[x.0]; its size x.0 is a leaf too (SIZE)
    y = x * 2                    Node(op=mul, args=(x, broadcast_to(2.0, x.0)), type float64[x.0])
    (x * 2) is y                 True

Nodes are immutable and interned (hash consing): the same op on the same arguments is the same object, so common
subexpressions are shared by construction, and comparing nodes is comparing identities. A size is a number or an int64
scalar node. A size that is unknown when a variable is made is a leaf of its own (`SIZE`), bound by the arrays of a
call.

Operators and methods of a node are looked up in `FUNCTIONS`, which the rooms above fill; `methods.pyi` lists the
methods for editors and type checkers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np

from graphc.arrays.dtypes import COMPLEX as COMPLEX_DTYPES, NUMPY_DTYPES, SHOWN, Dtype, check_dtype
from graphc.errors import GraphcError, GraphTypeError, GraphValueError, StepSizeError
from graphc.ir.call_errors import add_call, explained
from graphc.ir.source_lines import (
    PACKAGE,
    TRACE,
    Numbers,
    OfArrays,
    Where as Where,
    Words as Words,
    asked_by_user,
    by_program,
    instruction,
    lazy_format as lazy_format,
    lazy_text as lazy_text,
    next_serial as next_serial,
    traced_hint,
    user_line as user_line,
)
from graphc.ir.symbol import (
    FUNCTIONS as FUNCTIONS,
    IN_PLACE,
    INTERNAL,
    METHODS,
    Immutable,
    asked,
    hash_of_a_number,
    of_memory,
    refuse_in_place,
    unwritten,
)
from graphc.ir.types import (
    Argument as Argument,
    Body as Body,
    FrozenArray as FrozenArray,
    Guard as Guard,
    Interned,
    Laws as Laws,
    Lowering as Lowering,
    Sample as Sample,
    Samples as Samples,
    Scratchpad,
    UserType,
    frozen_number,
)
from graphc.startup.hooks import HOOKS, Table
from graphc.startup.record import record
from graphc.trees import exact_kind

if TYPE_CHECKING:
    from graphc.loopir.ir import Expr

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Size: TypeAlias = "int | Node"
Attributes: TypeAlias = Mapping[str, Any]
Index: TypeAlias = "tuple[Expr, ...]"


@record(eq=False)
class Type(UserType):
    """The dtype and sizes of a tensor; a size is a number or an int64 scalar node. `==` compares as Theano's types do,
    by dtype and by which sizes are 1; `is_same` compares all sizes. A program makes one in Theano's form, from a dtype
    and one bool for each axis: `type(x.type)(dtype="int8", broadcastable=(True, False))`."""

    dtype: str
    shape: tuple[Size, ...]

    def __init__(self, dtype: str, shape: Sequence[Size] = (), *, broadcastable: Sequence[bool] | None = None) -> None:
        if broadcastable is not None or (shape and type(shape[0]) is bool):
            ones = enumerate(shape if broadcastable is None else broadcastable)
            dtype, shape = check_dtype(dtype), tuple(1 if one else size_leaf(None, axis) for axis, one in ones)
        _set_dtype(self, dtype)
        _set_shape(self, shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_same(self, other: Type) -> bool:
        """True if both have the same dtype and the same sizes."""
        return self is other or (self.dtype == other.dtype and self.shape == other.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(describe_size, self.shape))}]"


_set_dtype, _set_shape = Type.dtype.__set__, Type.shape.__set__  # type: ignore[attr-defined]


@record(eq=False)
class TupleType(Type):
    """The type of a node with several results; `item(node, k)` is the k-th. Its dtype is `tuple`, which no array has,
    and it has no axes."""

    dtype: str
    shape: tuple[Size, ...]
    parts: tuple[Type, ...]

    def is_same(self, other: Type) -> bool:
        """True if both have the same parts."""
        if not isinstance(other, TupleType) or len(self.parts) != len(other.parts):
            return False
        return all(mine.is_same(its) for mine, its in zip(self.parts, other.parts, strict=True))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


def tuple_of(parts: Sequence[Type]) -> TupleType:
    """The type of a node whose results have these types."""
    return TupleType("tuple", (), tuple(parts))


Infer: TypeAlias = "Callable[[Sequence[Node], Attributes], Type]"
Eval: TypeAlias = "Callable[..., Array]"
Vjp: TypeAlias = "Callable[[Node, Node], Sequence[Node | None]]"
Vjps: TypeAlias = "Callable[[Node, Mapping[int, Node], Collection[int]], Sequence[Node | None]]"
Batch: TypeAlias = "Callable[[Node, Sequence[Node], Sequence[bool], Size], Node | Sequence[tuple[Node, bool]] | None]"


@record(eq=False)
class Op:
    """An op: everything the compiler knows of it.

    infer(args, attrs): the result's type; raises GraphTypeError or ShapeError for wrong arguments. eval(node, *values):
    its meaning, in NumPy. vjp(node, cotangent): the cotangent of each argument, None where there is none. vjps(node,
    cotangents, wanted): the same for an op with several results: `cotangents` maps positions of results to their
    cotangents, `wanted` are the positions of arguments. lower(node): its loops, a record of lowering.py. guards(node):
    conditions on sizes, checked at run time. batch(node, args, batched, size): the op for a batch of `size` elements
    (vmap): arguments marked in `batched` have the batch axis first, and so has the result; for several results, pairs
    of a node and whether it has that axis. None makes vmap loop over the elements. cost: of one element, an addition
    being 1.
    """

    name: str
    infer: Infer
    eval: Eval
    lower: Callable[[Node], Lowering]
    vjp: Vjp | None = None
    guards: Callable[[Node], Sequence[Guard]] = lambda node: ()
    laws: Laws = Laws()
    cost: float = 1.0
    samples: Sequence[Sample] = ()
    doc: str = ""
    version: str = ""
    vjps: Vjps | None = None
    batch: Batch | None = None

    @property
    def scalar_op(self) -> Any:
        """The scalar function of an elementwise op (Theano's name). Raises AttributeError for another op."""
        return FUNCTIONS["later"]("Elemwise").of(self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return HOOKS.reduced(self)


OPS: Table[Op] = Table()
"""All ops by name; filled by the modules of `graphc.ops`."""


P = ParamSpec("P")


def _into_table(make: Callable[P, Op]) -> Callable[P, Op]:
    def define(*args: P.args, **kwargs: P.kwargs) -> Op:
        op = make(*args, **kwargs)
        if OPS.has(op.name):
            raise GraphValueError(f"there is an op {op.name!r} already")
        OPS[op.name] = op
        return op

    return define


define_op = _into_table(Op)
"""Make an op and add it to `OPS`. Raises GraphValueError if the name is taken."""


def _no_lowering(node: Node) -> Lowering:
    raise StepSizeError(f"a size follows from {describe(node)}, which is not known before a step of a loop")


def _leaf_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    return attrs["type"]


def _leaf_eval(node: Node) -> Array:
    raise GraphTypeError(f"{describe(node)} has no value of its own")


def _constant_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    value = attrs["value"].value
    return Type(check_dtype(value.dtype), tuple(value.shape))


INPUT = define_op("input", _leaf_infer, _leaf_eval, _no_lowering, doc="A variable whose value is given at each call.")
SHARED = define_op("shared", _leaf_infer, _leaf_eval, _no_lowering, doc="A variable that keeps its value.")
SIZE = define_op("size", _leaf_infer, _leaf_eval, _no_lowering, doc="A size that a leaf's array has at run time.")
CONSTANT = define_op(
    "constant", _constant_infer, lambda node: node.attrs["value"].value, _no_lowering, doc="A fixed array."
)
PARAM = define_op("param", _leaf_infer, _leaf_eval, _no_lowering, doc="A parameter of a body.")
LEAVES = (INPUT, SHARED, SIZE, CONSTANT, PARAM)


def _complex_infer(args: Sequence[Node], attrs: Attributes) -> Type:
    return Type("complex64" if args[0].type.dtype == "float32" else "complex128", args[0].type.shape)


COMPLEX = define_op("complex", _complex_infer, lambda node, re, im: re + 1j * im, _no_lowering, doc="(ops/pairs.py)")
_owners: WeakKeyDictionary[Node, Callable[[], Node | None]] = WeakKeyDictionary()


def size_owner(size: Node) -> Node | None:
    """The leaf that a size leaf belongs to: an input while it lives, a shared variable always."""
    return _owners.get(size, type(None))()


def own_sizes(leaf: Node, owner: Callable[[], Node | None]) -> None:
    """Let `owner` give the leaf that the sizes of `leaf` belong to. It must not hold them."""
    for size in leaf.type.shape:  # not those of a variable in the shape of another, as that of a cotangent
        if isinstance(size, Node) and size.op is SIZE and size_owner(size) is None:
            _owners[size] = owner


def _binary(function: str, reflected: bool = False) -> Callable[[Node, Any], Node]:
    def operator(self: Node, other: Any) -> Node:
        if not reflected and getattr(other, "__array_ufunc__", self) is None:  # it opts out of NumPy's operators
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        in_program = by_program()
        try:
            if in_program:
                return HOOKS.handles.operate(function, operands)
            result: Node = FUNCTIONS[function](*map(plain, operands))
        except GraphcError as error:
            add_call(error, function, operands)
            raise
        return result

    return operator


def _unary(function: str) -> Callable[[Node], Node]:
    def operator(self: Node) -> Node:
        return HOOKS.handles.operate(function, (self,)) if by_program() else FUNCTIONS[function](plain(self))

    return operator


def _relation(relation: str) -> Callable[[Node, object], Comparison]:
    def operator(self: Node, other: object) -> Comparison:
        if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
            return Comparison(relation, self, other)
        return _compared(relation, self, other)

    return operator


class Node(Immutable):
    """A value of the graph: an op applied to arguments. Immutable except for its display name and the user's
    attributes."""

    __slots__ = {
        "__dict__": None,  # attributes that users set
        "__weakref__": None,
        "_name": None,
        "args": "The arguments of the op.",
        "attrs": "The static parameters of the op.",
        "mentioned": "True if the program used it, though no result may depend on it (`ir.walk.mention`).",
        "op": "The op that is applied.",
        "serial": "A number that grows with each node made.",
        "type": "The dtype and the sizes.",
        "verified": "True if it has passed `ir.verify`.",
        "where": "The line of the program that made it.",
    }

    op: Op
    args: tuple[Node, ...]
    attrs: Attributes
    type: Type
    where: Where | None
    serial: int
    mentioned: bool
    verified: bool

    def __init__(
        self,
        op: Op,
        args: tuple[Node, ...],
        attrs: Attributes,
        type_: Type,
        name: str | None = None,
        where: Where | None = None,
    ) -> None:
        self.op = op
        self.args = args
        self.attrs = attrs
        self.type = type_
        self.where = where or user_line()
        self.serial = next_serial()
        self.mentioned = self.verified = False
        self._name = name
        if op is INPUT:
            own_sizes(self, ref(self))

    @property
    def name(self) -> str | None:
        """The user's name for this value, or None."""
        return self._name

    @name.setter
    def name(self, value: str | None) -> None:
        self._name = value

    def _dtype(self) -> Dtype:
        """The dtype: its name as a string that also answers as NumPy's dtype does; NumPy's own dtype in a traced
        function."""
        name: Any = self.type.dtype
        if not asked_by_user():
            return name
        return (NUMPY_DTYPES if TRACE.depth else SHOWN).get(name, name)

    dtype = unwritten("dtype", _dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """For each axis, True if its size is statically 1."""
        return self.type.broadcastable

    @property
    def is_tuple(self) -> bool:
        """True if the node has several results; `item` gives one of them."""
        return isinstance(self.type, TupleType)

    @property
    def owner(self) -> Any:
        """The op with its inputs and outputs (`Apply`) that computes this value; None for a leaf (Theano's name)."""
        return None if self.op in LEAVES else HOOKS.owner(self)

    def get_parents(self) -> list[Any]:
        """A list of the owner; empty for a leaf (Theano's name)."""
        return [] if self.owner is None else [self.owner]

    @property
    def index(self) -> int | None:
        """The position of this value among its owner's outputs; None for a leaf."""
        return None if self.op in LEAVES else self.attrs["index"] if self.op.name == "item" else 0

    @property
    def tag(self) -> Any:
        """A namespace for the user's attributes. Equal expressions are one object, so they share it."""
        kept = plain(self).__dict__
        if "tag" not in kept:
            kept["tag"] = Scratchpad()
        return kept["tag"]

    @tag.setter
    def tag(self, value: Any) -> None:
        self.__dict__["tag"] = value

    def clone(self) -> Node:
        """A fresh variable of the same type, name and tags; a constant returns itself (Theano's name)."""
        if self.op is CONSTANT:
            return self
        sizes = tuple(size if isinstance(size, int) else None for size in self.type.shape)
        fresh = variable(self.type.dtype, sizes, self.name)
        fresh.__dict__.update(self.attributes())
        return fresh

    def attributes(self) -> dict[str, Any]:
        """The attributes that the user has set; tags are copied."""
        return {
            name: value.copied() if isinstance(value, Scratchpad) else value
            for name, value in self.__dict__.items()
            if name[0] != "_"
        }

    def _shape(self) -> Node:
        """The sizes as an int64 vector; `x.shape[0]` is a scalar. In a traced function a tuple, like NumPy's."""
        return FUNCTIONS["plain_shape" if TRACE.depth and asked_by_user() else "shape"](self)

    shape = unwritten("shape", _shape)

    @property
    def size(self) -> Node:
        """The number of elements, an int64 scalar."""
        return FUNCTIONS["size"](self)

    @property
    def T(self) -> Node:  # noqa: N802 - NumPy's name
        """The transpose: all axes reversed."""
        return FUNCTIONS["transpose"](self)

    @property
    def mT(self) -> Node:  # noqa: N802 - NumPy's name
        """The transpose of each matrix: the last two axes change places."""
        return FUNCTIONS["later"]("matrix_transpose")(self)

    def __repr__(self) -> str:
        return f"<{describe(self)}: {self.type}>"

    def __str__(self) -> str:
        value = self.known()
        return str(value) if value is not None else self.name or HOOKS.expression(plain(self))

    def __copy__(self) -> Node:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return HOOKS.reduced(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return FUNCTIONS["deepcopy"](self, memo)

    def sized(self) -> Node | None:
        """The leaf that this size belongs to."""
        return size_owner(self)

    def facts(self) -> tuple[str, Array | None, bool]:
        return describe(self), constant_value(self), bool(self.args) and self.type.dtype == "bool"

    __hash__ = object.__hash__

    __eq__, __ne__ = _relation("equal"), _relation("not_equal")  # type: ignore[assignment]

    def __len__(self) -> int:
        size = FUNCTIONS["asked_length"](self.type.shape[0]) if self.ndim else None
        if isinstance(size, int):
            return size
        raise GraphTypeError(
            f"{describe(self)} of type {self.type} has no length while the graph is built; x.shape[0] is its size, a "
            f"tensor, and shape=(3, None) makes a variable of known size{traced_hint(self)}{asked(describe(self))}"
        )

    def __iter__(self) -> Iterator[Node]:
        size = FUNCTIONS["asked_length"](self.type.shape[0]) if self.ndim else None
        if not isinstance(size, int):
            raise GraphTypeError(
                f"{describe(self)} of type {self.type} cannot be iterated over or unpacked while the graph is built: "
                f"{'its size is not known' if self.ndim else 'it has no axes'}; graphc.scan loops over an axis, and "
                f"shape=(3, None) makes a variable of known size{traced_hint(self)}{asked(describe(self))}"
            )
        return (self[position] for position in range(size))

    def __getitem__(self, key: Any) -> Node:
        return HOOKS.handles.item(self, key) if by_program() else self.part(key)

    def part(self, key: Any) -> Node:
        """The node of `x[key]`."""
        item: Node = FUNCTIONS["getitem"](self, key)
        if item.args and item.serial > self.serial:  # or it is what this one was made of
            item.__dict__.setdefault("_written", (self, key))  # for whoever reads its text (expression.py)
        return item

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("true_div"), _binary("true_div", True)
    __floordiv__, __rfloordiv__ = _binary("floor_div"), _binary("floor_div", True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", True)
    __divmod__, __rdivmod__ = _binary("divmod"), _binary("divmod", True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", True)
    __and__, __rand__ = _binary("bitwise_and"), _binary("bitwise_and", True)
    __or__, __ror__ = _binary("bitwise_or"), _binary("bitwise_or", True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", True)
    __lshift__, __rlshift__ = _binary("left_shift"), _binary("left_shift", True)
    __rshift__, __rrshift__ = _binary("right_shift"), _binary("right_shift", True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __neg__, __pos__, __abs__, __invert__ = _unary("neg"), _unary("positive"), _unary("abs"), _unary("invert")

    def __round__(self, digits: int | None = None) -> Node:
        return FUNCTIONS["rounded"](self, digits, TRACE.depth and asked_by_user())

    if not TYPE_CHECKING:  # which know the methods

        def __getattr__(self, name: str) -> Any:
            return self.found(name)

        def found(self, name: str) -> Any:
            """The method of a name, for `__getattr__`."""
            method = METHODS.get(name)
            if name in IN_PLACE and asked_by_user(3):
                if method is None or TRACE.depth:
                    return of_memory(name, self)
                return partial(_used, name, self)
            if method is None or (method not in FUNCTIONS and "later" not in FUNCTIONS):
                if not TRACE.depth or name[:2] == "__":
                    raise AttributeError(f"a tensor has no attribute {name!r}")
                return FUNCTIONS["asked_attribute"](self, name)
            return explained(FUNCTIONS.get(method) or FUNCTIONS["later"](method), "").__get__(self)

    def __dir__(self) -> list[str]:
        return [name for name in (*super().__dir__(), *METHODS) if name not in INTERNAL]


WHOLE = (int, np.integer)
COMPARABLE = (Node, bool, int, float, complex, np.ndarray, np.generic, list, tuple)
"""Types that `==` compares with a tensor element by element. Dictionaries compare it with other types too."""


class Proxy(Node):
    """An object that a program has in place of a node; graphs hold the node itself."""

    __slots__ = ()

    def node(self) -> Node:
        """The node that it stands for now."""
        raise NotImplementedError


def plain(value: Any) -> Any:
    """A value; of a proxy the node that it stands for."""
    return value.node() if issubclass(type(value), Proxy) else value


class Comparison(Proxy):
    """The result of `==` and `!=`: the node that compares elements; its truth value says whether the two are one node.

    So `where(x == 0, a, b)` means what it says, while `in`, dictionaries, sets and `list.index` go by identity. Most
    comparisons are only asked for their truth, so the node is made on first use. In graphs stands the interned node
    (`node`).
    """

    __slots__ = ("compared", "is_written", "operands", "relation")

    compared: Node | None

    __hash__ = hash_of_a_number

    def __init__(self, relation: str, left: Node, right: object) -> None:
        self.relation = relation
        self.is_written = False
        self.operands = (left, right)
        self.compared = None

    def __bool__(self) -> bool:
        left, right = self.operands
        if isinstance(right, COMPARABLE) and asked_by_user():
            return FUNCTIONS["truth"](self)
        return (left is right) == (self.relation == "equal")

    def node(self) -> Node:
        """The node that compares elements. Raises what `equal` raises."""
        if self.compared is None:
            self.compared = FUNCTIONS[self.relation](*self.operands)
        return self.compared

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in Node.__slots__:
                return super().__getattr__(name)
            node = self.node()
            for slot in Node.__slots__:
                if slot != "__weakref__":
                    setattr(self, slot, getattr(node, slot))
            return getattr(node, name)


def _compared(relation: str, left: Node, right: object) -> Comparison:
    """The Comparison that a program makes. Returns a plain bool, unknown to type checkers, if a size is compared with a
    number that it always or never equals, and an array of bools if a traced program compares arrays of its own.
    `is_written` is set if the program has the operator itself, and it is not a list or dict that searches."""
    by_user = TRACE.depth and isinstance(right, COMPARABLE) and asked_by_user(3)  # not by a table of Python's
    if by_user and HOOKS.handles.is_array(left, right):
        return HOOKS.handles.operate(relation, (left, right))
    if isinstance(right, WHOLE) and type(left) is not Comparison and left.op is not CONSTANT:
        known: Comparison | None = FUNCTIONS["decided"](relation, left, right)
        if known is not None:
            return known
    compared = Comparison(relation, left, right)
    compared.is_written = isinstance(right, Node) and instruction(3)[0] == "COMPARE_OP"
    return compared


class Scalar(Node, metaclass=Numbers):
    """A tensor without axes made while a function is traced; it stands for a number, so hashing it is refused."""

    __slots__ = ()

    __hash__ = hash_of_a_number
    __len__, __iter__ = OfArrays(Node.__len__), OfArrays(Node.__iter__)

    def stand_back(self) -> None:
        """Become an ordinary Node once the traced function has returned."""
        if type(self) is Scalar:
            self.__class__ = Node


def _used(name: str, node: Node, *args: Any, **kwargs: Any) -> Any:
    """A method that works in place in NumPy (`x.sort()`). Refused if the program drops the result: it means NumPy's."""
    if "POP_TOP" in instruction():
        raise refuse_in_place(name, node)
    return explained(FUNCTIONS.get(name) or FUNCTIONS["later"](name), "")(node, *args, **kwargs)


class Leaves(type):
    """The metaclass of leaf classes that programs call as Theano's: with a type and a value."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if args and type(args[0]) is Op:
            return super().__call__(*args, **named)
        return FUNCTIONS[f"make {cls.__name__}"](*args, **named)


class Constant(Node, metaclass=Leaves):
    """A fixed array. `Constant(type, data, name=None)` makes one, as in Theano."""

    __slots__ = ()

    @property
    def data(self) -> Array:
        """The array, which is read-only."""
        return self.attrs["value"].value

    value = data
    """Theano's other name."""


class Complex(Node):
    """A complex tensor: its arguments are the real and the imaginary part. It is no argument of another node. In trees
    it has one leaf, a tensor of floats with a last axis of two. `ops/pairs.py` gives it its methods."""

    __slots__ = ()


NODES = Interned()
"""All interned nodes."""


_ORDINARY = frozenset((Node, Scalar, Constant))


def make(op: Op, args: Sequence[Node], attrs: Attributes | None = None) -> Node:
    """The interned node of `op` on `args`. Attribute values must be hashable."""
    arguments = tuple(args)
    attributes = attrs or {}
    key = _key(op, arguments, attributes)
    interned: Node | None = NODES.get(key)
    if interned is not None:
        return interned if TRACE.strict is None else TRACE.strict(interned)
    if not _ORDINARY.issuperset(map(type, arguments)):
        if any(isinstance(arg, Proxy) for arg in arguments):
            return make(op, list(map(plain, arguments)), attrs)
        if Complex in map(type, arguments):
            return HOOKS.pairs.on(op, arguments, attributes)
    type_ = op.infer(arguments, attributes)
    if type_.dtype in COMPLEX_DTYPES and op is not COMPLEX:
        raise GraphTypeError(f"{op.name}: a tensor of {type_.dtype} is a pair of real ones, and none of its own")
    is_scalar = TRACE.depth and not type_.shape and op is not CONSTANT and op is not COMPLEX
    chosen = Constant if op is CONSTANT else Complex if op is COMPLEX else Scalar if is_scalar else Node
    node = chosen(op, arguments, attributes, type_)
    if is_scalar:
        TRACE.scalars.append(node)
    NODES[key] = node
    return node if TRACE.strict is None else TRACE.strict(node)


def remade(node: Node, args: tuple[Node, ...]) -> Node:
    """The interned node of the same op and attributes on other arguments; a new node keeps the user line of `node`.
    Type inference is skipped where the type cannot change, which is so if the arguments' types are the same and none is
    a size."""
    key = _key(node.op, args, node.attrs)
    interned: Node | None = NODES.find(key)
    if interned is not None:
        return interned
    same = len(args) == len(node.args) and all(map(_keeps_type, args, node.args))
    if not same or node.op is COMPLEX or node.is_tuple or node.op.version:
        return make(node.op, args, node.attrs)
    new = NODES[key] = Node(node.op, args, node.attrs, node.type, None, node.where)
    return new


def _keeps_type(after: Node, before: Node) -> bool:
    """True if replacing one argument by the other cannot change the inferred type."""
    if after is before:
        return True
    known = before.type
    is_size = not known.shape and known.dtype == "int64"
    return not is_size and not issubclass(type(after), Proxy) and known.is_same(after.type)


def find_node(op: Op, args: Sequence[Node], attrs: Attributes) -> Node | None:
    """The node of `op` on `args` if it exists, else None."""
    return NODES.find(_key(op, args, attrs))


def _key(op: Op, args: Sequence[Node], attrs: Attributes) -> Hashable:
    if not attrs:
        return op, tuple(map(id, args))
    items = attrs.items() if len(attrs) < 2 else sorted(attrs.items())
    sizes = attrs["type"].shape if op is PARAM else ()  # equal types may have other ones
    return op, tuple(map(id, args)), tuple(items), tuple([exact_kind(value) for _, value in items]), sizes


def literal(value: Any, dtype: str | None = None) -> Node:
    """The constant node of a value; of a complex one the pair of its parts."""
    if type(value) in (float, int, bool) and dtype not in COMPLEX_DTYPES:
        return make(CONSTANT, (), {"value": frozen_number(value, dtype)})
    array = np.asarray(value, dtype=dtype)
    if array.dtype.kind == "c":
        return pair(*(literal(np.ascontiguousarray(part).reshape(array.shape)) for part in (array.real, array.imag)))
    return make(CONSTANT, (), {"value": FrozenArray.of(array)})


def pair(re: Node, im: Node) -> Node:
    """The complex tensor of these parts, floats of one dtype and shape."""
    return make(COMPLEX, (re, im))


def size_leaf(owner: str | None, axis: int) -> Node:
    """A size known only at run time; `owner` and `axis` name it in messages."""
    return Node(SIZE, (), {"type": Type("int64", ()), "owner": owner, "axis": axis}, Type("int64", ()))


def leaf_type(dtype: str, sizes: Sequence[Size | None], owner: str | None) -> Type:
    """The type of a leaf; each size given as None becomes a new size leaf."""
    shape = tuple(size_leaf(owner, axis) if size is None else size for axis, size in enumerate(sizes))
    if dtype in COMPLEX_DTYPES:
        raise GraphTypeError(f"{owner or 'a variable'}: a tensor of {dtype} is a pair of real ones, and no leaf")
    return Type(check_dtype(dtype), shape)


def variable(dtype: str, sizes: Sequence[Size | None], name: str | None = None) -> Node:
    """A fresh input, given at each call. Sizes given as None are known only then."""
    if dtype in COMPLEX_DTYPES:
        return HOOKS.pairs.complex_variable(dtype, sizes, name)
    type_ = leaf_type(dtype, sizes, name)
    return Node(INPUT, (), {"type": type_}, type_, name)


FUNCTIONS["variable"] = variable


def constant_value(node: Node) -> Array | None:
    """The array of a constant node; None for any other node."""
    return node.attrs["value"].value if node.op is CONSTANT else None


def describe_size(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    if size.op is SIZE:
        return f"{size.attrs['owner'] or '?'}.{size.attrs['axis']}"
    return describe(size)


def describe(node: Node) -> str:
    """A short description for messages: the user's name or the expression, with the user's line."""
    node = plain(node)
    while node.op.name == "checked" and not node.name:  # a check is not shown, and has no line
        node = node.args[0]
    if node.op is SIZE:
        return f"the size of {node.attrs['owner'] or 'a variable'} along axis {node.attrs['axis']}"
    value = constant_value(node)
    if value is not None and value.ndim == 0:
        return str(value)
    unnamed = "an unnamed input" if node.op in (INPUT, PARAM) else node.op.name
    label = node.name or (HOOKS.label(node) if node.args else unnamed)
    return f"{label} ({node.where})" if node.where else label
