"""The functions that a kernel may call: their types for numba, and the LLVM IR that they become.

In: numba's types of the operands, then their values in LLVM. Out: a signature, then a value. `PRIMITIVES` are the
operators and functions of Python by themselves, `NAMES` the names of the generated language (language.py).

Types besides numba's own: `LiteralFloat`, a Python float that adapts to float32 or float64 as NumPy's weak scalars do;
`Primitive`, a callable of the generated source; `Counter`, a running `range`; `Streamed`, a pointer
of which iteration i of a loop fills or reads element i.
"""

# mypy: allow-untyped-calls, allow-subclassing-any, no-warn-return-any
# numba has hardly any annotations.

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.ir as llvm
from numba.core import cgutils, errors, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.core.typing.templates import Signature, signature

from graphc.arrays.dtypes import DTYPES
from graphc.codegen.frontend.intrinsics import INTRINSICS, OPERATORS, InferenceError, Intrinsic
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.llvm.values import Builder, Value, llvm_type
from graphc.codegen.threads.settings import CHUNK, COLUMNS, MOST_WORDS, PARALLEL, SETTINGS, STREAM
from graphc.codegen.vectorize.loopinfo import ABREAST, INDEPENDENT
from graphc.errors import CompileError


class LiteralFloat(types.Number):
    """A Python float whose width the other operand decides."""

    def __init__(self) -> None:
        super().__init__("literal_float")


class Counter(types.Type):
    """A range, and its iterator, with a step whose sign is known: -1, 1, or 0 where it is not. `mark`: the metadata
    that says how its iterations may be carried out, "" for none."""

    def __init__(self, direction: int, running: bool, mark: str) -> None:
        self.direction = direction
        self.running = running
        self.mark = mark
        super().__init__(f"counter({direction}, {running}, {mark})")


class Streamed(types.Type):
    """A pointer of which iteration i of a loop fills element i, or else reads it."""

    def __init__(self, pointer: types.Type, fills: bool) -> None:
        self.pointer = pointer
        self.fills = fills
        super().__init__(f"streamed({pointer}, {fills})")


class Primitive(types.Callable):
    """A callable of the generated source: how it is typed and how it is emitted."""

    def __init__(self, name: str) -> None:
        self.signatures: dict[tuple[types.Type, ...], Signature] = {}
        super().__init__(name)

    @abstractmethod
    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        """The signature for operands of these types; raises InferenceError."""

    @abstractmethod
    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        """The value of a call whose operands already have the types of `sig`."""

    def get_call_type(self, context: Any, args: Sequence[types.Type], kws: Any) -> Signature:
        key = tuple(args)
        typed = self.signatures.get(key)
        if typed is None:
            try:
                typed = self.signatures[key] = self.infer(key)
            except InferenceError as error:
                raise errors.TypingError(f"{self.name}: {error}") from error
        return typed

    def get_call_signatures(self) -> tuple[tuple[Signature, ...], bool]:
        return tuple(self.signatures.values()), True

    def get_impl_key(self, sig: Signature) -> str:
        return str(self.name)


LITERAL_FLOAT = LiteralFloat()
NULL = llvm.Constant(llvm.IntType(8).as_pointer(), None)
SCALARS: dict[str, types.Type] = {dtype: getattr(types, "boolean" if dtype == "bool" else dtype) for dtype in DTYPES}
_DTYPES: dict[types.Type, str] = {scalar: dtype for dtype, scalar in SCALARS.items()} | {LITERAL_FLOAT: "float"}
_RESULTS = SCALARS | {"int": types.int64, "float": LITERAL_FLOAT}


def dtype_of(type_: types.Type) -> str:
    """The dtype of a numba type, "int" or "float" for a literal; raises InferenceError for any other type."""
    dtype = _DTYPES.get(type_)
    if dtype is not None:
        return dtype
    if isinstance(type_, types.BooleanLiteral):
        return "bool"
    if isinstance(type_, types.IntegerLiteral):
        return "uint64" if type_.literal_value > 2**63 - 1 else "int"
    raise InferenceError(f"{type_} is not a scalar")


def numba_type(token: str) -> types.Type:
    """The numba type of a prototype's token, such as "float32", "int64*" or "void"."""
    if token == "void":
        return types.void
    name = token.rstrip("*")
    if name not in SCALARS or len(token) - len(name) > 1:
        raise CompileError(f"unknown type in a prototype: {token!r}")
    return types.CPointer(SCALARS[name]) if token.endswith("*") else SCALARS[name]


