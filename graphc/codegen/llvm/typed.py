"""Values of LLVM's with their types: what formulas and accesses to memory are written with.

In: values, and Python numbers beside them. Out: instructions, each given to the code that its operands belong to.

A value's class is its type. An operation of two types raises TypeError at the line that wrote it. A Python number
beside a value is a constant of its type. Integers are compared as signed ones unless a method says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import pack, unpack
from typing import Any, ClassVar, Protocol, TypeVar, cast, overload

from graphc.codegen.llvm.module import HalfField, LongField, PointerField

V = TypeVar("V", bound="Value")
N = TypeVar("N", bound="Number")
I = TypeVar("I", bound="Int")  # noqa: E741 - as in Int
F = TypeVar("F", bound="Real")


class Emitter(Protocol):
    """The code that instructions are appended to."""

    def emit(self, type_: type[V], text: str) -> V:
        """An instruction with a result."""

    def do(self, text: str) -> None:
        """An instruction without a result."""

    def call(self, type_: type[V] | None, callee: str, args: Sequence[Value]) -> V:
        """A call of a function."""


class Value:
    """A value of LLVM's: the function that computes it, None for a constant, and its name there."""

    __slots__ = ("code", "text")
    spelling: ClassVar[str]
    """LLVM's name of the type of the class's values."""
    attributes: ClassVar[str] = ""
    """The attributes of a parameter of the type."""

    def __init__(self, code: Emitter | None, text: str) -> None:
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.spelling} {self.text}"

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is not known before it runs")


class Number(Value):
    """A number, or a vector of numbers."""

    __slots__ = ()
    lanes: ClassVar[int] = 1
    vectors: ClassVar[str] = ""
    """The type in the names of intrinsics."""

    @classmethod
    def of(cls: type[N], number: float) -> N:
        """A constant, the same in each lane of a vector."""
        raise NotImplementedError

    def _two(self: N, other: N | float) -> tuple[Emitter, str]:
        """The code that an operation belongs to, and its operands."""
        if not isinstance(other, Value):
            other = self.of(other)
        elif other.spelling != self.spelling:
            raise TypeError(f"{self} and {other} are of different types")
        code = self.code or other.code
        if code is None:
            raise TypeError(f"{self} and {other} are both constants")
        return code, f"{self.spelling} {self.text}, {other.text}"

    @classmethod
    def each(cls: type[N], numbers: Sequence[int]) -> N:
        """The constant vector of these integers."""
        element = cls.spelling.partition(" x ")[2][:-1]
        return cls(None, f"<{', '.join(f'{element} {number}' for number in numbers)}>")

    def minimum(self: N, other: N | float) -> N:
        """The smaller of two numbers; the other one where they cannot be compared."""
        is_less: Bool = cast("Any", self) < other
        return is_less.choose(self, other)

    def apply(self: N, opcode: str, other: N | float) -> N:
        """An operation by LLVM's name, with what it may be joined or reordered with."""
        code, operands = self._two(other)
        return code.emit(type(self), f"{opcode} {operands}")

    def compare(self: N, relation: str, other: N | float) -> Bool:
        """A comparison by LLVM's name."""
        code, operands = self._two(other)
        return code.emit(truth(self.lanes), f"{relation} {operands}")

    def spread(self, lanes: int) -> Any:
        """A vector with the number in each lane."""
        assert self.code is not None
        type_ = vector(type(self), lanes)
        first_lane = self.code.emit(type_, f"insertelement {type_.spelling} poison, {self}, i32 0")
        return first_lane.pick(first_lane, [0] * lanes)

    def lane(self, place: int) -> Any:
        """A number of a vector."""
        assert self.code is not None
        return self.code.emit(ELEMENTS[type(self)], f"extractelement {self}, i32 {place}")

    def pick(self: N, other: N, places: Sequence[int]) -> Any:
        """The vector of what stands at these places of two vectors, counted on."""
        code, _ = self._two(other)
        type_ = vector(ELEMENTS[type(self)], len(places))
        chosen = ", ".join([f"i32 {place}" for place in places])
        return code.emit(type_, f"shufflevector {self}, {other}, <{len(places)} x i32> <{chosen}>")

    def _cast(self, opcode: str, type_: type[N]) -> N:
        assert self.code is not None, self
        return self.code.emit(type_, f"{opcode} {self.spelling} {self.text} to {type_.spelling}")


def _integer_operation(opcode: str) -> Callable[[I, I | int], I]:
    return lambda self, other: self.apply(opcode, other)


def _integer_relation(relation: str) -> Callable[[I, I | int], Bool]:
    return lambda self, other: self.compare(relation, other)


