"""Code for several targets in one file: another process for each target compiles the functions of the file.

In: a file that was written, and targets by name. Out: the file with a code for each target in each row of a function.

    f.save("model.graphc", targets=["haswell", "skylake-avx512"])
    graphc.load("model.graphc")      the code for this machine where it has been saved on one like it, else that for the
                                     best target that the processor runs

The process gets the path of the file, and leaves one of kind "codes", with the new rows, which are added here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphc.codegen.cache import files
from graphc.codegen.llvm.cpu import NAMED
from graphc.codegen.pipeline.background import apply_options, command, complaint, settings_for
from graphc.codegen.pipeline.build import build_native, look_up
from graphc.errors import CompileError, GraphcError
from graphc.functions.archive import Blobs, Opened, open_file, write_file
from graphc.functions.loaded import kernel_of
from graphc.functions.saved_rows import code_row


def add_targets(path: str, header: Mapping[str, Any], blobs: Blobs, targets: Sequence[str]) -> None:
    """Compile the functions of a file for targets, and write it anew with their code. Raises GraphcError for a name
    that is no target, CompileError where a process fails."""
    for target in targets:
        if target not in NAMED:
            raise GraphcError(f"targets: {target!r} is no target; these are {', '.join(NAMED)}")
    for target in targets:
        made = files.aside(path)
        try:
            done = subprocess.run(
                command(__name__),
                input=pickle.dumps((settings_for(target), path, made)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
            if done.returncode:
                said = complaint(done.stderr) or done.returncode
                raise CompileError(f"{path} cannot be compiled for {target}: {said}")
            opened = open_file(made)
            for row, code in zip(rows_of(header), opened.header["codes"], strict=True):
                if code is not None:
                    row["codes"].append(_moved(code, opened, blobs))
        finally:
            if os.path.exists(made):
                os.unlink(made)
    write_file(path, header, blobs)


def _moved(code: Mapping[str, Any], opened: Opened, blobs: Blobs) -> dict[str, Any]:
    """Add the blobs of a code, and return its row with their new numbers."""

    def moved(number: int) -> int:
        return blobs.add(bytes(opened.blob(number)))

    parts = {name: moved(number) for name, number in code["parts"].items()}
    return {**code, "metadata": moved(code["metadata"]), "object": moved(code["object"]), "parts": parts}


def rows_of(header: Any) -> Iterator[Any]:
    """Yield the rows of functions in a header, in order."""
    if isinstance(header, Mapping):
        if "codes" in header and "graph" in header:
            yield header
        else:
            for value in header.values():
                yield from rows_of(value)
    elif isinstance(header, list):
        for value in header:
            yield from rows_of(value)


def main() -> None:
    """In the process: compile the functions of a file for the target, and write their code to another one."""
    settings, path, made = pickle.load(sys.stdin.buffer)
    apply_options(settings)
    opened, blobs = open_file(path), Blobs()
    codes = []
    for row in rows_of(opened.header):
        code = None
        if row["mode"] == "compiled" and row["codes"]:
            kernel = kernel_of(opened, row)
            found = look_up(kernel)
            kept = build_native(kernel, found)  # which lives until its code is in the file
            code = code_row(found.key, blobs)
            del kept
        codes.append(code)
    write_file(made, {"kind": "codes", "codes": codes}, blobs)