class ScalarCall(Primitive):
    """An intrinsic or an operator on scalars."""

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.intrinsic = intrinsic
        super().__init__(intrinsic.name)

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        operands, result = self.intrinsic.infer(tuple(map(dtype_of, args)))
        # A literal operand of a cast keeps its own type: int64 for a Python int, the literal type for a float.
        converted = tuple(
            arg if dtype in ("int", "float") else SCALARS[dtype] for arg, dtype in zip(args, operands, strict=True)
        )
        return signature(_RESULTS[result], *converted)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        return self.intrinsic.emit(builder, dtype_of(sig.args[-1]), args)


class Load(Primitive):
    """`pointer[index]`."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        pointer, index = args
        return signature(_element(pointer, index), pointer, types.int64)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        value = builder.load(builder.gep(args[0], [args[1]], inbounds=True))
        return builder.trunc(value, llvm.IntType(1)) if sig.return_type == types.boolean else value


class Store(Primitive):
    """`pointer[index] = value`; the value is cast as NumPy's assignment casts it."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        pointer, index, value = args
        dtype_of(value)
        return signature(types.none, pointer, types.int64, _element(pointer, index))

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        pointer, index, value = args
        if sig.args[2] == types.boolean:
            value = builder.zext(value, llvm.IntType(8))
        builder.store(value, builder.gep(pointer, [index], inbounds=True))
        return NULL


class Advance(Primitive):
    """`advance(pointer, count)`: the pointer to element `count`."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) != 2:
            raise InferenceError("takes a pointer and an index")
        _element(*args)
        return signature(args[0], args[0], types.int64)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        return builder.gep(args[0], [args[1]], inbounds=True)


def _element(pointer: types.Type, index: types.Type) -> types.Type:
    """The type of `pointer[index]`; raises InferenceError."""
    if not isinstance(pointer, types.CPointer):
        raise InferenceError(f"{pointer} is not a pointer")
    if dtype_of(index) not in ("int", "int64"):
        raise InferenceError(f"an index is an int64, not {index}")
    return pointer.dtype


class Truth(Primitive):
    """`bool(flag)`, which CPython's bytecode puts before each branch; only a bool has a truth value here."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) != 1 or dtype_of(args[0]) != "bool":
            raise InferenceError(f"a condition must be a bool, not {', '.join(map(str, args))}")
        return signature(types.boolean, types.boolean)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        return args[0]


class Range(Primitive):
    """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`; or `independent` of these, or `abreast`."""

    def __init__(self, name: str, mark: str) -> None:
        self.mark = mark
        super().__init__(name)

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if not 1 <= len(args) <= 3 or any(dtype_of(arg) not in ("int", "int64") for arg in args):
            raise InferenceError(f"takes one to three int64, not ({', '.join(map(str, args))})")
        direction = 1
        if len(args) == 3:
            step = args[2]
            direction = 0 if not isinstance(step, types.IntegerLiteral) else -1 if step.literal_value < 0 else 1
            # A step of 0 would never end.
            if isinstance(step, types.IntegerLiteral) and step.literal_value == 0:
                raise InferenceError("the step is 0")
        return signature(Counter(direction, False, self.mark), *(types.int64,) * len(args))

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        int64 = llvm.IntType(64)
        start, stop, step = llvm.Constant(int64, 0), args[0], llvm.Constant(int64, 1)
        if len(args) > 1:
            start, stop = args[:2]
        if len(args) == 3:
            step = args[2]
        state = llvm.Constant(_COUNTER_STATE, llvm.Undefined)
        for position, part in enumerate((start, stop, step)):
            state = builder.insert_value(state, part, position)
        return state


