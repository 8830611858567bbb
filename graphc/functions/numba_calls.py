"""Compiled functions inside numba's: `Function.as_numba`.

In: a compiled function. Out: a function of numba's, compiled in nopython mode for the dtypes of the graph, without the
GIL. For [x: dvector, s: dscalar] -> [x * s, sum] its source is

    def f(x0, x1):
        x0 = contiguous(x0)
        r0 = empty((x0.shape[0],), float64)
        answer = call((x0.shape[0], x0.shape[0], x0, x1, r0))
        if answer[0] != 0:
            fail(answer[0])
        return r0, answer[1]

Sizes of inputs that must agree are compared before `fail`, for an error that names the inputs.

`call` is an intrinsic: a call of the C function (functions/pointer.py) by its address, with results without axes on
the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic as of_numba

from graphc.codegen.call.c_interface import FAILED, NO_MEMORY
from graphc.functions.callables import Function
from graphc.functions.pointer import Pointer, plain_signature
from graphc.ir.interpret import plan_steps
from graphc.ir.node import describe
from graphc.startup.hooks import HOOKS
from graphc.startup.process import PROCESS

_cgutils: Any = cgutils
_types: Any = types

SAFE = (1, 2, 3)
"""The conversions of numba's (numba.core.typeconv.Conversion) of a number that lose nothing: exact, promotion, safe."""


def as_numba(function: Function, status: bool) -> Any:
    """The function for numba: `Function.as_numba`."""
    function = function.finished()
    pointer = Pointer(plain_signature(function, by_value=True), function)
    PROCESS.kept.append(pointer)  # compiled callers hold its address, and nobody tells when they go
    source, names = Writing(pointer, status).source()
    space: dict[str, Any] = {**names, "empty": np.empty, "zeros": np.zeros, "contiguous": np.ascontiguousarray}
    space |= {"fail": numba.njit(nogil=True)(_failing(function.name))}
    exec(compile(source, f"<{function.name} for numba>", "exec"), space)
    made = space["f"]
    made.__name__ = made.__qualname__ = function.name if function.name.isidentifier() else "f"
    made.__doc__ = function.__doc__
    return numba.njit(nogil=True)(made)


def _failing(name: str) -> Callable[[int], None]:
    failed = f"{name}: a check failed, or sizes do not agree; call the function itself for the message"
    refused = f"{name}: a size does not fit"
    memory = f"{name}: no memory for temporaries"

    def fail(status: int) -> None:
        if status == FAILED:
            raise RuntimeError(failed)
        if status == NO_MEMORY:
            raise MemoryError(memory)
        raise ValueError(refused)

    return fail


