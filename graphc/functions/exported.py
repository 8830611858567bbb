"""Functions without graphc: `f.export(path)` writes a C library, or with language="python" a module for NumPy or numba.

In: a function, a path. Out: files beside each other, of which the last two are for people to start from:

    f.export("lib/model")      model.h, model.o, libmodel.a, libmodel.so, model.pc, model.cmake, model_example.c

    f.export("lib/model", language="python")    model.py

All that cannot be exported is refused before anything is written. `codegen/call/c_interface.py` tells of the interface,
`codegen/pipeline/python_module.py` of the module.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from math import prod
from typing import Any

import numpy as np

from graphc.codegen.cache import files
from graphc.codegen.call.c_interface import CFunction, Parameter, c_type, header_text, is_identifier
from graphc.codegen.llvm.cpu import EXPORTED, OTHERS
from graphc.errors import GraphcError
from graphc.functions.callables import Function
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.versions import VERSION
from graphc.trees import paths

MODULE_NAMES = frozenset(("np", "b85decode", "state", "use_numba"))
"""The names of a module for Python besides the function's."""


def export(
    function: Function,
    path: str | os.PathLike[str],
    language: str = "c",
    target: str | None = None,
    blas: bool = False,
    strided: Collection[str] | bool = (),
    results: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> list[str]:
    """Write the files of a function. results: their names in C, "" for the usual one; by default the keys of a dict of
    them. labels: the names of classes, of which the function gives the places. `Function.export` tells more."""
    folder, name = os.path.split(os.fspath(path))
    if language == "python":
        if target is not None or blas or strided:
            raise GraphcError(
                "target, blas and strided are for language='c': a module for Python runs on any machine, and takes "
                "arrays of any strides"
            )
        return [write_module(function, folder, name, labels)]
    target = options.target if target is None else target
    if isinstance(strided, str):
        strided = strided == "all" or (strided,)
    check(function, name, language, target)
    values = tuple(np.array(leaf.cell[0]) for leaf in function.shared)
    make = import_module("graphc.codegen.pipeline.standalone").standalone
    made = make(function.kernel, values, name, target, blas, strided, results or identifiers(function.call.keys or ()))
    os.makedirs(folder or ".", exist_ok=True)

    def place(file: str) -> str:
        return os.path.join(folder, file)

    wanted = f"Link BLAS and LAPACK with integers of 32 bits: {', '.join(made.needs)}." if made.needs else ""
    notes = f"{name}: made by graphc {VERSION} for {target}. {wanted}".rstrip()
    libraries = "-llapack -lblas" if made.needs else ""
    contents = {
        f"{name}.h": header_text(made.function, notes, labels).encode(),
        f"{name}.o": made.object,
        f"lib{name}.a": archive(f"{name}.o", made.object, made.function.exports()),
        f"{name}.pc": package_text(name, libraries).encode(),
        f"{name}.cmake": cmake_text(name, libraries).encode(),
        f"{name}_example.c": ("\n".join(example(made.function, libraries)) + "\n").encode(),
    }
    for file, content in contents.items():
        files.replace(place(file), content, mode=files.PUBLIC)
    library = place(f"lib{name}.so")
    linker = OTHERS[target][1] if target in OTHERS else os.environ.get("CC") or "cc"
    linked = [library] if shutil.which(linker) else []
    if linked:
        soname = f"-Wl,-soname,lib{name}.so"
        done = subprocess.run(
            [linker, "-shared", soname, "-o", library, place(f"{name}.o"), "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise GraphcError(f"{linker} cannot link {library}: {done.stderr.strip()}")
    return [*map(place, contents), *linked]


def export_part(
    loaded: Any,
    part: str | None,
    path: str | os.PathLike[str],
    language: str,
    target: str | None,
    blas: bool,
    strided: Collection[str] | bool,
) -> list[str]:
    """Write the files of a function, or of a part of what `graphc.load` returns."""
    function = part_of(loaded, part)
    made = [each.made for each in getattr(loaded, "variants", list)() if each.function is function]
    names = [each.removeprefix("out") for tree in made for each in paths(tree, "out")]
    return export(
        function, path, language, target, blas, strided, identifiers(names), getattr(loaded, "labels", tuple)()
    )


def identifiers(keys: Sequence[str]) -> list[str]:
    """The names of results by their places in a tree, "['a']['b']" as a_b and "[1]['a']" as out1_a; "" for places that
    are numbers."""
    names = ["_".join(re.findall(r"\w+", key)) for key in keys]
    named = [f"out{name}" if name[:1].isdigit() else name for name in names]
    return [each if is_identifier(each) and not name.isdigit() else "" for name, each in zip(names, named, strict=True)]


def part_of(loaded: Any, part: str | None) -> Function:
    """Return the function without Python of what `graphc.load` returns, or of a jitted function. part: "predict" (the
    default) or "probabilities" of a network or an estimator; the number of a jitted function's variant. Raises
    GraphcError for what is not there, and for a variant that follows from values."""
    if isinstance(loaded, Function):
        parts: dict[str, Any] = {"function": loaded}
    elif hasattr(loaded, "scales"):
        parts = dict.fromkeys(loaded.functions, loaded)
    else:
        valid = loaded.current_variants()
        parts = {str(number): each.function for number, each in enumerate(loaded.variants()) if each in valid}
    wanted = part or next(iter(parts)) if len(parts) == 1 or "predict" in parts else part
    if wanted not in parts:
        known = "; ".join(f"{name}: {each!r}" for name, each in parts.items())
        raise GraphcError(f"there are the parts {known}: name one of them{f', not {part!r}' if part else ''} by `part`")
    found = parts[wanted]
    for each in getattr(loaded, "variants", list)():
        if each.function is found and each.questions:
            raise GraphcError(f"{each!r} follows from values that a program asks for: it cannot be called without it")
    function: Function = found.whole(wanted) if hasattr(found, "scales") else found
    return function


def write_module(function: Function, folder: str, name: str, labels: Sequence[str] = ()) -> str:
    """Write the function as a module for Python; its path."""
    taken = MODULE_NAMES | {"classes"} if labels else MODULE_NAMES
    if not name.isidentifier() or iskeyword(name) or name.startswith("_") or name in taken:
        raise GraphcError(f"{name!r} cannot be the name of a function and a module: it is the last part of the path")
    check_arrays(function)
    values = tuple(np.array(leaf.cell[0]) for leaf in function.shared)
    make = import_module("graphc.codegen.pipeline.python_module").python_module
    text = make(function.kernel, values, name, f"a function of graphc, written by version {VERSION}.")
    os.makedirs(folder or ".", exist_ok=True)
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w", encoding="utf-8") as opened:
        opened.write(text)
        if labels:
            opened.write(
                f"\n\n# A prediction is a place in it, as a column of probabilities is.\nclasses = {tuple(labels)!r}\n"
            )
    return path


def check(function: Function, name: str, language: str, target: str) -> None:
    """Raise GraphcError for a function and arguments that no file could be written for."""
    if language != "c":
        raise GraphcError(f"language={language!r}: a function is exported for 'c' or 'python'")
    if target not in EXPORTED:
        raise GraphcError(f"target={target!r}: must be one of {', '.join(EXPORTED)}")
    if not is_identifier(name) or in_c_library(name):
        why = "; C's library has a function of this name" if is_identifier(name) else ""
        raise GraphcError(f"{name!r} cannot be the name of a C function: it is the last part of the path{why}")
    check_arrays(function)


def in_c_library(name: str) -> bool:
    """True for the name of a function of C's library: in a program that is linked with another one of that name, the
    library itself would call it."""
    for library in ("libc.so.6", "libm.so.6"):
        with suppress(OSError):  # another system
            if hasattr(ctypes.CDLL(library), name):
                return True
    return False


def check_arrays(function: Function) -> None:
    """Raise GraphcError for a function of several kernels, or of shared variables that are no arrays."""
    if hasattr(function, "stages"):
        raise GraphcError(
            f"{function.label} is several kernels, as its sizes follow from values: it cannot be exported"
        )
    strange = [leaf for leaf in function.shared if not isinstance(leaf.cell[0], np.ndarray)]
    if strange or len(function.shared) < len(function.kernel.shared):
        names = ", ".join(str(leaf) for leaf in strange)
        raise GraphcError(f"{function.label}: the shared variables {names} are no arrays: it cannot be exported")


# --- files ------------------------------------------------------------------------------------------------------------


def archive(member: str, content: bytes, symbols: Sequence[str]) -> bytes:
    """A static library of one object: an index of its symbols, then the object (System V's format)."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    length = 4 + 4 * len(symbols) + len(names)
    first = 8 + 60 + length + length % 2
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[first] * len(symbols)) + names
    return b"!<arch>\n" + _member("/", index) + _member(f"{member}/", content)


def _member(name: str, content: bytes) -> bytes:
    if len(name) > 16:  # a name of its own is of no use: there is one member
        name = "object.o/"
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)


def package_text(name: str, libraries: str) -> str:
    """A file for pkg-config, which finds the library beside it, and so does a program that is linked by it."""
    return (
        f"prefix=${{pcfiledir}}\nName: {name}\nDescription: a function compiled by graphc\nVersion: {VERSION}\n"
        f"Cflags: -I${{prefix}}\nLibs: -L${{prefix}} -Wl,-rpath,${{prefix}} -l{name} {libraries}\nLibs.private: -lm\n"
    )


def cmake_text(name: str, libraries: str) -> str:
    """A snippet for CMake: include(model.cmake), then target_link_libraries(program {name}), or {name}_shared, of which
    CMake writes the folder into programs that it builds."""
    others = " ".join(each.removeprefix("-l") for each in (*libraries.split(), "-lm")).replace(" ", ";")

    def target(target: str, kind: str, file: str) -> str:
        return (
            f"add_library({target} {kind} IMPORTED)\n"
            f"set_target_properties({target} PROPERTIES\n"
            f'  IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"\n'
            f'  INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"\n'
            f'  INTERFACE_LINK_LIBRARIES "{others}")\n'
        )

    return target(name, "STATIC", f"lib{name}.a") + target(f"{name}_shared", "SHARED", f"lib{name}.so")


def example(function: CFunction, libraries: str) -> Iterator[str]:
    """A C program that calls a function with ones, and prints the beginning of each result. libraries: the words for
    the linker."""
    name, inputs, outputs = function.name, function.inputs(), function.outputs()
    yield f"/* cc {' '.join([f'{name}_example.c', f'lib{name}.a', *libraries.split(), '-lm'])} && ./a.out */"
    yield from ("#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", f'#include "{name}.h"', "")
    yield from ("int main(void) {", f"    {name}_sizes sizes;", "    int code;")
    given, prepared = [], []
    for each in inputs:
        if each.role == "value":
            given.append("1")
        elif each.role == "size":
            given.append(str(function.sizes[each.number, each.axis]))
        elif each.role == "stride":
            given.append(_contiguous(function, each))
        elif each.role == "data":
            array = function.signature.inputs[each.number]
            count = prod(
                function.sizes[each.number, axis] if size is None else size for axis, size in enumerate(array.shape)
            )
            yield f"    {c_type(array.dtype)} *{each.name} = calloc({max(count, 1)}, sizeof *{each.name});"
            prepared.append(f"    for (int i = 0; i < {count}; i++) {each.name}[i] = 1;")
            given.append(each.name)
        else:
            yield f"    {name}_state state = {name}_initial;"
            given.append("&state")
    yield from prepared
    for field in function.fields():
        if field.role == "data" and field.number in function.updated:
            size = function.initial[field.number].nbytes
            yield f"    state.{field.name} = memcpy(malloc({max(size, 1)}), {name}_initial.{field.name}, {size});"
    yield f"    code = {name}_workspace_size({', '.join([*given, '&sizes'])});"
    yield f'    if (code) return fprintf(stderr, "%s\\n", {name}_error_text(code)), 1;'
    yield "    void *workspace = malloc(sizes.workspace + 1);"
    results, printed = [], []
    shapes = dict(function.results)
    for each in outputs:
        if each.role == "result":
            array = shapes[each.number]
            axes = iter(o.name for o in outputs if o.role == "result size" and o.number == each.number)
            count_text = " * ".join(f"sizes.{next(axes)}" if n is None else str(n) for n in array.shape) or "1"
            yield f"    {c_type(array.dtype)} *{each.name} = calloc({count_text} + 1, sizeof *{each.name});"
            printed.append(
                f'    for (int i = 0; i < {count_text} && i < 8; i++) printf("%.9g ", (double){each.name}[i]);'
            )
            printed.append('    printf("\\n");')
            results.append(each.name)
        elif each.role == "result size":
            results.append(f"sizes.{each.name}")
        elif each.role == "result stride":
            results.append(_contiguous(function, each))
    yield f"    code = {name}({', '.join([*given, *results, 'workspace', 'sizes.workspace'])});"
    yield f'    if (code) return fprintf(stderr, "%s\\n", {name}_error_text(code)), 1;'
    yield from (*printed, "    return 0;", "}")


def _contiguous(function: CFunction, stride: Parameter) -> str:
    """The stride of an axis of a contiguous array, as an expression of C."""
    if stride.role == "stride":
        array = function.signature.inputs[stride.number]
        sizes = [function.sizes.get((stride.number, axis), size) for axis, size in enumerate(array.shape)]
        behind = [str(size) for size in sizes[stride.axis + 1 :]]
    else:
        array = function.signature.outputs[stride.number]
        named = {o.axis: o.name for o in function.outputs() if (o.role, o.number) == ("result size", stride.number)}
        axes = range(stride.axis + 1, len(array.shape))
        behind = [f"sizes.{named[axis]}" if axis in named else str(array.shape[axis]) for axis in axes]
    return " * ".join([*behind, f"(int64_t)sizeof({c_type(array.dtype)})"])


HOOKS.export = export