def _real_operation(opcode: str) -> Callable[[F, F | float], F]:
    return lambda self, other: self.apply(opcode, other)


def _real_relation(relation: str) -> Callable[[F, F | float], Bool]:
    return lambda self, other: self.compare(relation, other)


class Int(Number):
    """An integer, or a vector of them."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    bits: ClassVar[int]

    @classmethod
    def of(cls: type[I], number: float) -> I:
        if not isinstance(number, int):
            raise TypeError(f"{number} is no {cls.spelling}")
        return cls(None, str(number) if cls.lanes == 1 else f"splat (i{cls.bits} {number})")

    __add__ = _integer_operation("add")
    __sub__ = _integer_operation("sub")

    def __rsub__(self: I, other: int) -> I:
        return self.of(other).apply("sub", self)

    __mul__ = _integer_operation("mul")
    __and__ = _integer_operation("and")
    __or__ = _integer_operation("or")
    __lshift__ = _integer_operation("shl")

    def __rlshift__(self: I, other: int) -> I:
        return self.of(other).apply("shl", self)

    __rshift__ = _integer_operation("lshr")
    """Filled with zeros."""
    __floordiv__ = _integer_operation("udiv")
    """The quotient or remainder of numbers that are not negative."""

    def __rfloordiv__(self: I, other: int) -> I:
        return self.of(other).apply("udiv", self)

    __mod__ = _integer_operation("urem")
    """The quotient or remainder of numbers that are not negative."""
    __lt__ = _integer_relation("icmp slt")
    __le__ = _integer_relation("icmp sle")
    __gt__ = _integer_relation("icmp sgt")
    __ge__ = _integer_relation("icmp sge")
    __eq__ = _integer_relation("icmp eq")  # type: ignore[assignment]
    __ne__ = _integer_relation("icmp ne")  # type: ignore[assignment]
    below = _integer_relation("icmp ult")
    """Compared as unsigned numbers."""
    above = _integer_relation("icmp ugt")
    """Compared as unsigned numbers."""

    def to(self, type_: type[N], *, signed: bool = True) -> N:
        """The same number in another type; of a shorter integer what fits."""
        if issubclass(type_, Real):
            return self._cast("sitofp" if signed else "uitofp", type_)
        assert issubclass(type_, Int)
        if type_.bits == self.bits:
            return cast("N", self)
        return self._cast("trunc" if type_.bits < self.bits else "sext" if signed else "zext", type_)

    def address(self) -> Ptr:
        """The memory at this address."""
        assert self.code is not None
        return self.code.emit(Ptr, f"inttoptr {self} to ptr")


class Bool(Int):
    """Truth, or a vector of it."""

    __slots__ = ()
    spelling, bits, vectors = "i1", 1, "i1"

    @classmethod
    def of(cls: type[I], number: float) -> I:
        text = "true" if number else "false"
        return cls(None, text if cls.lanes == 1 else f"splat (i1 {text})")

    def __invert__(self) -> Bool:
        return self.apply("xor", True)

    def choose(self, yes: V, no: V | float) -> V:
        """One of two values that are both there."""
        code = self.code
        assert code is not None
        other = no if isinstance(no, Value) else cast("Any", yes).of(no)
        if other.spelling != yes.spelling:
            raise TypeError(f"{yes} and {other} are of different types")
        return code.emit(type(yes), f"select {self}, {yes}, {other}")


class I8(Int):
    __slots__ = ()
    spelling, bits, vectors = "i8", 8, "i8"


class I16(Int):
    __slots__ = ()
    spelling, bits, vectors = "i16", 16, "i16"


class I32(Int):
    __slots__ = ()
    spelling, bits, vectors = "i32", 32, "i32"


class I64(Int):
    __slots__ = ()
    spelling, bits, vectors = "i64", 64, "i64"


class Real(Number):
    """A floating-point number, or a vector of them."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    bits: ClassVar[int]

    @classmethod
    def of(cls: type[F], number: float) -> F:
        """The constant: LLVM reads the bits of a float64, of which a float32 uses some."""
        if cls.bits == 32:
            (number,) = unpack("f", pack("f", number))
        text = f"0x{pack('>d', number).hex().upper()}"
        element = "double" if cls.bits == 64 else "float"
        return cls(None, text if cls.lanes == 1 else f"splat ({element} {text})")

    __add__ = _real_operation("fadd")
    __sub__ = _real_operation("fsub")
    __mul__ = _real_operation("fmul")
    __truediv__ = _real_operation("fdiv")
    __lt__ = _real_relation("fcmp olt")
    __le__ = _real_relation("fcmp ole")
    __gt__ = _real_relation("fcmp ogt")
    __ge__ = _real_relation("fcmp oge")
    __eq__ = _real_relation("fcmp oeq")  # type: ignore[assignment]

    def to(self, type_: type[N]) -> N:
        """The same number in another format, or without its fraction."""
        if issubclass(type_, Int):
            return self._cast("fptosi", type_)
        assert issubclass(type_, Real)
        if type_.bits == self.bits:
            return cast("N", self)
        return self._cast("fptrunc" if type_.bits < self.bits else "fpext", type_)