class Start(Primitive):
    """`iter(range)`: the state in a stack slot, which LLVM turns into registers. The slot has the mark of
    the range."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        (counted,) = args
        if not isinstance(counted, Counter):
            raise InferenceError(f"only a range can be iterated, not {counted}")
        return signature(Counter(counted.direction, True, counted.mark), counted)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        slot = cgutils.alloca_once(builder, _COUNTER_STATE)
        builder.store(args[0], slot)
        if sig.args[0].mark:
            slot.set_metadata(sig.args[0].mark, builder.module.add_metadata([]))
        return slot


class Advanced(Primitive):
    """`next(range iterator)`: the pair of the value and whether there was one."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        return signature(types.Pair(types.int64, types.boolean), args[0])

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        zero = llvm.Constant(llvm.IntType(32), 0)
        places = [
            builder.gep(args[0], [zero, llvm.Constant(llvm.IntType(32), part)], inbounds=True) for part in range(3)
        ]
        value, stop, step = map(builder.load, places)
        builder.store(builder.add(value, step), places[0])
        direction = sig.args[0].direction
        if direction:
            valid = builder.icmp_signed("<" if direction > 0 else ">", value, stop)
        else:
            upward = builder.icmp_signed(">", step, llvm.Constant(step.type, 0))
            below, above = (builder.icmp_signed(symbol, value, stop) for symbol in "<>")
            valid = builder.select(upward, below, above)
        pair = llvm.Constant(llvm.LiteralStructType([value.type, llvm.IntType(1)]), llvm.Undefined)
        return builder.insert_value(builder.insert_value(pair, value, 0), valid, 1)


_COUNTER_STATE = llvm.LiteralStructType([llvm.IntType(64)] * 3)


class NativeCall(Primitive):
    """A C function: of the same source, of the extra IR, or resolved when the object is loaded."""

    def __init__(self, prototype: Prototype) -> None:
        self.prototype = prototype
        self.native = signature(numba_type(prototype.returns), *map(numba_type, prototype.args))
        super().__init__(f"{prototype.name}{self.native}")

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) != len(self.native.args):
            raise InferenceError(f"takes {len(self.native.args)} arguments, not {len(args)}")
        for actual, expected in zip(args, self.native.args, strict=True):
            if isinstance(actual, types.CPointer) or isinstance(expected, types.CPointer):
                fits = actual == expected
            else:
                fits = dtype_of(actual) in (dtype_of(expected), "int", "float")
            if not fits:
                raise InferenceError(f"expects {expected}, not {actual}")
        return self.native

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        function = declare(builder.module, self.prototype)
        values = [builder.zext(arg, llvm.IntType(8)) if arg.type == llvm.IntType(1) else arg for arg in args]
        result = builder.call(function, values)
        if sig.return_type == types.void:
            return NULL
        return builder.trunc(result, llvm.IntType(1)) if sig.return_type == types.boolean else result


class Chunk(Primitive):
    """`chunk(count, work)` and `columns(count, work)`: how many iterations or columns a thread takes at a time, all of
    them where there is not enough to do (threads/settings.py)."""

    def __init__(self, name: str, symbol: str) -> None:
        self.symbol = symbol
        super().__init__(name)

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) != 2 or any(dtype_of(arg) not in ("int", "int64") for arg in args):
            raise InferenceError("takes two int64")
        return signature(types.int64, types.int64, types.int64)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        function = declare(builder.module, Prototype(self.symbol, ("int64", "int64", "int8*")))
        return builder.call(function, [*args, pointer_to_bytes(builder, declare_settings(builder.module))])


class Mark(Primitive):
    """`fills(pointer)` and `reads(pointer)`, operands of `parallel`."""

    def __init__(self, name: str, fills: bool) -> None:
        self.fills = fills
        super().__init__(name)

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) != 1 or not isinstance(args[0], types.CPointer):
            raise InferenceError("takes a pointer")
        return signature(Streamed(args[0], self.fills), args[0])

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        return args[0]


class Stream(NamedTuple):
    """The places of two operands of a nest's function: what iterations fill element by element, and what they read
    so."""

    fills: int
    reads: int


def stream_of(operands: Sequence[types.Type]) -> Stream | None:
    """The marked operands of a launch; raises InferenceError where they are not one of each."""
    marks = [(place, each.fills) for place, each in enumerate(operands) if isinstance(each, Streamed)]
    if not marks:
        return None
    places = {fills: place for place, fills in marks}
    if len(marks) != 2 or len(places) != 2:
        raise InferenceError("takes both a pointer that iterations fill and one that they read, or neither")
    if len(operands) > MOST_WORDS:
        raise InferenceError(f"takes no more than {MOST_WORDS} operands where iterations fill one")
    return Stream(places[True], places[False])