class Writing:
    """The source of a function for numba, and what it names. status: it returns a status before its results."""

    def __init__(self, pointer: Pointer, status: bool) -> None:
        self.pointer, self.status = pointer, status
        self.function = cast("Any", pointer.function)
        self.signature = self.function.built.signature
        self.inputs = self.function.kernel.inputs

    def source(self) -> tuple[str, dict[str, Any]]:
        names = [f"x{number}" for number in range(len(self.inputs))]
        lines = [f"def f({', '.join(names)}):"]
        for name, node in zip(names, self.inputs, strict=True):
            lines += self.checks(name, node)
        shapes, measuring, space = self.shapes()
        lines += measuring
        params = self.pointer.declaration.params
        sizes = [f"{name}.shape[{axis}]" for name, node in zip(names, self.inputs, strict=True)
                 for axis in range(node.ndim)]  # fmt: skip
        given = list(names)
        for number, (output, shape) in enumerate(zip(self.signature.outputs, shapes, strict=True)):
            if shape:
                lines.append(f"    r{number} = empty(({', '.join(shape)},), d{number})")
                space[f"d{number}"] = np.dtype(output.dtype)
                given.append(f"r{number}")
                sizes += shape
        passed = [*sizes, *given]
        places = iter(range(len(passed)))
        first = len(sizes) + len(names)
        roles: list[Any] = [(params[k].is_pointer, next(places)) for k in range(first)]
        roles += [(True, next(places) if output.shape else output.dtype) for output in self.signature.outputs]
        wanted = {
            len(sizes) + k: (f"{self.function.name}: argument {describe(node)}", node.type.dtype, node.ndim)
            for k, node in enumerate(self.inputs)
        }
        space["call"] = intrinsic(self.pointer.address, roles, wanted)
        lines.append(f"    answer = call(({', '.join(passed)},))")
        if not self.status:
            lines += ["    if answer[0] != 0:", *self.disagreements(), "        fail(answer[0])"]
        lines.append(f"    return {self.answer()}")
        return "\n".join(lines), space

    def checks(self, name: str, node: Any) -> list[str]:
        """The lines that check the sizes that are known, and copy what is not contiguous."""
        found = [(axis, size) for axis, size in enumerate(node.type.shape) if isinstance(size, int)]
        lines = [f"    {name} = contiguous({name})"] if node.ndim else []
        for axis, size in found * (not self.status):
            text = f"{self.function.name}: argument {describe(node)} must have size {size} along axis {axis}"
            lines += [f"    if {name}.shape[{axis}] != {size}:", f"        raise ValueError({text!r})"]
        return lines

    def leaves(self) -> dict[int, tuple[str, str]]:
        """For each size of an input, by its identity, what it is in the source, and what a message calls it."""
        return {
            id(size): (f"x{k}.shape[{axis}]", f"{node.name or f'x{k}'}.shape[{axis}]")
            for k, node in enumerate(self.inputs)
            for axis, size in enumerate(node.type.shape)
            if not isinstance(size, int)
        }

    def disagreements(self) -> list[str]:
        """The lines behind a failed call that compare sizes of inputs which the graph wants equal, to name them."""
        leaves, lines = self.leaves(), []
        for guard in plan_steps(self.function.graph).checks:
            left, right = (leaves.get(id(size)) or (str(size),) * 2 * isinstance(size, int)
                           for size in (guard.left, guard.right))  # fmt: skip
            if guard.relation == "==" and left and right:
                text = f"{self.function.name}: {str(guard.message).format(left=left[1], right=right[1])}"
                lines += [f"        if {left[0]} != {right[0]}:", f"            raise ValueError({text!r})"]
        return lines

    def shapes(self) -> tuple[list[list[str]], list[str], dict[str, Any]]:
        """The sizes of the results as source, the lines that measure those that no argument has, and what they name."""
        leaves = {key: source for key, (source, _) in self.leaves().items()}
        shapes: list[list[str]] = []
        slot, is_measured = 0, False
        for node, output in zip(self.function.kernel.outputs, self.signature.outputs, strict=True):
            shape = []
            for size, known in zip(node.type.shape, output.shape, strict=True):
                word = str(known) if known is not None else leaves.get(id(size))
                is_measured |= word is None
                shape.append(word or f"slots[{slot}]")
                slot += 1
            shapes.append(shape)
        if not is_measured:
            return shapes, [], {}
        names = [f"x{number}" for number in range(len(self.inputs))]
        constants = self.pointer.kept
        dims = [f"x{k}.shape[{axis}]" if k < len(names) else str(constants[k - len(names)].shape[axis])
                for k, axis in self.signature.sizes]  # fmt: skip
        held = [str(array.ctypes.data) for array in constants]
        passed = [*names, *held, *dims, "slots"]
        roles: list[Any] = [*((True, k) for k in range(len(names)))]
        roles += [(False, k) for k in range(len(names), len(passed) - 1)]
        roles.append((True, len(passed) - 1))
        wanted = {k: (f"argument {describe(node)}", node.type.dtype, node.ndim) for k, node in enumerate(self.inputs)}
        space = {"measure": intrinsic(self.pointer.library.sizes, roles, wanted), "int64": np.int64}
        lines = [f"    slots = zeros({self.signature.extents}, int64)", f"    fitted = measure(({', '.join(passed)},))"]
        if not self.status:
            lines += ["    if fitted[0] != 0:", *self.disagreements(), f"        fail({FAILED})"]
        return shapes, lines, space

    def answer(self) -> str:
        """Return the expression of what is returned: the result, or a tuple of all."""
        found, at = [], 1
        for number, output in enumerate(self.signature.outputs):
            found.append(f"r{number}" if output.shape else f"answer[{at}]")
            at += not output.shape
        if self.status:
            return f"({', '.join(['answer[0]', *found])},)"
        returns = self.function.kernel.returns
        return "None" if returns == "none" else found[0] if returns == "one" else f"({', '.join(found)},)"


