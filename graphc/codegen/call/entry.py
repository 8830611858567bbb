"""The native entry point of a compiled graph: LLVM IR for a builtin function that calls `sizes` and `kernel`.

In: a `Signature`. Out: the text of an LLVM module that defines

    PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)

and `vectorcall`, the same for a callable that has `self` in a slot. It holds no address of a process: the types,
descriptors and functions of Python and NumPy stand in the record behind `self` (bind.py).

A call goes through these blocks, each left for the next or for one of the exits:

    start, arrange         as many arguments as inputs, by position or name        else refuse: refuse(*args, **kwargs)
    operand                every input and shared variable is on the fast path     else refuse
    alias                  no written buffer overlaps another operand              else refuse
    sizes                  the sizes agree                                         else failed: fail(code, *args)
    extents                nothing is negative or too large                        else absurd: fail(-1, *args)
    given                  arrays given for results can hold them                  else refuse
    claim, outputs, arena  references are taken, memory is there                   else leave, with the exception set
    enter                  no other thread uses what it updates                    else leave, then contended(*args…)
    run                    the kernel, without the GIL where the work is large     else leave, then failed
    deliver                new values go to their cells, the others are returned
    leave                  references are given back

What the exits need stands on the stack: a list of the references that the call holds, and few variables, which LLVM
turns into registers: if they were one for each output, n of them would cross n branches, and LLVM take n * n time.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.call.bind import (
    ALIGNED,
    ALIGNMENT,
    ARRAY_DATA,
    ARRAY_SHAPE,
    CALLABLE_BINDING,
    CONTIGUOUS,
    LIST_ITEMS,
    OBJECT_TYPE,
    RECORD,
    TUPLE_ITEMS,
    TUPLE_SIZE,
    WRITEABLE,
    Array,
    Signature,
    layout_tag,
)
from graphc.codegen.call.callees import CALLEES, callees_beside_apart
from graphc.codegen.call.locks import READER, WRITER
from graphc.codegen.call.objects import Lines, field
from graphc.codegen.call.poison import POISON_IR
from graphc.codegen.call.scalars import scalar_function
from graphc.dtypes import itemsize

RELEASE_GIL_ABOVE = 50_000
"""Elements of all operands, outputs and temps above which the GIL is released: some 10 µs of work. Giving it up and
taking it again costs 0.1 µs alone, and a switch of threads when contended."""


def entry_ir(signature: Signature, whole: bool = True, poison: bool = False) -> str:
    """The LLVM module of the entry point for this signature, as text. It declares `sizes` and `kernel`, and `layout`
    tells what it assumes.

    whole=False: it declares as well what `apart_ir` exports, which is compiled once for all entry points.
    poison: before the kernel runs it fills the memory of all results and temps with a pattern.
    """
    scalars = sorted({array.dtype for array in signature.inputs if not array.shape})
    updated = {output.replaces for output in signature.outputs}
    modes = [WRITER if array.written or n in updated else READER for n, array in enumerate(signature.shared)]
    tables = {"rooms": _rooms(signature), "outputs": _outputs(signature), "modes": modes}
    return "\n".join(
        [
            f"@layout = constant i64 {layout_tag()}",
            *(
                f"@{name} = private constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]"
                for name, words in tables.items()
            ),
            f"declare i64 @sizes({', '.join(['ptr'] * len(_operands(signature)) + _dim_types(signature) + ['ptr'])})",
            f"declare i64 @kernel({', '.join(['ptr'] * _pointer_count(signature) + _dim_types(signature))})",
            CALLEES if whole else callees_beside_apart(),
            *([POISON_IR] if poison else []),
            *(scalar_function(dtype) for dtype in scalars),
            "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {",
            *_blocks(signature, poison),
            "}",
            VECTORCALL,
            "!0 = !{}",
            "",
        ]
    )


VECTORCALL = f"""
declare void @bad_call()

