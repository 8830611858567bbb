"""The native entry point of a compiled graph: LLVM IR for a builtin function that calls `sizes` and `kernel`.

In: a `Signature`. Out: the text of an LLVM module that defines

    PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)

and `vectorcall`, the same for a callable that has `self` in a slot. It holds no address of a process: the types,
descriptors and functions of Python and NumPy stand in the record behind `self` (layout.py).

A call is the methods of `Call` in order. Each goes on to the next, or to an exit:

    method              succeeds where                                          exit otherwise
    begin, sort_arguments      each input has one argument or a default                refuse: refuse(*args, **kwargs)
    take                arguments and shared values have their types            refuse
    compare             no written buffer overlaps another operand              refuse
    call sizes          the sizes agree                                         failed: fail(code, *args)
    measure             no size is negative or absurdly large                   failed: fail(ABSURD, *args)
    check_out           arrays given for results can hold them                  refuse
    hold_shared, make, allocate   memory is there                               empty: the exception, or
                                                                                fail(NO_MEMORY, *args)
    enter               no other thread uses the variables, no safepoint        empty, then contended(*args…)
    run                 the kernel returns 0; it runs without the GIL where     empty, then failed; null where the
                        the work is large                                       kernel leaves an exception
    deliver             (new values go to their cells, other outputs are returned)
    leave               (references, locks and the arena are given back)

For f = function([x], x + 1) and an array of float64: sort_arguments copies nothing, take finds descriptor, rank and
flags as declared, sizes writes the length of the result, make allocates it, run computes, deliver returns it.

A call holds a list of references on the stack. The exits need few variables besides: with one for each output, n
variables would cross n branches, and LLVM would take n * n time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from graphc.arrays.dtypes import DTYPES, itemsize
from graphc.codegen.call import layout, objects
from graphc.codegen.call.arguments import (
    are_writable_results,
    convert_argument,
    has_declared_type,
    release_all,
    scalar_function,
    sort_arguments,
)
from graphc.codegen.call.callback import PATIENT
from graphc.codegen.call.exits import (
    end_failed,
    given_results,
    go_elsewhere,
    interrupted,
    new_results,
    out_of_memory,
    stopped,
)
from graphc.codegen.call.locks import READER, WRITER
from graphc.codegen.call.recipes_ir import RAISED, REFUSED, put_together, take_apart
from graphc.codegen.call.signature import ALIGNMENT, Array, Signature, extents_of
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external, function, module_text, poison, table
from graphc.codegen.llvm.typed import I32, I64, NULL, Bool, Ptr
from graphc.startup.record import record

RELEASE_GIL_ABOVE = 50_000
"""Elements of all operands, outputs and temps above which the GIL is released: some 10 µs of work. Giving it up and
taking it again costs 0.1 µs alone, and a switch of threads when contended."""
WORK_OF_ELEMENT = 8
"""Work of loops of steps that counts as one of these elements."""

save_thread = objects.Imported("PyEval_SaveThread", Ptr)
restore_thread = objects.Imported("PyEval_RestoreThread", objects.NOTHING, Ptr)
bad_call: Function[[], None] = external("bad_call", None)

OUT_OF_LINE = (
    objects.release,
    has_declared_type,
    scalar_function("float64"),
    new_results,
    given_results,
    out_of_memory,
    go_elsewhere,
    end_failed,
    objects.overlap,
    objects.measure_memory,
    objects.make,
    objects.grow,
    sort_arguments,
    take_apart,
    put_together,
    convert_argument,
    release_all,
    are_writable_results,
    objects.cover,
    objects.enter,
    objects.depart,
)
"""Functions that entry points call, compiled once for a machine and not with each entry point. Of those that take
inputs without axes only that for float64 is among them: a first start waits for all."""


def out_of_line_ir() -> str:
    """Return the text of the module that exports the functions of OUT_OF_LINE."""
    return module_text(OUT_OF_LINE, exports=[function.name for function in OUT_OF_LINE])


def entry_ir(signature: Signature, whole: bool = True, poison: bool = False) -> str:
    """Return the text of the LLVM module of the entry point for this signature. It declares `sizes` and `kernel`; its
    constant `layout` is the `layout_tag` that it was written for.

    whole: define the functions of OUT_OF_LINE in it; False declares them. poison: fill the memory of all results and
    temps with a pattern before the kernel runs.
    """
    declares = [] if whole else [function.name for function in OUT_OF_LINE]
    data = [f"@layout = constant i64 {layout.layout_tag()}"]
    return module_text(_entry_points(signature, poison), data, declares=declares)


def _entry_points(signature: Signature, poison: bool) -> list[Function[..., Any]]:
    @function(is_internal=False)
    def entry(code: Code, self: Ptr, args: Ptr, nargs: I64, kwnames: Ptr) -> Ptr:
        return Call(code, signature, poison, self, args, nargs, kwnames).write()

    @function(is_internal=False)
    def vectorcall(code: Code, callable: Ptr, args: Ptr, flagged: I64, kwnames: Ptr) -> Ptr:
        """The entry point by the vectorcall protocol. The highest bit of the count is a flag for the word before the
        arguments. The slot of the binding is null where the garbage collector has cleared it."""
        self = callable.get(layout.CALLABLE_BINDING)
        with code.when(self == NULL):
            bad_call(code)
            code.ret(NULL)
        return entry(code, self, args, flagged & (2**63 - 1), kwnames)

    return [entry, vectorcall, *((interrupted, stopped) if signature.has_safepoints else ())]


def _modes(signature: Signature) -> list[int]:
    """The mark that a call sets on each shared variable (locks.py)."""
    updated = {output.replaces for output in signature.outputs}
    return [WRITER if array.written or n in updated else READER for n, array in enumerate(signature.shared)]


def _outputs(signature: Signature) -> list[int]:
    """For each output the offset of its descriptor in the record, its rank, its position among the results or -1."""
    places = {number: place for place, (role, number) in enumerate(signature.results) if role == "output"}
    return [
        word
        for number, output in enumerate(signature.outputs)
        for word in (objects.OFFSETS[f"{output.dtype} descriptor"], len(output.shape), places.get(number, -1))
    ]


@record()
class Operand:
    """An input or shared variable in a call: its object, the address of its elements, its sizes, the number of its
    elements (`count`) and of its bytes (`length`)."""

    object: Ptr
    data: Ptr
    dims: Sequence[I64]
    count: I64 | int
    length: I64 | int


class Call:
    """The body of an entry point, as it is written. On the stack of a call are: `objects`, the arguments for `fail`;
    `references`, their number and the references that the call holds; `scalars`, converted inputs of rank 0; `dims`,
    the numbers that `sizes` writes; `lengths`, the bytes of the outputs, then the offsets of the temps."""

    def __init__(
        self, code: Code, signature: Signature, poison: bool, self_: Ptr, args: Ptr, nargs: I64, kwnames: Ptr
    ) -> None:
        self.code = code
        self.signature = signature
        self.poison = poison
        self.args, self.nargs, self.kwnames = args, nargs, kwnames
        inputs, outputs = len(signature.inputs), len(signature.outputs)
        self.known = signature.inputs + signature.shared
        self.dims = code.local(I64, signature.extents)
        self.lengths = code.local(I64, outputs + len(signature.temps))
        self.objects = code.local(Ptr, inputs + 1)
        self.scalars = code.local(I64, inputs)
        self.references = code.local(Ptr, len(self.known) + inputs + outputs + 1)
        self.references.store(I64.of(0))
        self.out = code.local(Ptr)
        self.out.store(NULL)
        self.arena_length = code.local(I64)
        self.status = code.variable(I64.of(0))
        self.instead = code.variable(I64.of(objects.OFFSETS["refuse"]))
        self.result, self.arena, self.owner = (code.variable(NULL) for _ in range(3))
        self.given = code.variable(NULL)
        """The address of the arrays given for results; null without `out=`."""
        self.is_marked, self.is_contended = (code.variable(Bool.of(False)) for _ in range(2))
        self.refuse, self.failed, self.empty, self.done = map(code.label, ("refuse", "failed", "empty", "done"))
        self.record = self_.at(layout.TUPLE_ITEMS).load(Ptr).get(layout.ARRAY_DATA)
        self.ndarray = objects.word(self.record, "ndarray")
        self.recipe = objects.word(self.record, "results")
        self.class_ = code.local(Ptr)
        """Where the class of the results is kept."""
        self.class_.store(objects.word(self.record, "made"))

    def write(self) -> Ptr:
        """Write the whole call; return the result of a call that no exit has left."""
        code = self.code
        self.begin()
        arguments = self.sort_arguments()
        self.operands = [self.take(number, arguments) for number in range(len(self.known))]
        self.sizes = [self.operands[index].dims[axis] for index, axis in self.signature.sizes]
        self.compare()
        if self.poison:
            poison(code, self.dims, I64.of(8 * self.signature.extents))
        self.status.value = self.call_sizes(self.dims)
        self.failed.when(self.status.value != 0)
        work = self.measure()
        self.check_out()
        self.hold_shared()
        self.make()
        temps = self.allocate()
        is_heavy = Bool.of(False) if isinstance(work, int) else work.above(RELEASE_GIL_ABOVE)
        self.enter(is_heavy)
        self.run(is_heavy, temps)
        self.deliver()
        self.leave()
        self.write_exits()
        return self.result.value

    def begin(self) -> None:
        """Make the list or tuple of results before the cells are read: a garbage collection may run, and switch
        threads."""
        if self.signature.returns == "list":
            with self.code.when(self.recipe == NULL):
                self.result.value = new_results(self.code, self.record, I64.of(len(self.signature.results)))
                self.done.when(self.result.value == NULL)

    def returns_tuple(self) -> Bool:
        return objects.word(self.record, "tuples") != NULL

    def sort_arguments(self) -> Ptr:
        """Return the address of the arguments in the order of the inputs."""
        code, count = self.code, len(self.signature.inputs)
        places = code.local(Ptr, count)
        arguments = code.variable(self.args)
        is_direct = (self.kwnames == NULL) & (self.nargs == count)
        has_recipe = objects.word(self.record, "arguments") != NULL
        with code.when(has_recipe):
            status = take_apart(code, self.record, self.args, self.nargs, self.kwnames, places, self.references)
            self.refuse.when(status == REFUSED)
            with code.when(status == RAISED):
                self.drop_result()
                self.done.go()
            arguments.value = places
        with code.when(~(is_direct | has_recipe)):
            names = 8 * (len(layout.RECORD) + len(self.signature.shared))
            call = (self.record, self.args, self.nargs, self.kwnames)
            self.refuse.unless(sort_arguments(code, *call, places, self.out, I64.of(count), I64.of(names)))
            arguments.value = places
        return arguments.value

    def take(self, number: int, arguments: Ptr) -> Operand:
        """Check, or convert, input or shared variable `number`; refuse where it is of another type."""
        array, shared = self.known[number], number - len(self.signature.inputs)
        if shared >= 0:
            object = objects.content(self.code, self.cell(shared))
            self.refuse.when(object == NULL)
        else:
            object = arguments.at(number, Ptr).load(Ptr)
            if not array.shape:
                return self.take_scalar(number, object)
        flags = layout.CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE if array.written else 0)
        descriptor, rank = objects.word(self.record, f"{array.dtype} descriptor"), I32.of(len(array.shape))
        has_form = has_declared_type(self.code, object, self.record, descriptor, rank, I32.of(flags), self.class_)
        if shared >= 0:
            self.refuse.unless(has_form)
        else:
            taken = self.code.variable(object)
            with self.code.when(~has_form):
                number_of_dtype = I64.of(DTYPES.index(array.dtype))
                declared = self.record, number_of_dtype, rank, self.references, self.class_
                taken.value = convert_argument(self.code, object, *declared)
                self.refuse.when(taken.value == NULL)
            object = taken.value
            self.objects.at(number + 1, Ptr).store(object)
        return self.operand(object, object.get(layout.ARRAY_DATA), array, self.compare_sizes(object, array.shape))

    def take_scalar(self, number: int, object: Ptr) -> Operand:
        array = self.known[number]
        self.objects.at(number + 1, Ptr).store(object)
        inputs, shared = len(self.signature.inputs), len(self.signature.shared)
        only = objects.word_at(self.record, 8 * (len(layout.RECORD) + shared + 2 * inputs + number))
        places = self.record, self.ndarray, only, self.scalars.at(number, I64)
        data = scalar_function(array.dtype)(self.code, object, *places)
        self.refuse.when(data == NULL)
        return self.operand(object, data, array, [])

    def compare_sizes(self, object: Ptr, shape: Sequence[int | None]) -> list[I64]:
        """Return the sizes of an array; refuse where one differs from the static size."""
        sizes = object.get(layout.ARRAY_SHAPE) if shape else object
        dims = [sizes.at(axis, I64).load(I64) for axis in range(len(shape))]
        wrong = [dim != size for dim, size in zip(dims, shape, strict=True) if size is not None]
        if wrong:
            self.refuse.when(reduce(or_, wrong))
        return dims

    def operand(self, object: Ptr, data: Ptr, array: Array, dims: Sequence[I64]) -> Operand:
        """Return the operand of an array that exists, so that the product of its sizes cannot overflow."""
        count = reduce(I64.__mul__, dims) if dims else 1
        return Operand(object, data, dims, count, count * itemsize(array.dtype))

    def cell(self, shared: int) -> Ptr:
        return objects.word_at(self.record, 8 * (len(layout.RECORD) + shared))

    def compare(self) -> None:
        """Refuse where a written buffer overlaps another operand. The byte ranges stand in a table, those of written
        buffers first: inline comparisons would be code quadratic in the number of updates."""
        written = [operand for operand, array in zip(self.operands, self.known, strict=True) if array.written]
        if not written:
            return
        others = [operand for operand, array in zip(self.operands, self.known, strict=True) if not array.written]
        begins, ends = (self.code.local(I64, len(self.operands)) for _ in range(2))
        for number, operand in enumerate([*written, *others]):
            begin = operand.data.integer()
            begins.at(number, I64).store(begin)
            ends.at(number, I64).store(begin + operand.length)
        counts = I64.of(len(written)), I64.of(len(self.operands))
        self.refuse.when(objects.overlap(self.code, begins, ends, *counts))

    def call_sizes(self, dims: Ptr) -> I64:
        pointers = [operand.data for operand in self.operands]
        types = [Ptr] * len(pointers) + [I64] * len(self.sizes)
        sizes = external("sizes", I64, *types, Ptr)
        answer: I64 = sizes(self.code, *pointers, *self.sizes, dims)
        return answer

    def measure(self) -> I64 | int:
        """Compute the bytes of the outputs and the offsets of the temps. Returns the work of the call: the elements of
        all operands, outputs and temps, and a part of the work of loops."""
        counts = [operand.count for operand in self.operands]
        extents = extents_of(self.signature)
        if extents:
            outputs = len(self.signature.outputs)
            buffers = I64.of(outputs), I64.of(outputs + len(self.signature.temps))
            extents_and_count = table("extents", extents)(self.code), I64.of(len(extents) // 3)
            placed = objects.measure_memory(self.code, self.dims, *extents_and_count, self.lengths, *buffers)
            end = placed.first(I64)
            self.arena_length.store(end)
            counts.append(placed.second(I64))
            with self.code.when(end < 0):
                self.status.value = I64.of(layout.ABSURD)
                self.failed.go()
        if self.signature.has_safepoints:
            self.loops = self.dims.at(self.signature.extents - 1, I64).load(I64)
            counts.append(self.loops // WORK_OF_ELEMENT)
        work: I64 | int = sum(count for count in counts if isinstance(count, int))
        for count in counts:
            work = work if isinstance(count, int) else count + work
        return work

    def check_out(self) -> None:
        """Check the arrays given as `out`, one or a tuple of arrays and None. Each must have the type and sizes of its
        output and overlap no operand and no other of them. A donated result takes the array of its input alone."""
        code, results = self.code, self.signature.results
        out = self.out.load(Ptr)
        if not results:
            self.refuse.unless(out == NULL)
            return
        with code.when(out != NULL):
            none = objects.word(self.record, "none")
            if self.signature.returns == "list":
                self.given.value = given_results(code, self.record, out, I64.of(len(results)))
                self.refuse.when(self.given.value == NULL)
            else:
                self.refuse.when(out == none)
                self.given.value = self.out
            for at, (role, number) in enumerate(results):
                if role == "input":
                    item = self.given.value.at(at, Ptr).load(Ptr)
                    self.refuse.unless((item == none) | (item == self.operands[number].object))
            ranges = code.local(Ptr, 2 * (len(self.operands) + len(self.signature.outputs)) + 1)
            for number, operand in enumerate(self.operands):
                ranges.at(2 * number + 1, Ptr).store(operand.data)
                ranges.at(2 * number + 2, Ptr).store(operand.data.at(operand.length))
            ranges.store(I64.of(len(self.operands)))
            self.refuse.unless(are_writable_results(code, self.record, *self.outputs(), self.given.value, ranges))

    def outputs(self) -> tuple[Ptr, I64, Ptr, Ptr]:
        """The arguments of functions that go over the outputs: the table of `_outputs`, their number, dims, lengths."""
        count = I64.of(len(self.signature.outputs))
        return table("outputs", _outputs(self.signature))(self.code), count, self.dims, self.lengths

    def hold_shared(self) -> None:
        """Take references to the shared arrays: while Python allocates a large result, other threads may set the
        cells."""
        copied = self.references.load(I64)
        shared = self.operands[len(self.signature.inputs) :]
        self.claimed = copied + len(shared)
        self.made = self.references.at(self.claimed + 1, Ptr)
        """The address of the output arrays among the references."""
        for number, operand in enumerate(shared):
            objects.retain(self.code, operand.object)
            self.references.at(copied + (number + 1), Ptr).store(operand.object)
        if shared:
            self.references.store(self.claimed)

    def make(self) -> None:
        """Make the arrays of the outputs, or take those given."""
        if self.signature.outputs:
            places = self.given.value, self.references, self.class_.load(Ptr)
            is_made = objects.make(self.code, self.record, *self.outputs(), *places)
            self.go_without_memory(~is_made)

    def made_array(self, number: int) -> Ptr:
        return self.made.at(number, Ptr).load(Ptr)

    def allocate(self) -> list[Ptr]:
        """Return the addresses of the temps: in the kept arena, or in a new one while another thread uses that."""
        code, temps = self.code, len(self.signature.temps)
        if not temps:
            return []
        busy = objects.word(self.record, "busy")
        with code.when(busy.load(I64) == 0):
            busy.store(I64.of(1))
            self.owner.value = busy
            self.arena.value = objects.grow(code, self.record, self.arena_length)
        with code.otherwise():
            uint8 = I64.of(objects.OFFSETS["uint8 descriptor"])
            self.arena.value = objects.empty(code, self.record, self.ndarray, uint8, I32.of(1), self.arena_length)
        self.go_without_memory(self.arena.value == NULL)
        above = self.arena.value.get(layout.ARRAY_DATA).integer() + (ALIGNMENT - 1)
        start = ((above & -ALIGNMENT) - ALIGNMENT).address()
        if self.poison:
            poison(code, start.at(ALIGNMENT), self.arena_length.load(I64) - ALIGNMENT)
        first = len(self.signature.outputs)
        return [start.at(self.lengths.at(first + number, I64).load(I64)) for number in range(temps)]

    def go_without_memory(self, is_missing: Bool) -> None:
        """Go to `empty` where an array could not be made; a MemoryError becomes fail(NO_MEMORY), which explains it."""
        with self.code.when(is_missing):
            self.status.value = out_of_memory(self.code, self.record, self.status.value)
            self.empty.go()

    def locks(self) -> I64:
        """The offset in the record of the words of the locks."""
        shared = len(self.signature.shared)
        return I64.of(8 * (len(layout.RECORD) + shared + 3 * len(self.signature.inputs)))

    def modes(self) -> tuple[Ptr, I64]:
        """The arguments of `enter` and `depart` about marks: the table of `_modes`, the number of shared variables."""
        return table("modes", _modes(self.signature))(self.code), I64.of(len(self.signature.shared))

    def enter(self, is_heavy: Bool) -> None:
        """Go to `contended` where another call uses a shared variable, or the loops may reach a safepoint. Marks the
        variables where the call will release the GIL."""
        code, count = self.code, len(self.signature.shared)
        if not count:
            return
        free, wait = code.label("free"), code.label("wait")
        activity = objects.word(self.record, "activity")
        free.when(activity == NULL)
        if self.signature.has_safepoints:
            wait.when(self.loops.above(PATIENT))
        calls = activity.load(I64) | activity.at(1, I64).load(I64)
        free.unless((calls != 0) | is_heavy)
        values = code.local(Ptr, count)
        for number, operand in enumerate(self.operands[-count:]):
            values.at(number, Ptr).store(operand.object)
        cells = I64.of(8 * len(layout.RECORD))
        wait.unless(objects.enter(code, self.record, self.locks(), cells, values, *self.modes(), is_heavy))
        self.is_marked.value = is_heavy
        if any(number >= len(self.signature.inputs) for number in self.signature.reads):
            # Sizes follow from elements that another thread may have changed while memory was found.
            wait.when(self.sizes_differ())
        free.go()
        code.place(wait)
        self.is_contended.value = Bool.of(True)
        self.empty.go()
        code.place(free)

    def sizes_differ(self) -> Bool:
        """True where `sizes` now writes other numbers."""
        now = self.code.local(I64, self.signature.extents)
        differ = self.call_sizes(now) != 0
        for number in range(self.signature.extents):
            differ |= self.dims.at(number, I64).load(I64) != now.at(number, I64).load(I64)
        return differ

    def run(self, is_heavy: Bool, temps: Sequence[Ptr]) -> None:
        code = self.code
        arrays = [self.made_array(number) for number in range(len(self.signature.outputs))]
        data = [self.data_of(number, array) for number, array in enumerate(arrays)]
        if self.poison:
            for number, memory in enumerate(data):
                poison(code, memory, self.lengths.at(number, I64).load(I64))
        thread = code.variable(NULL)
        with code.when(is_heavy):
            thread.value = save_thread(self.record)
        pointers = [*(operand.data for operand in self.operands), *data, *temps]
        types = [Ptr] * len(pointers) + [I64] * len(self.sizes)
        kernel = external("kernel", I64, *types, call_attributes=" noinline")
        self.status.value = kernel(code, *pointers, *self.sizes)
        with code.when(thread.value != NULL):
            restore_thread(self.record, thread.value)
        self.empty.when(self.status.value != 0)

    def data_of(self, number: int, result: Ptr) -> Ptr:
        """The address that the kernel writes an output to: the elements of an array, or the value of a scalar."""
        elements = result.get(layout.ARRAY_DATA)
        if self.signature.outputs[number].shape:
            return elements
        return (objects.word(self.record, "scalars") != NULL).choose(result.at(layout.VALUE), elements)

    def deliver(self) -> None:
        """Store updates in their cells and return the other outputs. The old value of a cell takes the place of the new
        one among the references, and is released when all updates are made."""
        code, signature = self.code, self.signature
        if signature.returns == "none":
            self.result.value = objects.word(self.record, "none")
            objects.retain(code, self.result.value)
        is_replacing = any(output.replaces is not None for output in signature.outputs)
        for number, output in enumerate(signature.outputs):
            if output.replaces is not None:
                old = objects.install(code, self.cell(output.replaces), self.made_array(number))
                self.made.at(number, Ptr).store(old)
        items = self.items() if signature.returns == "list" else NULL
        for at, (role, number) in enumerate(signature.results):
            if role == "input":
                array = self.operands[number].object
                objects.retain(code, array)
            else:
                array = self.made_array(number)
                if signature.outputs[number].dtype == "bool" and not signature.outputs[number].shape:
                    array = objects.truth(code, self.record, array)
                if is_replacing:
                    self.made.at(number, Ptr).store(NULL)
            if signature.returns == "list":
                items.at(at, Ptr).store(array)
            else:
                self.result.value = array
        if not is_replacing:
            self.references.store(self.claimed)
        if signature.returns == "list":
            with code.when(self.recipe != NULL):
                self.result.value = put_together(code, self.record, items)

    def items(self) -> Ptr:
        """The address of the items of the list or tuple of results; with a recipe, that of memory on the stack."""
        items = self.code.variable(self.code.local(Ptr, len(self.signature.results)))
        with self.code.when(self.recipe == NULL):
            of_tuple, of_list = self.result.value.at(layout.TUPLE_ITEMS), self.result.value.get(layout.LIST_ITEMS)
            items.value = self.returns_tuple().choose(of_tuple, of_list)
        return items.value

    def leave(self) -> None:
        """Release references, locks and the arena. Calls that come by way of `empty` have no result."""
        code, record, go_on = self.code, self.record, self.code.label("go_on")
        go_on.go()
        code.place(self.empty)
        self.drop_result()
        code.place(go_on)
        if self.signature.shared:
            with code.when(self.is_marked.value):
                is_well = objects.depart(code, record, self.locks(), *self.modes())
                with code.when(~is_well):
                    self.drop_result()
                    self.status.value = I64.of(0)
                    self.is_contended.value = Bool.of(False)
        if self.signature.temps:
            objects.release(code, self.arena.value, record)
            with code.when(self.owner.value != NULL):
                self.owner.value.store(I64.of(0))
        if self.signature.shared:
            with code.when(self.is_contended.value):
                self.instead.value = I64.of(objects.OFFSETS["contended"])
                self.refuse.go()
        self.failed.when(self.status.value != 0)
        self.done.go()

    def drop_result(self) -> None:
        unused = self.result.value
        self.result.value = NULL
        objects.release(self.code, unused, self.record)

    def write_exits(self) -> None:
        """Write the exits: `refuse` (also for `contended`), `failed`, and the return of a result."""
        code, record = self.code, self.record
        code.place(self.refuse)
        held = record, self.references, self.result.value
        arguments = self.args, self.nargs, self.kwnames
        code.ret(go_elsewhere(code, *held, self.instead.value, *arguments))

        code.place(self.failed)
        held = record, self.references, self.result.value
        count = I64.of(len(self.signature.inputs))
        code.ret(end_failed(code, *held, self.status.value, self.objects, count, *arguments))

        code.place(self.done)
        with code.when(self.references.load(I64) != 0):
            release_all(code, self.references, record)