class Parallel(Primitive):
    """`parallel(function, count, size, *args)`: one call where there is one chunk, a launch of the pool where there are
    several, nothing where there is no iteration. An argument may be what `fills` gave, and then another what `reads`
    did."""

    def infer(self, args: tuple[types.Type, ...]) -> Signature:
        if len(args) < 3 or not isinstance(args[0], NativeCall):
            raise InferenceError("takes a function of this source, a number of iterations and the size of a chunk")
        stream_of(args[3:])
        plain = (arg.pointer if isinstance(arg, Streamed) else arg for arg in args[1:])
        callee = args[0].infer(tuple(plain))
        operands = (
            arg if isinstance(arg, Streamed) else type_ for arg, type_ in zip(args[3:], callee.args[2:], strict=True)
        )
        return signature(types.none, args[0], types.int64, types.int64, *operands)

    def emit(self, builder: Builder, sig: Signature, args: Sequence[Value]) -> Value:
        callee, stream = sig.args[0], stream_of(sig.args[3:])
        _, count, size, *operands = args
        whole = builder.icmp_signed("<=", count, size)
        with builder.if_else(whole, likely=True) as (one_chunk, several):
            with one_chunk, builder.if_then(builder.icmp_signed(">", count, llvm.Constant(count.type, 0))):
                callee.emit(builder, callee.native, [llvm.Constant(count.type, 0), count, *operands])
            with several:
                builder.call(define_launch(builder.module, callee, stream), [count, size, *operands])
        return NULL


LAUNCH = "launch"
"""In the names of functions that launch: no name of a source has a point."""