; The highest bit of the count says that the caller lends the word before the arguments. The garbage collector may have
; emptied the slot.
define ptr @vectorcall(ptr %callable, ptr %args, i64 %flagged, ptr %kwnames) {{
  %self.at = getelementptr i8, ptr %callable, i64 {CALLABLE_BINDING}
  %self = load ptr, ptr %self.at
  %nargs = and i64 %flagged, {2**63 - 1}
  %cleared = icmp eq ptr %self, null
  br i1 %cleared, label %bad, label %good
good:
  %result = tail call ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
bad:
  call void @bad_call()
  ret ptr null
}}
"""


def _operands(signature: Signature) -> tuple[Array, ...]:
    return signature.inputs + signature.shared


def _pointer_count(signature: Signature) -> int:
    return len(_operands(signature)) + len(signature.outputs) + len(signature.temps)


def _dim_types(signature: Signature) -> list[str]:
    return ["i64"] * len(signature.sizes)


def _reads_shared(signature: Signature) -> bool:
    """Whether sizes follow from elements of shared variables."""
    return any(number >= len(signature.inputs) for number in signature.reads)


def _rooms(signature: Signature) -> list[int]:
    """For all that outputs and temps hold: its rank, its itemsize, the number of its output or temp, counted on."""
    held = [((output.dtype, len(output.shape)),) for output in signature.outputs]
    rooms = [*enumerate(held), *enumerate((temp.held for temp in signature.temps), len(held))]
    return [word for number, each in rooms for dtype, rank in each for word in (rank, itemsize(dtype), number)]


def _outputs(signature: Signature) -> list[int]:
    """For each output: the offset of its descriptor in the record, its rank, its place among the results or -1."""
    places = {number: place for place, (role, number) in enumerate(signature.results) if role == "output"}
    return [
        word
        for number, output in enumerate(signature.outputs)
        for word in (8 * RECORD.index(f"{output.dtype} descriptor"), len(output.shape), places.get(number, -1))
    ]


def _blocks(signature: Signature, poison: bool) -> Lines:
    """The blocks in order; in each, %next stands for the label of the one that follows."""
    blocks = [
        ("start", _start(signature)),
        ("arrange", _arrange(signature)),
        *((f"operand{number}", _operand(signature, number)) for number in range(len(_operands(signature)))),
        ("alias", _alias(_operands(signature))),
        ("sizes", _sizes(signature, poison)),
        ("extents", _extents(signature)),
        ("given", _given(signature)),
        ("claim", _claim(signature)),
        ("outputs", _make(signature)),
        ("arena", _arena(signature)),
        ("enter", _enter(signature)),
        ("run", _run(signature, poison)),
        ("deliver", _deliver(signature)),
        ("leave", _leave(signature)),
    ]
    labels = [label for label, _ in blocks]
    for (label, lines), following in zip(blocks, [*labels[1:], "return"], strict=True):
        yield f"{label}:"
        for line in lines:
            yield line if line.endswith(":") else "  " + line.replace("%next", f"%{following}")
    yield from _exits(signature)


def _start(signature: Signature) -> Lines:
    yield f"%dims = alloca [{signature.extents} x i64], align 8"
    yield f"%lengths = alloca [{len(signature.outputs) + len(signature.temps)} x i64], align 8"
    yield f"%objects = alloca [{len(signature.inputs) + 1} x ptr], align 8"
    for table in ("begins", "ends"):
        yield f"%{table} = alloca [{len(_operands(signature))} x i64], align 8"
    yield f"%scalars = alloca [{len(signature.inputs)} x i64], align 8"
    yield f"%list = alloca [{len(_operands(signature)) + len(signature.outputs) + 1} x ptr], align 8"
    yield "store i64 0, ptr %list"
    yield f"%places = alloca [{len(signature.inputs)} x ptr], align 8"
    yield f"%given.ranges = alloca [{2 * len(_operands(signature) + signature.outputs) + 1} x i64], align 8"
    yield "%arena.bytes = alloca i64"
    yield "%code.at = alloca i64"
    yield "store i64 0, ptr %code.at"
    yield "%instead = alloca i64"
    yield f"store i64 {8 * RECORD.index('refuse')}, ptr %instead"
    if signature.shared:
        if _reads_shared(signature):
            yield f"%dims.now = alloca [{signature.extents} x i64], align 8"
        yield f"%values = alloca [{len(signature.shared)} x ptr], align 8"
        yield "%again = alloca i1"
        yield "store i1 false, ptr %again"
        yield "%marked = alloca i1"
        yield "store i1 false, ptr %marked"
    for variable in ("result", "held.arena", "owner", "out", "given"):
        yield f"%{variable}.at = alloca ptr"
        yield f"store ptr null, ptr %{variable}.at"
    yield f"%record.owner.at = getelementptr i8, ptr %self, i64 {TUPLE_ITEMS}"
    yield "%record.owner = load ptr, ptr %record.owner.at"
    yield f"%record.at = getelementptr i8, ptr %record.owner, i64 {ARRAY_DATA}"
    yield "%record = load ptr, ptr %record.at"
    yield from field("ndarray", "ndarray")
    if signature.returns == "list":  # before the cells are read: a collection may run, and other threads meanwhile
        yield from field("new.list", "PyList_New")
        yield f"%results = call ptr %new.list(i64 {len(signature.results)})"
        yield "store ptr %results, ptr %result.at"
        yield "%no.results = icmp eq ptr %results, null"
        yield "br i1 %no.results, label %return, label %count"
        yield "count:"
    yield "%positional = icmp eq ptr %kwnames, null"
    yield f"%counted = icmp eq i64 %nargs, {len(signature.inputs)}"
    yield "%callable = and i1 %positional, %counted"
    yield f"br i1 %callable, label %{'operand0' if _operands(signature) else 'alias'}, label %next"


def _arrange(signature: Signature) -> Lines:
    count, names = len(signature.inputs), 8 * (len(RECORD) + len(signature.shared))
    given = "ptr %record, ptr %args, i64 %nargs, ptr %kwnames, ptr %places, ptr %out.at"
    yield f"%arranged = call i1 @arrange({given}, i64 {count}, i64 {names})"
    yield "br i1 %arranged, label %next, label %refuse"


def _cell(variable: str, shared: int) -> Lines:
    yield f"%{variable} = call ptr @field(ptr %record, i64 {8 * (len(RECORD) + shared)})"


def _operand(signature: Signature, number: int) -> Lines:
    """Input or shared variable `number`: leaves %x<number>, its .data and the .d<axis> of each axis."""
    array, name = _operands(signature)[number], f"x{number}"
    shared = number - len(signature.inputs)
    if number == 0:
        start = "count" if signature.returns == "list" else "start"
        yield f"%arguments = phi ptr [%args, %{start}], [%places, %arrange]"
    if shared < 0:
        yield f"%{name}.at = getelementptr ptr, ptr %arguments, i64 {number}"
        yield f"%{name}{'.given' if array.shape else ''} = load ptr, ptr %{name}.at"
        if not array.shape:
            yield from _kept(number)
            yield from _scalar(number, array.dtype)
            return
    else:
        yield from _cell(f"{name}.cell", shared)
        yield f"%{name} = call ptr @content(ptr %{name}.cell)"
        yield f"%{name}.empty = icmp eq ptr %{name}, null"
        yield f"br i1 %{name}.empty, label %refuse, label %{name}.full"
        yield f"{name}.full:"
    flags = CONTIGUOUS | ALIGNED | (WRITEABLE if array.written else 0)
    yield from field(f"{name}.descriptor", f"{array.dtype} descriptor")
    own = f"ptr %ndarray, ptr %{name}.descriptor, i32 {len(array.shape)}"
    if shared < 0:
        yield f"%{name}.fits = call i1 @fits(ptr %{name}.given, {own}, i32 {flags})"
        yield f"br i1 %{name}.fits, label %{name}.measure, label %{name}.copy"
        yield f"{name}.copy:"
        given = f"ptr %{name}.given, ptr %record, {own}, i64 {itemsize(array.dtype)}, ptr %list"
        yield f"%{name}.adopted = call ptr @adopt({given})"
        yield f"%{name}.refused = icmp eq ptr %{name}.adopted, null"
        yield f"br i1 %{name}.refused, label %refuse, label %{name}.measure"
        yield f"{name}.measure:"
        yield f"%{name} = phi ptr [%{name}.given, %operand{number}], [%{name}.adopted, %{name}.copy]"
        yield from _kept(number)
    else:
        yield f"%{name}.fits = call i1 @fits(ptr %{name}, {own}, i32 {flags})"
        yield f"br i1 %{name}.fits, label %{name}.measure, label %refuse"
        yield f"{name}.measure:"
    yield f"%{name}.data.at = getelementptr i8, ptr %{name}, i64 {ARRAY_DATA}"
    yield f"%{name}.data = load ptr, ptr %{name}.data.at"
    yield from _measure(name, array.shape)


def _kept(number: int) -> Lines:
    """Keeps an input for `fail`."""
    yield f"%x{number}.kept = getelementptr ptr, ptr %objects, i64 {number + 1}"
    yield f"store ptr %x{number}, ptr %x{number}.kept"


def _measure(name: str, shape: Sequence[int | None]) -> Lines:
    """Loads the sizes of an array and compares those that are known."""
    if shape:
        yield f"%{name}.shape.at = getelementptr i8, ptr %{name}, i64 {ARRAY_SHAPE}"
        yield f"%{name}.shape = load ptr, ptr %{name}.shape.at"
    right = "true"
    for axis, size in enumerate(shape):
        yield f"%{name}.d{axis}.at = getelementptr i64, ptr %{name}.shape, i64 {axis}"
        yield f"%{name}.d{axis} = load i64, ptr %{name}.d{axis}.at"
        if size is not None:
            yield f"%{name}.is{axis} = icmp eq i64 %{name}.d{axis}, {size}"
            yield f"%{name}.right{axis} = and i1 {right}, %{name}.is{axis}"
            right = f"%{name}.right{axis}"
    yield f"br i1 {right}, label %next, label %refuse"


def _scalar(number: int, dtype: str) -> Lines:
    name = f"x{number}"
    yield f"%{name}.room = getelementptr i64, ptr %scalars, i64 {number}"
    yield f"%{name}.data = call ptr @scalar_{dtype}(ptr %{name}, ptr %record, ptr %ndarray, ptr %{name}.room)"
    yield f"%{name}.refused = icmp eq ptr %{name}.data, null"
    yield f"br i1 %{name}.refused, label %refuse, label %next"


def _alias(operands: Sequence[Array]) -> Lines:
    """Counts the elements of each operand, and compares the byte ranges of written buffers with all others. They stand
    in a table, the written ones first: one comparison a pair would be code quadratic in the number of updates."""
    for number, array in enumerate(operands):
        yield from _count(f"x{number}", [f"%x{number}.d{axis}" for axis in range(len(array.shape))])
    written = [number for number, array in enumerate(operands) if array.written]
    if not written:
        yield "br label %next"
        return
    order = [*written, *(number for number, array in enumerate(operands) if not array.written)]
    for place, number in enumerate(order):
        yield f"%x{number}.bytes = mul i64 %x{number}.count, {itemsize(operands[number].dtype)}"
        yield f"%x{number}.begin = ptrtoint ptr %x{number}.data to i64"
        yield f"%x{number}.end = add i64 %x{number}.begin, %x{number}.bytes"
        for table in ("begin", "end"):
            yield f"%x{number}.{table}.at = getelementptr i64, ptr %{table}s, i64 {place}"
            yield f"store i64 %x{number}.{table}, ptr %x{number}.{table}.at"
    yield f"%clash = call i1 @overlap(ptr %begins, ptr %ends, i64 {len(written)}, i64 {len(operands)})"
    yield "br i1 %clash, label %refuse, label %next"


def _count(name: str, sizes: Sequence[str]) -> Lines:
    """%<name>.count, the elements of an array that exists: the product cannot overflow."""
    product = "1"
    for axis, size in enumerate(sizes):
        yield f"%{name}.count{axis} = mul i64 {product}, {size}"
        product = f"%{name}.count{axis}"
    yield f"%{name}.count = add i64 {product}, 0"


def _dims(signature: Signature) -> list[str]:
    return [f"i64 %x{index}.d{axis}" for index, axis in signature.sizes]


def _sizes(signature: Signature, poison: bool) -> Lines:
    if poison:
        yield f"call void @poison(ptr %dims, i64 {8 * signature.extents})"
    pointers = [f"ptr %x{number}.data" for number in range(len(_operands(signature)))]
    yield f"%check = call i64 @sizes({', '.join([*pointers, *_dims(signature), 'ptr %dims'])})"
    yield "store i64 %check, ptr %code.at"
    yield "%disagree = icmp ne i64 %check, 0"
    yield "br i1 %disagree, label %failed, label %next"


def _extents(signature: Signature) -> Lines:
    """The bytes of the outputs and the offsets of the temps; %work, the elements of all."""
    work, bad = "0", "false"
    for number in range(len(_operands(signature))):
        yield f"%work.x{number} = add i64 {work}, %x{number}.count"
        work = f"%work.x{number}"
    rooms = len(_rooms(signature)) // 3
    if rooms:
        outputs = len(signature.outputs)
        buffers = f"ptr %lengths, i64 {outputs}, i64 {outputs + len(signature.temps)}"
        yield f"%placed = call {{i64, i64}} @place(ptr %dims, ptr @rooms, i64 {rooms}, {buffers})"
        yield "%arena.end = extractvalue {i64, i64} %placed, 0"
        yield "%elements = extractvalue {i64, i64} %placed, 1"
        yield f"%work.made = add i64 {work}, %elements"
        yield "store i64 %arena.end, ptr %arena.bytes"
        yield "%bad = icmp slt i64 %arena.end, 0"
        work, bad = "%work.made", "%bad"
    yield f"%work = add i64 {work}, 0"
    yield f"br i1 {bad}, label %absurd, label %next"


def _given(signature: Signature) -> Lines:
    """Arrays given as `out`, one or a tuple of arrays and None: %given is then where the first stands. Each must hold
    its output and share no memory with an operand, or another of them; of a result that is made in an input, only that
    will do."""
    results = signature.results
    yield "%out = load ptr, ptr %out.at"
    yield "%no.out = icmp eq ptr %out, null"
    if not results:
        yield "br i1 %no.out, label %next, label %refuse"
        return
    yield "br i1 %no.out, label %next, label %given.start"
    yield "given.start:"
    for number, array in enumerate(_operands(signature)):
        yield f"%given.span{number} = mul i64 %x{number}.count, {itemsize(array.dtype)}"
        yield f"%given.end{number} = getelementptr i8, ptr %x{number}.data, i64 %given.span{number}"
        yield f"%given.from{number} = getelementptr ptr, ptr %given.ranges, i64 {2 * number + 1}"
        yield f"store ptr %x{number}.data, ptr %given.from{number}"
        yield f"%given.to{number} = getelementptr ptr, ptr %given.ranges, i64 {2 * number + 2}"
        yield f"store ptr %given.end{number}, ptr %given.to{number}"
    yield f"store i64 {len(_operands(signature))}, ptr %given.ranges"
    yield from field("given.none", "none")
    if signature.returns == "list":
        yield from _given_tuple(len(results))
    else:
        yield "store ptr %out.at, ptr %given.at"
        yield "%out.nothing = icmp eq ptr %out, %given.none"
        yield "br i1 %out.nothing, label %refuse, label %given.items"
        yield "given.items:"
    yield "%given.first = load ptr, ptr %given.at"
    for place, (role, number) in enumerate(results):
        if role == "input":
            yield f"%given.item{place}.at = getelementptr ptr, ptr %given.first, i64 {place}"
            yield f"%given.item{place} = load ptr, ptr %given.item{place}.at"
            yield f"%given.left.out{place} = icmp eq ptr %given.item{place}, %given.none"
            yield f"%given.same{place} = icmp eq ptr %given.item{place}, %x{number}"
            yield f"%given.own{place} = or i1 %given.left.out{place}, %given.same{place}"
            yield f"br i1 %given.own{place}, label %given.after{place}, label %refuse"
            yield f"given.after{place}:"
    outputs = f"ptr @outputs, i64 {len(signature.outputs)}, ptr %dims, ptr %lengths"
    yield f"%given.suit = call i1 @suit(ptr %record, {outputs}, ptr %given.first, ptr %given.ranges)"
    yield "br i1 %given.suit, label %next, label %refuse"


def _given_tuple(count: int) -> Lines:
    """Refuses what is not a tuple of so many items."""
    yield f"%out.type.at = getelementptr i8, ptr %out, i64 {OBJECT_TYPE}"
    yield "%out.type = load ptr, ptr %out.type.at"
    yield from field("tuple", "tuple")
    yield "%is.tuple = icmp eq ptr %out.type, %tuple"
    yield "br i1 %is.tuple, label %given.tuple, label %refuse"
    yield "given.tuple:"
    yield f"%out.size.at = getelementptr i8, ptr %out, i64 {TUPLE_SIZE}"
    yield "%out.size = load i64, ptr %out.size.at"
    yield f"%out.counted = icmp eq i64 %out.size, {count}"
    yield "br i1 %out.counted, label %given.counted, label %refuse"
    yield "given.counted:"
    yield f"%out.items = getelementptr i8, ptr %out, i64 {TUPLE_ITEMS}"
    yield "store ptr %out.items, ptr %given.at"


def _claim(signature: Signature) -> Lines:
    """Keeps the shared arrays: while Python runs to find memory for a large result, others may set their cells."""
    yield "%copied = load i64, ptr %list"
    yield "%claimed.at = getelementptr ptr, ptr %list, i64 %copied"
    for shared in range(len(signature.shared)):
        number = len(signature.inputs) + shared
        yield f"call void @retain(ptr %x{number})"
        yield f"%x{number}.claim = getelementptr ptr, ptr %claimed.at, i64 {shared + 1}"
        yield f"store ptr %x{number}, ptr %x{number}.claim"
    yield f"%claimed = add i64 %copied, {len(signature.shared)}"
    if signature.shared:
        yield "store i64 %claimed, ptr %list"
    yield f"%made = getelementptr ptr, ptr %claimed.at, i64 {len(signature.shared) + 1}"
    yield "br label %next"


def _make(signature: Signature) -> Lines:
    """The arrays of the outputs, new or given: %made is where they stand in the list of what the call holds."""
    if not signature.outputs:
        yield "br label %next"
        return
    outputs = f"ptr @outputs, i64 {len(signature.outputs)}, ptr %dims, ptr %lengths"
    yield "%given.now = load ptr, ptr %given.at"
    yield f"%all.made = call i1 @make(ptr %record, {outputs}, ptr %given.now, ptr %list)"
    yield "br i1 %all.made, label %next, label %leave.empty"


def _made(variable: str, number: int) -> Lines:
    yield f"%{variable}.at = getelementptr ptr, ptr %made, i64 {number}"
    yield f"%{variable} = load ptr, ptr %{variable}.at"


def _arena(signature: Signature) -> Lines:
    """The temps' buffer: the kept one, or one of its own for a call that finds another thread using that."""
    if not signature.temps:
        yield "br label %next"
        return
    yield from field("busy.at", "busy")
    yield "%busy = load i64, ptr %busy.at"
    yield "%idle = icmp eq i64 %busy, 0"
    yield "br i1 %idle, label %arena.kept, label %arena.private"
    yield "arena.kept:"
    yield "store i64 1, ptr %busy.at"
    yield "store ptr %busy.at, ptr %owner.at"
    yield "%kept = call ptr @grow(ptr %record, ptr %arena.bytes)"
    yield "br label %arena.got"
    yield "arena.private:"
    uint8 = 8 * RECORD.index("uint8 descriptor")
    yield f"%private = call ptr @empty(ptr %record, i64 {uint8}, i32 1, ptr %arena.bytes)"
    yield "br label %arena.got"
    yield "arena.got:"
    yield "%arena.array = phi ptr [%kept, %arena.kept], [%private, %arena.private]"
    yield "store ptr %arena.array, ptr %held.arena.at"
    yield "%no.arena = icmp eq ptr %arena.array, null"
    yield "br i1 %no.arena, label %leave.empty, label %arena.place"
    yield "arena.place:"
    yield f"%arena.data.at = getelementptr i8, ptr %arena.array, i64 {ARRAY_DATA}"
    yield "%arena.data = load i64, ptr %arena.data.at"
    yield f"%arena.above = add i64 %arena.data, {ALIGNMENT - 1}"
    yield f"%arena.first = and i64 %arena.above, {-ALIGNMENT}"
    yield f"%arena.base = sub i64 %arena.first, {ALIGNMENT}"
    yield "%arena.start = inttoptr i64 %arena.base to ptr"
    yield "br label %next"