class F32(Real):
    __slots__ = ()
    spelling, bits, vectors = "float", 32, "f32"


class F64(Real):
    __slots__ = ()
    spelling, bits, vectors = "double", 64, "f64"


_vectors: dict[tuple[type[Number], int], type[Any]] = {(Bool, 1): Bool}


ELEMENTS: dict[type[Any], type[Number]] = {}
"""The element types of vectors."""


def vector(element: type[Number], lanes: int) -> type[Any]:
    """The type of a vector."""
    type_ = _vectors.get((element, lanes))
    if type_ is None:
        family = Bool if element is Bool else element.__mro__[1]
        spelt = {"spelling": f"<{lanes} x {element.spelling}>", "vectors": f"v{lanes}{element.vectors}"}
        bits = cast("Any", element).bits
        type_ = type(f"V{lanes}{element.__name__}", (family,), {"__slots__": (), "lanes": lanes, "bits": bits, **spelt})
        _vectors[element, lanes] = type_
        ELEMENTS[type_] = element
    return type_


def truth(lanes: int) -> type[Bool]:
    """The type of what a comparison gives."""
    return Bool if lanes == 1 else cast("type[Bool]", vector(Bool, lanes))


class Pair(Value):
    """Two values that a function returns."""

    __slots__ = ()

    def first(self, type_: type[V]) -> V:
        return self._part(type_, 0)

    def second(self, type_: type[V]) -> V:
        return self._part(type_, 1)

    def _part(self, type_: type[V], place: int) -> V:
        if self.spelling[1:-1].split(", ")[place] != type_.spelling:
            raise TypeError(f"item {place} of {self} is no {type_.spelling}")
        assert self.code is not None
        return self.code.emit(type_, f"extractvalue {self}, {place}")


class SizeAndFlag(Pair):
    __slots__ = ()
    spelling = "{i64, i1}"


class HalfAndFlag(Pair):
    __slots__ = ()
    spelling = "{i32, i1}"


class TwoSizes(Pair):
    __slots__ = ()
    spelling = "{i64, i64}"

    @classmethod
    def of(cls, code: Emitter, first: I64, second: I64) -> TwoSizes:
        """Two sizes together."""
        half = code.emit(cls, f"insertvalue {cls.spelling} undef, {first}, 0")
        return code.emit(cls, f"insertvalue {half}, {second}, 1")


PAIRS: dict[type[Value], type[Pair]] = {I64: SizeAndFlag, I32: HalfAndFlag}
"""The results of an exchange of a word in memory: the word, and whether it took place."""


