"""The C functions of an exported function (c_interface.py), in LLVM IR.

In: a `CFunction`. Out: the text of a module that defines its symbols over the `sizes` and `kernel` of its program. A
call checks what it is given in this order, and returns the first error:

    inputs                 NULL, SIZE, STRIDES
    `sizes`                a check of sizes
    results, memory        TOO_LARGE, RESULT_SIZE, STRIDES, STATE_SIZE, WORKSPACE, STATE_CONSTANT, OVERLAP
    `kernel`               REFUSED

The new value of a shared variable that is not written in place is made in the workspace, then copied. So is an array
with strides that is not contiguous: inputs before the kernel runs, results after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import add, and_, mul, or_
from typing import Any

import numpy as np

from graphc.arrays.dtypes import itemsize
from graphc.codegen.call.c_interface import FIRST_CHECK, STRIDE_OF, CFunction, Field, Parameter, code_of
from graphc.codegen.call.signature import ALIGNMENT, MOST, Array
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, Global, external, module_text
from graphc.codegen.llvm.typed import F32, F64, I8, I16, I32, I64, NULL, Bool, Ptr
from graphc.startup.record import record

ROOM_NAME = "gc_room"
"""Of each thread, where the memory begins and ends that products and convolutions may take of the workspace of the
call that it is in (pipeline/standalone.py); 0 outside of a call."""
LEAST_ROOM, MOST_ROOM, SMALL = 2**16, 2**25 + 2**22, 2**15
"""Bytes of that memory at least and at most; bytes of all arrays up to which products need none."""
copy_memory = external("llvm.memcpy.p0.p0.i64", None, Ptr, Ptr, I64, Bool)
ROOM = Global(ROOM_NAME, "external thread_local global [2 x i64]")
KINDS: dict[str, Any] = {"bool": I8, "float32": F32, "float64": F64}
KINDS |= {f"{sign}int{kind.bits}": kind for kind in (I8, I16, I32, I64) for sign in ("", "u")}
"""The types of elements."""


def c_ir(function: CFunction) -> str:
    """The module of a function."""
    inputs = function.inputs()
    kinds = {f"a{place}": _kind(function, each) for place, each in enumerate(inputs)}
    results = {f"r{place}": _kind(function, each) for place, each in enumerate(function.outputs())}

    def run(code: Code, *args: Any) -> I32:
        return Call(code, function, args).run()

    def tell(code: Code, *args: Any) -> I32:
        return Call(code, function, args[:-1]).tell(args[-1])

    functions: list[Function[..., Any]] = [
        Function(function.name, I32, {**kinds, **results}, run),
        Function(f"{function.name}_workspace_size", I32, {**kinds, "wanted": Ptr}, tell),
        Function(f"{function.name}_error_text", Ptr, {"number": I32}, partial(_text_of, function)),
    ]
    return module_text(functions, _data(function))


def _kind(function: CFunction, parameter: Parameter) -> Any:
    if parameter.role == "value":
        return KINDS[function.signature.inputs[parameter.number].dtype]
    return Ptr if parameter.role in ("data", "state", "result", "workspace") else I64


def _text_of(function: CFunction, code: Code, number: I32) -> Ptr:
    """The address of the sentence of a code."""
    for code_number, text in function.texts().items():
        name = f"gc_text_{code_number}"
        constant = Global(name, f"internal constant {_bytes(text.encode() + bytes(1))}")(code)
        with code.when(number == code_number):
            code.ret(constant)
    unknown = "there is no error of this number"
    return Global("gc_text", f"internal constant {_bytes(unknown.encode() + bytes(1))}")(code)


def _bytes(content: bytes) -> str:
    """A constant of bytes."""
    escaped = "".join([f"\\{byte:02X}" for byte in content])
    return f'[{len(content)} x i8] c"{escaped}"'


def _data(function: CFunction) -> list[str]:
    """Constants, and the first values of shared variables."""
    values = (*function.initial, *function.constants)
    lines = [
        f"@gc_value_{n} = internal constant {_bytes(np.ascontiguousarray(value).tobytes())}, align {ALIGNMENT}"
        for n, value in enumerate(values)
    ]
    if not function.initial:
        return lines
    kinds, words = [], []
    for field in function.fields():
        array, value = function.shared[field.number], function.initial[field.number]
        if field.role == "value":
            kinds.append(f"[{itemsize(array.dtype)} x i8]")
            words.append(_bytes(value.tobytes()))
        else:
            kinds.append("i64" if field.role == "size" else "ptr")
            words.append(f"i64 {value.shape[field.axis]}" if field.role == "size" else f"ptr @gc_value_{field.number}")
    # Packed, with what C leaves free between fields written out.
    parts, types, end = [], [], 0
    for field, type_, word in zip(function.fields(), kinds, words, strict=True):
        if field.offset > end:
            types.append(f"[{field.offset - end} x i8]")
            parts.append(f"[{field.offset - end} x i8] zeroinitializer")
        types.append(type_)
        parts.append(word)
        end = field.offset + _length(function, field)
    return [*lines, f"@{function.name}_initial = constant <{{{', '.join(types)}}}> <{{{', '.join(parts)}}}>, align 8"]


def _length(function: CFunction, field: Field) -> int:
    return itemsize(function.shared[field.number].dtype) if field.role == "value" else 8


@record(eq=False)
class Span:
    """Memory of a call: where it begins and ends, whether the call writes it, and the array with strides in it."""

    begin: I64
    end: I64
    written: bool
    array: Strided | None = None


class Call:
    """The body of a C function, as it is written."""

    def __init__(self, code: Code, function: CFunction, args: Sequence[Any]) -> None:
        self.code, self.function, self.signature = code, function, function.signature
        parameters = [*function.inputs(), *function.outputs()]
        self.given: dict[tuple[str, int, int], Any] = {
            (each.role, each.number, each.axis): value for each, value in zip(parameters, args, strict=False)
        }
        self.known = self.signature.inputs + self.signature.shared
        self.pointers: list[Ptr] = []
        self.dims: list[list[I64 | int]] = []
        self.dummy = code.local(I64, 8, align=ALIGNMENT)
        """The target of null addresses of empty arrays: kernels assume that no address is null."""
        self.take()
        self.fail("SIZE", [dim < 0 for dims in self.dims for dim in dims if not isinstance(dim, int)])
        self.strided: dict[tuple[str, int], Strided] = {}
        self.spans = [self.span(*each) for each in enumerate(self.known) if each[1].shape]
        self.measure()

    def fail(self, name: str, conditions: Sequence[Bool]) -> None:
        """Return an error where one of the conditions holds."""
        if conditions:
            with self.code.when(reduce(or_, conditions)):
                self.code.ret(I32.of(code_of(name)))

    def take(self) -> None:
        """The addresses and sizes of all operands."""
        state: Any = self.given.get(("state", 0, 0))
        fields = {(f.role, f.number, f.axis): f for f in self.function.fields()}
        if state is not None:
            self.fail("NULL", [state == NULL])
        inputs = len(self.signature.inputs)
        for number, array in enumerate(self.known):
            own = number - inputs
            if own < 0:
                self.pointers.append(self.input(number, array))
                self.dims.append(_dims(array, lambda axis, n=number: self.given["size", n, axis]))
            elif own < len(self.function.initial):
                field = fields["data" if array.shape else "value", own, 0]
                place = state.at(field.offset)
                self.pointers.append(place.load(Ptr) if array.shape else place)
                self.dims.append(_dims(array, lambda axis, n=own: _load(state, fields["size", n, axis])))
            else:
                self.pointers.append(Ptr(self.code, f"@gc_value_{own}"))
                self.dims.append([*self.function.constants[own - len(self.function.initial)].shape])

    def input(self, number: int, array: Array) -> Ptr:
        if array.shape:
            return self.given["data", number, 0]
        value = self.given["value", number, 0]
        place = self.code.local(I64)
        place.store(value if array.dtype != "bool" else (value != 0).to(I8, signed=False))
        return place

    def span(self, number: int, array: Array) -> Span:
        """The memory of an operand, whose address is not null unless it is empty."""
        length = _count(self.dims[number]) * itemsize(array.dtype)
        place = number - len(self.signature.inputs)
        if place < len(self.function.initial):
            self.pointers[number] = self.filled(self.pointers[number], length)
        if ("data", number) in self.function.strided:
            return self.strided_span("data", number, self.pointers[number], self.dims[number], array)
        return _span(self.pointers[number], length, place in self.function.updated)

    def strided_span(self, role: str, number: int, at: Ptr, dims: Sequence[I64 | int], of: Array) -> Span:
        """The memory of an array with strides."""
        strides = [self.given[STRIDE_OF[role], number, axis] for axis in range(len(dims))]
        array = self.strided[role, number] = Strided(self.code, at, dims, strides, KINDS[of.dtype])
        is_written = role == "result"
        self.fail("STRIDES", [array.is_absurd | array.may_repeat() if is_written else array.is_absurd])
        return Span(array.begin, array.end, is_written, array)

    def filled(self, at: Ptr, length: Any) -> Ptr:
        """An address that is not null. Return NULL from the function where something should stand there."""
        if isinstance(length, int):
            self.fail("NULL", [at == NULL] if length else [])
        else:
            self.fail("NULL", [(at == NULL) & (length != 0)])
        return at if isinstance(length, int) and length else (at == NULL).choose(self.dummy, at)

    def measure(self) -> None:
        """Check sizes, and find those of results and temporaries, and the bytes of the workspace."""
        code, signature = self.code, self.signature
        numbers = [self.dims[index][axis] for index, axis in signature.sizes]
        self.sizes = [number if not isinstance(number, int) else I64.of(number) for number in numbers]
        slots = code.local(I64, max(signature.extents, 1))
        kinds = [Ptr] * len(self.pointers) + [I64] * len(self.sizes) + [Ptr]
        status = external("sizes", I64, *kinds)(code, *self.pointers, *self.sizes, slots)
        with code.when(status != 0):
            code.ret((status + FIRST_CHECK).to(I32))
        self.cursor, self.slots, self.absurd = 0, slots, list[Bool]()
        self.shapes, self.lengths = [], []
        for output in signature.outputs:
            dims = self.next_dims(len(output.shape), output)
            self.shapes.append(dims)
            self.lengths.append(self.bytes_of(dims, output.dtype))
        end: Any = 0
        self.starts: list[Any] = []
        for temp in signature.temps:
            lengths = [self.bytes_of(self.next_dims(rank), dtype) for dtype, rank in temp.values]
            self.starts.append(end)
            end = _aligned(end, reduce(_larger, lengths))
        for output, length in zip(signature.outputs, self.lengths, strict=True):
            if output.replaces is not None:
                self.starts.append(end)
                end = _aligned(end, length)
        for number, array in enumerate(signature.inputs):
            if strided := self.strided.get(("data", number)):
                bytes_ = self.bytes_of(self.dims[number], array.dtype)
                self.starts.append(end)
                end = _aligned(
                    end, strided.is_plain.choose(I64.of(0), I64.of(bytes_) if isinstance(bytes_, int) else bytes_)
                )
        for number, _ in self.function.results:
            if ("result", number) in self.function.strided:
                self.starts.append(end)
                end = _aligned(end, self.lengths[number])
        self.fail("TOO_LARGE", [*self.absurd, *([] if isinstance(end, int) else [end > MOST])])
        self.room_at, end = end, self.with_room(end)
        self.total = end + ALIGNMENT if self.starts or self.function.room else 0

    def with_room(self, end: Any) -> Any:
        """The end of the workspace behind the memory that products and convolutions take."""
        factor = self.function.room
        if not factor:
            return end
        byte_counts = [_count(dims) * itemsize(array.dtype) for dims, array in zip(self.dims, self.known, strict=True)]
        total: I64 = self.code.emit(I64, "add i64 0, 0")
        for length in (*byte_counts, *self.lengths, end):
            total = total + length
        wanted = total * factor + LEAST_ROOM
        room = wanted.above(MOST_ROOM).choose(I64.of(MOST_ROOM), wanted)
        return (total < SMALL).choose(I64.of(0), room) + end

    def next_dims(self, rank: int, array: Array | None = None) -> list[I64 | int]:
        """The next numbers that `sizes` wrote, or what is known of them."""
        places = range(self.cursor, self.cursor + rank)
        self.cursor += rank
        sizes = array.shape if array is not None else (None,) * rank
        return [self.slots.at(k, I64).load(I64) if n is None else n for k, n in zip(places, sizes, strict=True)]

    def bytes_of(self, dims: Sequence[I64 | int], dtype: str) -> Any:
        """The bytes of an array. Where they are absurd, so is the product in float64, which cannot overflow."""
        unknown = [dim for dim in dims if not isinstance(dim, int)]
        known = reduce(mul, (dim for dim in dims if isinstance(dim, int)), itemsize(dtype))
        if not unknown:
            return known
        self.absurd += [dim < 0 for dim in unknown]
        rough = reduce(mul, [dim.to(F64) for dim in unknown]) * float(known)
        self.absurd.append(rough > float(MOST))
        return reduce(mul, unknown) * known

    def tell(self, wanted: Ptr) -> I32:
        """Write what `<name>_workspace_size` tells."""
        self.fail("NULL", [wanted == NULL])
        total = I64.of(self.total) if isinstance(self.total, int) else self.total
        wanted.store(total)
        sizes = [each for each in self.function.outputs() if each.role == "result size"]
        for place, each in enumerate(sizes, 1):
            wanted.at(place, I64).store(self.shapes[each.number][each.axis])  # type: ignore[arg-type]
        return I32.of(0)

    def run(self) -> I32:
        """Check the memory, and run the kernel."""
        code, signature = self.code, self.signature
        places = {number: self.result(number, array) for number, array in self.function.results}
        workspace, room = self.given["workspace", 0, 0], self.given["bytes", 0, 0]
        if self.starts or self.function.room:
            total = I64.of(self.total) if isinstance(self.total, int) else self.total
            self.fail("WORKSPACE", [room.below(total)])
            self.fail("NULL", [workspace == NULL])
            self.spans.append(_span(workspace, self.total, True))
        self.check_state()
        self.check_overlaps()
        temps, start = [], workspace
        if self.starts or self.function.room:
            start = ((workspace.integer() + (ALIGNMENT - 1)) & -ALIGNMENT).address()
            temps = [start.at(offset) for offset in self.starts]
        others = iter(temps[len(signature.temps) :])
        news = {n: next(others) for n, output in enumerate(signature.outputs) if output.replaces is not None}
        copies = {key: next(others) for key in self.strided}
        for (role, number), array in self.strided.items():
            copy = copies[role, number]
            if role == "data":
                with code.when(~array.is_plain):
                    array.copy_to(copy)
            addresses = self.pointers if role == "data" else places
            addresses[number] = array.is_plain.choose(array.at, copy)
        results = [(places | news)[number] for number in range(len(signature.outputs))]
        pointers = [*self.pointers, *results, *temps[: len(signature.temps)]]
        kinds = [Ptr] * len(pointers) + [I64] * len(self.sizes)
        self.give_room(start.at(self.room_at), workspace.at(self.total))
        status = external("kernel", I64, *kinds)(code, *pointers, *self.sizes)
        self.give_room(NULL, NULL)
        self.fail("REFUSED", [status != 0])
        self.finish(news, copies)
        return I32.of(0)

    def give_room(self, begin: Ptr, end: Ptr) -> None:
        """Tell products and convolutions what memory is theirs."""
        if self.function.room:
            place = ROOM(self.code)
            place.store(begin)
            place.at(1, Ptr).store(end)

    def result(self, number: int, array: Array) -> Ptr:
        """The address of a result, whose memory was checked."""
        parameters, shape = self.given, self.shapes[number]
        at = self.filled(parameters["result", number, 0], self.lengths[number])
        wrong = [parameters["result size", number, axis] != shape[axis] for axis in array.unknown]
        self.fail("RESULT_SIZE", wrong)
        is_strided = ("result", number) in self.function.strided
        span = self.strided_span("result", number, at, shape, array) if is_strided else None
        self.spans.append(span or _span(at, self.lengths[number], True))
        return at

    def finish(self, news: Mapping[int, Ptr], copies: Mapping[tuple[str, int], Ptr]) -> None:
        """Copy what was made in the workspace to where it belongs."""
        for number, new in news.items():
            length, place = self.lengths[number], self.signature.outputs[number].replaces
            bytes_ = I64.of(length) if isinstance(length, int) else length
            old = self.pointers[len(self.signature.inputs) + (place or 0)]
            copy_memory(self.code, old, new, bytes_, Bool.of(False))
        for (role, number), copy in copies.items():
            array = self.strided[role, number]
            if role == "result":
                with self.code.when(~array.is_plain):
                    array.copy_from(copy)

    def check_state(self) -> None:
        """Refuse updates that do not fit their arrays, or would be written to constants."""
        first = len(self.signature.inputs)
        differ: list[Any] = []
        for number, output in enumerate(self.signature.outputs):
            if output.replaces is None:
                continue
            for new, old in zip(self.shapes[number], self.dims[first + output.replaces], strict=True):
                if isinstance(new, int) and isinstance(old, int):
                    assert new == old, "a shared variable keeps the sizes of its type"
                else:
                    differ.append(old != new if isinstance(new, int) else new != old)
        self.fail("STATE_SIZE", differ)
        updated = [number for number in sorted(self.function.updated) if self.function.shared[number].shape]
        constant = [self.pointers[first + n] == Ptr(self.code, f"@gc_value_{n}") for n in updated]
        self.fail("STATE_CONSTANT", constant)

    def check_overlaps(self) -> None:
        """Refuse memory that is written and overlaps other memory."""
        plain: list[Bool] = []
        for place, other in enumerate(self.spans):
            for span in self.spans[:place]:
                if not span.written and not other.written:
                    continue
                meet = span.begin.below(other.end) & other.begin.below(span.end)
                if span.array is None or other.array is None:
                    plain.append(meet)
                    continue
                with self.code.when(meet):
                    self.fail("OVERLAP", [span.array.shares(other.array)])
        self.fail("OVERLAP", plain)


def _span(at: Ptr, length: Any, written: bool) -> Span:
    begin = at.integer()
    return Span(begin, begin + length, written)


def _load(state: Ptr, field: Field) -> I64:
    return state.at(field.offset).load(I64)


def _dims(array: Array, size: Any) -> list[I64 | int]:
    return [size(axis) if known is None else known for axis, known in enumerate(array.shape)]


def _count(dims: Sequence[I64 | int]) -> Any:
    known = reduce(mul, (dim for dim in dims if isinstance(dim, int)), 1)
    unknown = [dim for dim in dims if not isinstance(dim, int)]
    return reduce(mul, unknown) * known if unknown else known


def _aligned(end: Any, length: Any) -> Any:
    """Return the end of memory of a length that begins at an aligned offset."""
    if isinstance(length, int):
        return end + -(-length // ALIGNMENT) * ALIGNMENT
    padded = (length + (ALIGNMENT - 1)) & -ALIGNMENT
    return padded + end


def _larger(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    if isinstance(left, int):
        left, right = right, left
    return (left > right).choose(left, right)


# --- arrays of any strides in the C functions of an exported function, in LLVM IR -------------------------------------
# In: the address of the first element, sizes, and strides in bytes. Out: whether kernels can take the array as it is,
# a copy of its elements, the memory that it spans, whether arrays share elements.
#
#     Strided(code, at, dims, strides, F64)
#         .is_plain      contiguous and aligned: the kernel reads or writes the array itself
#         .copy_to(to)   else it reads a copy, or writes one, which `copy_from` takes back
#
# Strides may be negative, zero, and no multiples of the element's size, as those of a field of a packed struct.


class Strided:
    """An array. dims: its sizes, numbers where they are known. kind: the type of its elements."""

    def __init__(self, code: Code, at: Ptr, dims: Sequence[I64 | int], strides: Sequence[I64], kind: Any) -> None:
        self.code, self.at, self.kind, self.strides = code, at, kind, strides
        self.item = kind.bits // 8
        self.dims = [code.emit(I64, f"add i64 0, {dim}") if isinstance(dim, int) else dim for dim in dims]
        self.plain_strides = [code.emit(I64, f"add i64 0, {self.item}")]
        for dim in reversed(self.dims[1:]):
            self.plain_strides.insert(0, self.plain_strides[0] * dim)
        fits = [
            (stride == plain) | (dim == 1)
            for dim, stride, plain in zip(self.dims, strides, self.plain_strides, strict=True)
        ]
        self.is_plain = reduce(and_, fits, at.integer() & (self.item - 1) == 0)
        self.is_absurd = reduce(or_, [self._is_absurd(*each) for each in zip(self.dims, strides, strict=True)])
        self.begin, self.end = self._bounds()

    @staticmethod
    def _is_absurd(dim: I64, stride: I64) -> Bool:
        """True where an axis would be absurdly long, by float64, which cannot overflow."""
        length = dim.to(F64) * stride.to(F64)
        return (length > float(MOST)) | (length < -float(MOST))

    def _bounds(self) -> tuple[I64, I64]:
        """The address of the first byte of all elements, and of what follows the last."""
        begin = end = self.at.integer()
        for dim, stride in zip(self.dims, self.strides, strict=True):
            length = (dim - 1) * stride
            begin, end = begin + (length < 0).choose(length, 0), end + (length > 0).choose(length, 0)
        is_empty = reduce(mul, self.dims) == 0
        return is_empty.choose(self.at.integer(), begin), is_empty.choose(self.at.integer(), end + self.item)

    def steps(self) -> list[I64]:
        """The lengths of the strides that lead from one element to another, else 0."""
        sizes = [(stride < 0).choose(0 - stride, stride) for stride in self.strides]
        return [(dim > 1).choose(size, 0) for dim, size in zip(self.dims, sizes, strict=True)]

    def may_repeat(self) -> Bool:
        """True unless each stride leads past all elements that smaller strides lead to: then none share memory."""
        steps, overlaps = self.steps(), list[Bool]()
        for place, step in enumerate(steps):
            reach: Any = I64.of(self.item)
            for other, (less, dim) in enumerate(zip(steps, self.dims, strict=True)):
                if other != place:
                    is_less = less <= step if other < place else less < step
                    reach = is_less.choose((dim - 1) * less, 0) + reach
            overlaps.append((self.dims[place] > 1) & (step < reach))
        return reduce(or_, overlaps) & (reduce(mul, self.dims) != 0)

    def shares(self, other: Strided) -> Bool:
        """True unless the elements of this array are seen to stand beside those of the other: see `apart`."""
        distance, numbers = other.begin - self.begin, (*self.dims, *other.dims, *self.steps(), *other.steps())
        return ~apart(len(self.dims), self.item, len(other.dims), other.item)(self.code, distance, *numbers)

    def copy_to(self, to: Ptr) -> None:
        """Write the elements to contiguous memory."""
        copy(len(self.dims), self.kind)(self.code, to, self.at, *self.dims, *self.plain_strides, *self.strides)

    def copy_from(self, source: Ptr) -> None:
        """Take the elements from contiguous memory."""
        copy(len(self.dims), self.kind)(self.code, self.at, source, *self.dims, *self.strides, *self.plain_strides)


def apart(rank: int, item: int, other_rank: int, other_item: int) -> Function[..., Bool]:
    """A function of two arrays: the distance between the first, their sizes, the lengths of their strides. It is true
    if for one of the strides, the period, all elements of one array stand beside those of the other within a period:
    as fields of an array of structs do, and columns of a matrix. Strides that are multiples of the period lead to the
    same places in others; the rest span a block."""
    count = rank + other_rank
    names = [f"{word}_{number}" for word in ("size", "step") for number in range(count)]

    def write(code: Code, distance: I64, *numbers: I64) -> Bool:
        sizes, steps, disjoint = numbers[:count], numbers[count:], []
        for step in steps:
            period = (step == 0).choose(I64.of(1), step)
            spans = [
                (each % period == 0).choose(I64.of(0), (size - 1) * each)
                for size, each in zip(sizes, steps, strict=True)
            ]
            block, other_block = (
                reduce(add, part) + length for part, length in ((spans[:rank], item), (spans[rank:], other_item))
            )
            rest = distance.apply("srem", period)
            place = (rest < 0).choose(rest + period, rest)
            disjoint.append((place >= block) & (place + other_block <= period))
        return reduce(or_, disjoint)

    kinds = {"distance": I64, **dict.fromkeys(names, I64)}
    name = f"gc_apart_{rank}_{item}_{other_rank}_{other_item}"
    return Function(name, Bool, kinds, write, "noinline optsize", is_internal=True)


def copy(rank: int, item: Any) -> Function[..., None]:
    """A function that copies elements: to, from, sizes, the strides there and here."""
    names = [f"{word}_{axis}" for word in ("size", "to", "from") for axis in range(rank)]

    def write(code: Code, to: Ptr, source: Ptr, *numbers: I64) -> None:
        _copy_axes(code, item, to, source, list(zip(numbers[:rank], numbers[rank:-rank], numbers[-rank:], strict=True)))

    kinds = {"there": Ptr, "here": Ptr, **dict.fromkeys(names, I64)}
    return Function(f"gc_copy_{rank}_{item.spelling}", None, kinds, write, "noinline", is_internal=True)


def _copy_axes(code: Code, item: Any, to: Ptr, source: Ptr, axes: Sequence[tuple[I64, I64, I64]]) -> None:
    (size, there, here), *others = axes
    with code.count(0, size) as place:
        target, origin = to.at(place * there), source.at(place * here)
        if others:
            _copy_axes(code, item, target, origin, others)
        else:
            target.store(origin.load(item, align=1), align=1)