def _poison(signature: Signature) -> Lines:
    """Fills all that the kernel is to write before it is read."""
    for number in range(len(signature.outputs)):
        name = f"poison.y{number}"
        yield from _made(name, number)
        yield f"%{name}.data.at = getelementptr i8, ptr %{name}, i64 {ARRAY_DATA}"
        yield f"%{name}.data = load ptr, ptr %{name}.data.at"
        yield f"%{name}.bytes.at = getelementptr i64, ptr %lengths, i64 {number}"
        yield f"%{name}.bytes = load i64, ptr %{name}.bytes.at"
        yield f"call void @poison(ptr %{name}.data, i64 %{name}.bytes)"
    if signature.temps:
        yield f"%temps.first = getelementptr i8, ptr %arena.start, i64 {ALIGNMENT}"
        yield f"%temps.bytes = sub i64 %arena.end, {ALIGNMENT}"
        yield "call void @poison(ptr %temps.first, i64 %temps.bytes)"


def _locked(signature: Signature) -> str:
    """What `enter` and `depart` are told of the locks: where their words are; before it, where the cells are."""
    return f"i64 {8 * (len(RECORD) + len(signature.shared) + 2 * len(signature.inputs))}"


def _enter(signature: Signature) -> Lines:
    """Looks whether a shared variable is in use, where any is; marks them where the GIL will be given up."""
    yield f"%heavy = icmp ugt i64 %work, {RELEASE_GIL_ABOVE}"
    count = len(signature.shared)
    if not count:
        yield "br label %next"
        return
    yield from field("activity", "activity")
    yield "%alone = icmp eq ptr %activity, null"
    yield "br i1 %alone, label %next, label %enter.look"
    yield "enter.look:"
    yield "%calls.at = getelementptr i64, ptr %activity, i64 1"
    yield "%native.calls = load i64, ptr %activity"
    yield "%python.calls = load i64, ptr %calls.at"
    yield "%calls = or i64 %native.calls, %python.calls"
    yield "%any = icmp ne i64 %calls, 0"
    yield "%careful = or i1 %any, %heavy"
    yield "br i1 %careful, label %enter.ask, label %next"
    yield "enter.ask:"
    for number in range(count):
        yield f"%value{number}.at = getelementptr ptr, ptr %values, i64 {number}"
        yield f"store ptr %x{len(signature.inputs) + number}, ptr %value{number}.at"
    table = f"{_locked(signature)}, i64 {8 * len(RECORD)}, ptr %values, ptr @modes, i64 {count}"
    yield f"%entered = call i1 @enter(ptr %record, {table}, i1 %heavy)"
    yield "br i1 %entered, label %enter.mark, label %enter.wait"
    yield "enter.wait:"
    yield "store i1 true, ptr %again"
    yield "br label %leave.empty"
    yield "enter.mark:"
    yield "store i1 %heavy, ptr %marked"
    if not _reads_shared(signature):
        yield "br label %next"
        return
    # Sizes follow from elements that another thread may have changed while memory was found for a large result.
    pointers = [f"ptr %x{number}.data" for number in range(len(_operands(signature)))]
    yield f"%check.now = call i64 @sizes({', '.join([*pointers, *_dims(signature), 'ptr %dims.now'])})"
    yield "%differ.start = icmp ne i64 %check.now, 0"
    differ = "%differ.start"
    for slot in range(signature.extents):
        for table in ("dims", "dims.now"):
            yield f"%{table}.at{slot} = getelementptr i64, ptr %{table}, i64 {slot}"
            yield f"%{table}.{slot} = load i64, ptr %{table}.at{slot}"
        yield f"%differs{slot} = icmp ne i64 %dims.{slot}, %dims.now.{slot}"
        yield f"%differ{slot} = or i1 {differ}, %differs{slot}"
        differ = f"%differ{slot}"
    yield f"br i1 {differ}, label %enter.wait, label %next"


