"""Exported functions, called through ctypes as their headers say: `Called`, and `agrees`, which compares with NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphc
from graphc.codegen.call.c_interface import CODES

NUMBER = {name: position for position, name in enumerate(CODES)}
C_NUMBERS: dict[str, Any] = {
    "bool": ctypes.c_uint8,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def unknown(node: Any) -> list[int]:
    return [axis for axis, size in enumerate(node.type.shape) if not isinstance(size, int)]


class Called:
    """An exported function, called through ctypes as its header says."""

    def __init__(self, function: Any, folder: Path, name: str = "model", written: bool = False, **options: Any) -> None:
        """written: the files are there already."""
        self.function, self.name, self.folder = function, name, folder
        if not written:
            function.export(folder / name, **options)
        self.library = ctypes.CDLL(str(folder / f"lib{name}.so"))
        self.header = (folder / f"{name}.h").read_text()
        self.shared = list(function.kernel.shared)
        self.text = getattr(self.library, f"{name}_error_text")
        self.text.restype = ctypes.c_char_p
        self.values = [np.array(leaf.get_value()) for leaf in self.shared]
        fields: list[tuple[str, Any]] = []
        for number, leaf in enumerate(self.shared):
            fields.append((f"v{number}", ctypes.c_void_p if leaf.ndim else C_NUMBERS[leaf.type.dtype]))
            fields += [(f"v{number}_{axis}", ctypes.c_int64) for axis in (unknown(leaf) if leaf.ndim else ())]
        made: Any = type("State", (ctypes.Structure,), {"_fields_": fields})
        self.kind = made
        if self.shared:
            self.state = self.kind.from_buffer_copy(self.initial())
            for number, (leaf, value) in enumerate(zip(self.shared, self.values, strict=True)):
                if leaf.ndim:
                    initial = (ctypes.c_char * value.nbytes).from_address(getattr(self.state, f"v{number}") or id(self))
                    assert bytes(initial) == value.tobytes()
                    setattr(self.state, f"v{number}", value.ctypes.data)
                    assert [getattr(self.state, f"v{number}_{axis}") for axis in unknown(leaf)] == [
                        value.shape[axis] for axis in unknown(leaf)
                    ]
                else:
                    assert getattr(self.state, f"v{number}") == value

    @classmethod
    def of(cls, function: Any, library: Path, name: str) -> Called:
        """A library that was linked otherwise, of a function without shared variables."""
        called = cls.__new__(cls)
        called.function, called.name, called.shared, called.header = function, name, [], ""
        called.library = ctypes.CDLL(str(library))
        called.text = getattr(called.library, f"{name}_error_text")
        called.text.restype = ctypes.c_char_p
        return called

    def initial(self) -> Any:
        return self.kind.in_dll(self.library, f"{self.name}_initial")

    def array(self, node: Any, value: Any, name: str) -> list[Any]:
        """The words of an array: its address, its unknown sizes, and its strides where the header has them."""
        numbers = [value.shape[axis] for axis in unknown(node)]
        numbers += value.strides if f" {name}_stride_0," in self.header else ()
        return [ctypes.c_void_p(value.ctypes.data), *map(ctypes.c_int64, numbers)]

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        given: list[Any] = []
        for node, value in zip(self.function.kernel.inputs, values, strict=True):
            if not node.ndim:
                given.append(C_NUMBERS[node.type.dtype](np.asarray(value).item()))
                continue
            given += self.array(node, value, node.name)
        return [*given, *([ctypes.byref(self.state)] if self.shared else [])]

    def sizes(self, values: Sequence[Any]) -> tuple[int, int, list[int]]:
        """The code, the bytes of the workspace, and the sizes of results that are not known before."""
        count = sum(len(unknown(node)) for node in self.function.kernel.outputs)
        words: Any = (ctypes.c_int64 * (1 + count))()
        code = getattr(self.library, f"{self.name}_workspace_size")(*self.inputs(values), words)
        return code, words[0], list(words[1:])

    def call(
        self, values: Sequence[Any], room: int | None = None, outs: Sequence[Any] | None = None
    ) -> tuple[int, list[Any]]:
        """The code and the results. room: the bytes that the workspace is said to have. outs: arrays for results."""
        code, length, found = self.sizes(values)
        if code:
            return code, []
        left, given, made = iter(found), list[Any](), list[Any]()
        for number, node in enumerate(self.function.kernel.outputs):
            shape = [size if isinstance(size, int) else next(left) for size in node.type.shape]
            made.append(np.full(shape, 77, node.type.dtype) if outs is None else outs[number])
            given += self.array(node, made[-1], f"out{number or ''}")
        workspace = np.zeros(length + 1, np.uint8)
        room = length if room is None else room
        place = ctypes.c_void_p(workspace.ctypes.data + 1 * (length > 0))
        code = getattr(self.library, self.name)(*self.inputs(values), *given, place, ctypes.c_size_t(room))
        return code, made


def agrees(called: Called, *values: Any, rtol: float = 1e-12, atol: float = 1e-300) -> None:
    """The results of C are those of the interpreter, and so are the shared variables afterwards."""
    function = called.function
    wanted = graphc.function(
        list(function.kernel.inputs), list(function.kernel.outputs), updates=list(function.kernel.updates),
        mode="interpreted",
    )(*values)  # fmt: skip
    code, made = called.call(values)
    assert code == 0, called.text(code)
    for found, right in zip(made, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=rtol, atol=atol)
    for number, leaf in enumerate(called.shared):
        now = called.values[number] if leaf.ndim else getattr(called.state, f"v{number}")
        np.testing.assert_allclose(now, leaf.get_value(), rtol=rtol)