class Ptr(Value):
    """An address."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    spelling = "ptr"

    def __eq__(self, other: Ptr) -> Bool:  # type: ignore[override]
        return self._compare("eq", other)

    def __ne__(self, other: Ptr) -> Bool:  # type: ignore[override]
        return self._compare("ne", other)

    def below(self, other: Ptr) -> Bool:
        """True if it is the lower one."""
        return self._compare("ult", other)

    def _compare(self, relation: str, other: Ptr) -> Bool:
        code = self.code or other.code
        if not isinstance(other, Ptr) or code is None:
            raise TypeError(f"{self} is not compared with {other}")
        return code.emit(Bool, f"icmp {relation} ptr {self.text}, {other.text}")

    def _code(self) -> Emitter:
        assert self.code is not None, "nothing stands at a constant address"
        return self.code

    def at(self, index: I64 | int, type_: type[Value] = I8) -> Ptr:
        """The address `index` values of a type further; bytes where none is named."""
        return self._code().emit(Ptr, f"getelementptr {type_.spelling}, ptr {self.text}, {size_text(index)}")

    def numbers(self, element: type[Any]) -> Any:
        """The same address as that of numbers of a type (`Elements`)."""
        return elements(element)(self.code, self.text)

    def load(self, type_: type[V], *, align: int = 0, order: str = "", note: str = "") -> V:
        """Load a value. order: of an atomic access. note: LLVM's metadata."""
        how = f"load atomic {type_.spelling}" if order else f"load {type_.spelling}"
        return self._code().emit(type_, f"{how}, ptr {self.text}{_access(align, order, note)}")

    def store(self, value: Value, *, align: int = 0, order: str = "", note: str = "") -> None:
        how = "store atomic" if order else "store"
        code = self.code or value.code
        assert code is not None
        code.do(f"{how} {value}, ptr {self.text}{_access(align, order, note)}")

    @overload
    def get(self, field: PointerField) -> Ptr: ...
    @overload
    def get(self, field: HalfField) -> I32: ...
    @overload
    def get(self, field: LongField) -> I64: ...
    def get(self, field: PointerField | HalfField | LongField) -> Value:
        """A word of the struct that stands there."""
        type_ = FIELD_TYPES[type(field)]
        return (self.at(field) if field else self).load(type_)

    def put(self, field: PointerField | HalfField | LongField, value: Value) -> None:
        """Stores a word of the struct that stands there."""
        if value.spelling != FIELD_TYPES[type(field)].spelling:
            raise TypeError(f"{value} is no word of class {type(field).__name__}")
        (self.at(field) if field else self).store(value)

    def exchange(self, old: V, new: V, order: str, *, failure: str = "acquire", align: int) -> tuple[V, Bool]:
        """Replaces a word, where it has that value: what it was, and whether it had. order: on success."""
        if old.spelling != new.spelling:
            raise TypeError(f"{old} and {new} are of different types")
        how = f"{order} {failure}, align {align}"
        pair = self._code().emit(PAIRS[type(new)], f"cmpxchg ptr {self.text}, {old}, {new} {how}")
        return pair.first(type(new)), pair.second(Bool)

    def update(self, operation: str, value: V, order: str) -> V:
        """Adds to a word (`operation`: add, sub), at once for all threads: what it was."""
        return self._code().emit(type(value), f"atomicrmw {operation} ptr {self.text}, {value} {order}")

    def call(self, type_: type[V] | None, *args: Value) -> V:
        """Calls the function that stands there. kind: of its result, None for one that has none."""
        return self._code().call(type_, self.text, args)

    def integer(self) -> I64:
        """The address as a number."""
        return self._code().emit(I64, f"ptrtoint {self} to i64")


FIELD_TYPES: Mapping[type[int], type[Value]] = {PointerField: Ptr, HalfField: I32, LongField: I64}


NULL = Ptr(None, "null")


class Elements(Ptr):
    """The address of numbers of one type, side by side: x[i] is one of them, x.at(i) its address, x.value the first.

    x[j] = x[i] * 2.0
    x.at(j).value /= x[i]
    """

    __slots__ = ()
    element: ClassVar[type[Any]]

    def at(self, index: I64 | int, type_: type[Value] | None = None) -> Any:
        """The address `index` elements further, or as many values of another type."""
        if type_ is not None:
            return super().at(index, type_)
        return self._code().emit(type(self), f"getelementptr {self.element.spelling}, {self}, {size_text(index)}")

    @property
    def value(self) -> Any:
        return self.load(self.element)

    @value.setter
    def value(self, number: Number | float) -> None:
        self.store(number if isinstance(number, Value) else self.element.of(number))

    def __getitem__(self, index: I64 | int) -> Any:
        return self.at(index).value

    def __setitem__(self, index: I64 | int, number: Number | float) -> None:
        self.at(index).value = number


class Indices(Elements):
    """The address of 64-bit integers."""

    __slots__ = ()
    element = I64


_addresses: dict[tuple[type[Any], str], type[Elements]] = {(I64, ""): Indices}


def elements(element: type[Any], attributes: str = "") -> type[Elements]:
    """The type of addresses of such numbers. attributes: of parameters of the type."""
    class_ = _addresses.get((element, attributes))
    if class_ is None:
        namespace = {"__slots__": (), "element": element, "attributes": attributes}
        class_ = _addresses[element, attributes] = type(f"{element.__name__}s", (Elements,), namespace)
    return class_


class NoAlias(Elements):
    """The address of memory that a function reaches in no other way."""

    __slots__ = ()
    element = I8
    attributes = "noalias"


def size_text(number: I64 | int) -> str:
    """A number of bytes or elements as an operand."""
    if isinstance(number, int):
        return f"i64 {int(number)}"
    if number.spelling != "i64":
        raise TypeError(f"{number} is no size")
    return f"i64 {number.text}"


def _access(align: int, order: str, note: str) -> str:
    return f"{f' {order}' if order else ''}{f', align {align}' if align else ''}{f', {note}' if note else ''}"