def _run(signature: Signature, poison: bool) -> Lines:
    if poison:
        yield from _poison(signature)
    yield "br i1 %heavy, label %run.release, label %run.kernel"
    yield "run.release:"
    yield from field("save", "PyEval_SaveThread")
    yield "%saved = call ptr %save()"
    yield "br label %run.kernel"
    yield "run.kernel:"
    yield "%thread = phi ptr [null, %run], [%saved, %run.release]"
    for number in range(len(signature.outputs)):
        yield from _made(f"run.y{number}", number)
        yield f"%y{number}.data.at = getelementptr i8, ptr %run.y{number}, i64 {ARRAY_DATA}"
        yield f"%y{number}.data = load ptr, ptr %y{number}.data.at"
    for number in range(len(signature.temps)):
        yield f"%t{number}.at = getelementptr i64, ptr %lengths, i64 {len(signature.outputs) + number}"
        yield f"%t{number}.offset = load i64, ptr %t{number}.at"
        yield f"%t{number}.data = getelementptr i8, ptr %arena.start, i64 %t{number}.offset"
    groups = (("x", _operands(signature)), ("y", signature.outputs), ("t", signature.temps))
    pointers = [f"ptr %{letter}{number}.data" for letter, group in groups for number in range(len(group))]
    yield f"%code = call i64 @kernel({', '.join([*pointers, *_dims(signature)])}) noinline"
    yield "store i64 %code, ptr %code.at"
    yield "%held = icmp eq ptr %thread, null"
    yield "br i1 %held, label %run.check, label %run.acquire"
    yield "run.acquire:"
    yield from field("restore", "PyEval_RestoreThread")
    yield "call void %restore(ptr %thread)"
    yield "br label %run.check"
    yield "run.check:"
    yield "%wrong = icmp ne i64 %code, 0"
    yield "br i1 %wrong, label %leave.empty, label %next"