def define_launch(module: llvm.Module, callee: NativeCall, stream: Stream | None) -> llvm.Function:
    """The function that runs `callee` in chunks: it puts the operands where every thread finds them, and calls
    gc_parallel, or gc_stream. Apart from the kernel, which would else hold this once for each call."""
    marks = () if stream is None else ("fills", str(stream.fills), "reads", str(stream.reads))
    name = ".".join((callee.prototype.name, LAUNCH, *marks))
    if name in module.globals:
        return module.globals[name]
    int64 = llvm.IntType(64)
    struct = operand_struct(module, callee)
    function = llvm.Function(module, llvm.FunctionType(llvm.VoidType(), [int64, int64, *struct.elements]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = llvm.IRBuilder(function.append_basic_block())
    count, size, *operands = function.args
    for operand in operands:
        if isinstance(operand.type, llvm.PointerType):
            operand.add_attribute("nonnull")
    words = builder.alloca(struct)
    for position, operand in enumerate(operands):
        builder.store(operand, member(builder, words, position))
    body, context, settings = (
        pointer_to_bytes(builder, value) for value in (define_chunk(module, callee), words, declare_settings(module))
    )
    pointer = "int8*"
    params = (pointer, pointer, "int64", "int64", pointer)
    launched = [body, context, count, size, settings]
    if stream is None:
        builder.call(declare(module, Prototype(PARALLEL, params, "void")), launched)
    else:
        described = describe_stream(builder, words, stream)
        builder.call(declare(module, Prototype(STREAM, (*params, pointer), "void")), [*launched, described])
    builder.ret_void()
    return function


def describe_stream(builder: Builder, words: Value, stream: Stream) -> Value:
    """The arguments of gc_stream besides a launch: the bytes of the operands; and of the two that it is about where
    they stand among them, and the bytes of an element."""
    int64, one = llvm.IntType(64), llvm.Constant(llvm.IntType(32), 1)

    def bytes_between(first: Value, last: Value) -> Value:
        return builder.sub(builder.ptrtoint(last, int64), builder.ptrtoint(first, int64))

    words_told = [bytes_between(words, builder.gep(words, [one]))]
    for position in stream:
        place = member(builder, words, position)
        pointer = builder.load(place)
        words_told += [bytes_between(words, place), bytes_between(pointer, builder.gep(pointer, [one]))]
    description = builder.alloca(int64, size=len(words_told))
    for number, value in enumerate(words_told):
        builder.store(value, builder.gep(description, [llvm.Constant(int64, number)]))
    return pointer_to_bytes(builder, description)


def operand_struct(module: llvm.Module, callee: NativeCall) -> llvm.IdentifiedStructType:
    """The LLVM types of what a nest's function is given after its range. They have a name: spelt out at each member,
    the text of many would grow by the square of their number."""
    struct = module.context.get_identified_type(f"{callee.prototype.name}.operands")
    if struct.is_opaque:
        struct.set_body(
            *(
                llvm.IntType(1) if type_ == types.boolean else native_type(token)
                for type_, token in zip(callee.native.args[2:], callee.prototype.args[2:], strict=True)
            )
        )
    return struct


def define_chunk(module: llvm.Module, callee: NativeCall) -> llvm.Function:
    """The function that a thread runs for a chunk: `callee` with the operands that its context holds."""
    name = f"{callee.prototype.name}.chunk"
    if name in module.globals:
        return module.globals[name]
    int64, pointer = llvm.IntType(64), llvm.IntType(8).as_pointer()
    function = llvm.Function(module, llvm.FunctionType(llvm.VoidType(), [pointer, int64, int64]), name)
    function.linkage = "internal"
    builder = llvm.IRBuilder(function.append_basic_block())
    context, begin, end = function.args
    struct = operand_struct(module, callee)
    words = builder.bitcast(context, struct.as_pointer())
    operands = [builder.load(member(builder, words, position)) for position in range(len(struct.elements))]
    callee.emit(builder, callee.native, [begin, end, *operands])
    builder.ret_void()
    return function


def declare_settings(module: llvm.Module) -> llvm.GlobalVariable:
    """The settings of the function that this is the kernel of (threads/settings.py): int64 words."""
    if SETTINGS not in module.globals:
        llvm.GlobalVariable(module, llvm.IntType(64), SETTINGS)
    return module.globals[SETTINGS]


def member(builder: Builder, words: Value, position: int) -> Value:
    """The address of a member of a struct."""
    places = [llvm.Constant(llvm.IntType(32), place) for place in (0, position)]
    return builder.gep(words, places, inbounds=True)


def pointer_to_bytes(builder: Builder, pointer: Value) -> Value:
    return builder.bitcast(pointer, llvm.IntType(8).as_pointer())


def declare(module: llvm.Module, prototype: Prototype) -> llvm.Function:
    """The C function of a prototype in `module`: pointers by value, a bool as one byte."""
    if prototype.name in module.globals:
        return module.globals[prototype.name]
    returns = llvm.VoidType() if prototype.returns == "void" else native_type(prototype.returns)
    return llvm.Function(
        module, llvm.FunctionType(returns, [native_type(token) for token in prototype.args]), prototype.name
    )


def native_type(token: str) -> llvm.Type:
    """The LLVM type of a prototype's token in memory and in a call."""
    name = token.rstrip("*")
    type_ = llvm.IntType(8) if name == "bool" else llvm_type(name)
    return type_.as_pointer() if token.endswith("*") else type_


PRIMITIVES: dict[Any, Primitive] = {symbol: ScalarCall(row) for symbol, row in OPERATORS.items()} | {
    operator.getitem: Load("load"),
    operator.setitem: Store("store"),
    "getiter": Start("iter"),
    "iternext": Advanced("next"),
    range: Range("range", ""),
    bool: Truth("truth"),
}
NAMES: dict[str, Primitive] = {name: ScalarCall(intrinsic) for name, intrinsic in INTRINSICS.items()} | {
    "independent": Range("independent", INDEPENDENT),
    "abreast": Range("abreast", ABREAST),
    "advance": Advance("advance"),
    "chunk": Chunk("chunk", CHUNK),
    "columns": Chunk("columns", COLUMNS),
    "parallel": Parallel("parallel"),
    "fills": Mark("fills", True),
    "reads": Mark("reads", False),
}


def _register(type_: type[types.Type], type_of: Callable[[Any, Any], llvm.Type]) -> None:
    """Say of which LLVM type the values of a type are."""

    class Model(PrimitiveModel):
        def __init__(self, manager: Any, fe_type: types.Type) -> None:
            super().__init__(manager, fe_type, type_of(manager, fe_type))

    register_default(type_)(Model)


_register(LiteralFloat, lambda manager, type_: llvm.DoubleType())
_register(Counter, lambda manager, type_: _COUNTER_STATE.as_pointer() if type_.running else _COUNTER_STATE)
_register(Streamed, lambda manager, type_: manager.lookup(type_.pointer).get_value_type())
for _constant in (ScalarCall, Load, Store, Advance, Chunk, Parallel, Mark, Truth, Range, Start, Advanced, NativeCall):
    _register(_constant, lambda manager, type_: NULL.type)  # a value that exists only at compile time: a null pointer