def intrinsic(address: int, roles: Sequence[tuple[bool, Any]], wanted: Mapping[int, tuple[str, str, int]]) -> Any:
    """An intrinsic `call(arguments) -> (status, scalar results)` of the C function at an address.

    roles: for each C parameter whether it is an address, and the place of its argument; or the dtype of a result that
    is no array, which is loaded after the call. wanted: the name, dtype and number of axes of arguments, by place;
    numba raises its TypingError for others. As an example, f(x: float64[], s: float64) -> float64 has the roles
    [(True, 0), (False, 1), (True, "float64")] and wants {0: ("x", "float64", 1), 1: ("s", "float64", 0)}."""
    loaded = [_numba_type(place) for _, place in roles if isinstance(place, str)]
    scalars = {place: _numba_type(dtype) for place, (_, dtype, ndim) in wanted.items() if not ndim}

    def call(typingctx: Any, given: Any) -> Any:
        for place, (name, dtype, ndim) in wanted.items():
            _check_argument(typingctx, given.types[place], name, dtype, ndim)
        return _types.Tuple([types.int64, *loaded])(given), generate

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        passed, rooms = [], []
        for is_address, place in roles:
            if isinstance(place, str):
                rooms.append(_room(context, builder, _numba_type(place)))
                passed.append(_untyped(builder, rooms[-1]))
            else:
                value, type_ = builder.extract_value(args[0], place), signature.args[0].types[place]
                if place in scalars:
                    value, type_ = context.cast(builder, value, type_, scalars[place]), scalars[place]
                passed.append(_passed(context, builder, value, type_, is_address))
        c_type = ir.FunctionType(ir.IntType(64), [value.type for value in passed])
        function = builder.inttoptr(ir.Constant(ir.IntType(64), address), c_type.as_pointer())
        status = builder.call(function, passed)
        models = [context.data_model_manager[type_] for type_ in loaded]
        results = [model.from_data(builder, builder.load(room)) for model, room in zip(models, rooms, strict=True)]
        return context.make_tuple(builder, signature.return_type, [status, *results])

    return of_numba(call)


def _numba_type(dtype: str) -> Any:
    return from_dtype(np.dtype(dtype))


def _check_argument(typingctx: Any, type_: Any, name: str, dtype: str, ndim: int) -> None:
    """Raise NumbaTypeError where an argument of a type is not taken for a parameter."""
    element, is_array = _numba_type(dtype), isinstance(type_, types.Array)
    if is_array != (ndim > 0) or (is_array and (type_.dtype, type_.ndim) != (element, ndim)):
        raise NumbaTypeError(f"{name} is {dtype} with {ndim} axes, not {type_}")
    if not is_array and typingctx.can_convert(type_, element) not in SAFE:
        raise NumbaTypeError(f"{name} is {dtype}, not {type_}")


def _passed(context: Any, builder: Any, value: Any, type_: Any, is_address: bool) -> Any:
    """The C argument for a value: the elements of an array, the address of a number, or the number."""
    if isinstance(type_, types.Array):
        return _untyped(builder, context.make_array(type_)(context, builder, value).data)
    if not is_address:
        return value
    room = _room(context, builder, type_)
    builder.store(context.data_model_manager[type_].as_data(builder, value), room)
    return _untyped(builder, room)


def _room(context: Any, builder: Any, type_: Any) -> Any:
    """Memory on the stack for a value."""
    return _cgutils.alloca_once(builder, context.get_data_type(type_))


def _untyped(builder: Any, address: Any) -> Any:
    return builder.bitcast(address, _cgutils.voidptr_t)


HOOKS.as_numba = as_numba