def _deliver(signature: Signature) -> Lines:
    """Moves the outputs on: one that replaces leaves the old value in its place, which is released when all are in
    their cells."""
    if signature.returns == "list":
        yield f"%items.at = getelementptr i8, ptr %results, i64 {LIST_ITEMS}"
        yield "%items = load ptr, ptr %items.at"
    elif signature.returns == "none":
        yield from field("none", "none")
        yield "call void @retain(ptr %none)"
        yield "store ptr %none, ptr %result.at"
    replaced = [number for number, output in enumerate(signature.outputs) if output.replaces is not None]
    for number, output in enumerate(signature.outputs):
        if output.replaces is not None:
            yield from _cell(f"y{number}.cell", output.replaces)
            yield from _made(f"y{number}", number)
            yield f"%y{number}.old = call ptr @install(ptr %y{number}.cell, ptr %y{number})"
            yield f"store ptr %y{number}.old, ptr %y{number}.at"
    for place, (role, result) in enumerate(signature.results):
        array = f"%x{result}" if role == "input" else f"%y{result}"
        if role == "input":
            yield f"call void @retain(ptr {array})"
        else:
            yield from _made(f"y{result}", result)
            if replaced:
                yield f"store ptr null, ptr %y{result}.at"
        if signature.returns == "list":
            yield f"%item{place}.at = getelementptr ptr, ptr %items, i64 {place}"
            yield f"store ptr {array}, ptr %item{place}.at"
        else:
            yield f"store ptr {array}, ptr %result.at"
    if not replaced:
        yield "store i64 %claimed, ptr %list"
    yield "br label %next"


def _leave(signature: Signature) -> Lines:
    """Gives back the arena; entered at leave.empty where there is no result."""
    yield "br label %leave.all"
    yield "leave.empty:"
    yield "%unused = load ptr, ptr %result.at"
    yield "store ptr null, ptr %result.at"
    yield "call void @release(ptr %unused, ptr %record)"
    yield "br label %leave.all"
    yield "leave.all:"
    if signature.shared:
        yield "%was.marked = load i1, ptr %marked"
        yield "br i1 %was.marked, label %leave.depart, label %leave.memory"
        yield "leave.depart:"
        table = f"{_locked(signature)}, ptr @modes, i64 {len(signature.shared)}"
        yield f"%departed = call i1 @depart(ptr %record, {table})"
        yield "br i1 %departed, label %leave.memory, label %leave.broken"
        yield "leave.broken:"
        yield "%interrupted = load ptr, ptr %result.at"
        yield "store ptr null, ptr %result.at"
        yield "store i64 0, ptr %code.at"
        yield "store i1 false, ptr %again"
        yield "call void @release(ptr %interrupted, ptr %record)"
        yield "br label %leave.memory"
        yield "leave.memory:"
    if signature.temps:
        yield "%arena.held = load ptr, ptr %held.arena.at"
        yield "call void @release(ptr %arena.held, ptr %record)"
        yield "%owner = load ptr, ptr %owner.at"
        yield "%other = icmp eq ptr %owner, null"
        yield "br i1 %other, label %leave.operands, label %leave.idle"
        yield "leave.idle:"
        yield "store i64 0, ptr %owner"
        yield "br label %leave.operands"
        yield "leave.operands:"
    if signature.shared:
        yield "%in.use = load i1, ptr %again"
        yield "br i1 %in.use, label %contended, label %leave.look"
        yield "leave.look:"
    yield "%outcome = load i64, ptr %code.at"
    yield "%unsound = icmp ne i64 %outcome, 0"
    yield "br i1 %unsound, label %failed, label %next"


def _exits(signature: Signature) -> Lines:
    yield from (
        "return:",
        "  %list.left = load i64, ptr %list",
        "  %list.empty = icmp eq i64 %list.left, 0",
        "  br i1 %list.empty, label %return.all, label %return.left",
        "return.left:",
        "  call void @discard(ptr %list, ptr %record)",
        "  br label %return.all",
        "return.all:",
        "  %result = load ptr, ptr %result.at",
        "  ret ptr %result",
        "contended:",
        f"  store i64 {8 * RECORD.index('contended')}, ptr %instead",
        "  br label %refuse",
        "refuse:",
        "  call void @discard(ptr %list, ptr %record)",
        "  %refused.result = load ptr, ptr %result.at",
        "  call void @release(ptr %refused.result, ptr %record)",
        "  %instead.offset = load i64, ptr %instead",
        "  %refusal = call ptr @field(ptr %record, i64 %instead.offset)",
        f"  %refuse.call = call ptr @field(ptr %record, i64 {8 * RECORD.index('PyObject_Vectorcall')})",
        "  %refused = call ptr %refuse.call(ptr %refusal, ptr %args, i64 %nargs, ptr %kwnames)",
        "  ret ptr %refused",
        "absurd:",
        "  store i64 -1, ptr %code.at",
        "  br label %failed",
        "failed:",
        "  %failed.result = load ptr, ptr %result.at",
        "  call void @release(ptr %failed.result, ptr %record)",
        "  %number = load i64, ptr %code.at",
        f"  %make.number = call ptr @field(ptr %record, i64 {8 * RECORD.index('PyLong_FromLongLong')})",
        "  %number.object = call ptr %make.number(i64 %number)",
        "  %numberless = icmp eq ptr %number.object, null",
        "  br i1 %numberless, label %nothing, label %complain",
        "nothing:",
        "  call void @discard(ptr %list, ptr %record)",
        "  ret ptr null",
        "complain:",
        "  store ptr %number.object, ptr %objects",
        f"  %failure = call ptr @field(ptr %record, i64 {8 * RECORD.index('fail')})",
        f"  %fail.call = call ptr @field(ptr %record, i64 {8 * RECORD.index('PyObject_Vectorcall')})",
        f"  %answer = call ptr %fail.call(ptr %failure, ptr %objects, i64 {len(signature.inputs) + 1}, ptr null)",
        "  call void @release(ptr %number.object, ptr %record)",
        "  call void @discard(ptr %list, ptr %record)",
        "  ret ptr %answer",
    )
