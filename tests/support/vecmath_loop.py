"""A vector function in a loop over arrays, compiled for the host or for its plainest relative.

In: a name of VECTOR_MATH and a dtype. Out: a callable over arrays, the optimised IR and the assembly. Used by
test_vecmath.py and benchmarks/exhaustive_vecmath.py.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from graphc.codegen.link.elf import link
from graphc.codegen.link.image import Loaded, load
from graphc.codegen.llvm.target import vector_widths
from graphc.codegen.vecmath import table

TYPES = {"float32": ir.FloatType(), "float64": ir.DoubleType()}


PLAIN_WIDTHS = (128,)
"""The bits of the vectors of the oldest CPU of a kind."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`out[i] = f(*(x[i] for x in inputs))`."""

    code: Loaded
    dtype: str
    arity: int
    optimized: str
    assembly: str

    def __call__(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        """The function over one-dimensional arrays of equal length."""
        arrays = [np.ascontiguousarray(x, self.dtype) for x in inputs]
        out = np.empty_like(arrays[0])
        self.bind(*arrays, out)()
        return out

    def bind(self, *arrays: NDArray[Any]) -> Callable[[], object]:
        """A call of the loop on these contiguous arrays of its dtype, the last of which it writes."""
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (self.arity + 1), ctypes.c_int64)(self.code.addresses["loop"])
        return partial(run, *(x.ctypes.data for x in arrays), arrays[-1].size)


def compile_loop(name: str, dtype: str, has_fma: bool = True, relaxed: bool = False) -> Loop:
    """The loop for the host's CPU; without `has_fma` for the oldest CPU of the kind, on x86 one with SSE2 alone.
    `relaxed` is for fast math.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text, arity = _loop_text(name, TYPES[dtype], has_fma, relaxed)
    machine = _machine(has_fma)
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    optimized, assembly = str(module), machine.emit_assembly(module)
    code = load(link([machine.emit_object(module)], ["loop"]), {}, ["loop"])
    return Loop(code, dtype, arity, optimized, assembly)


def _machine(has_fma: bool) -> Any:
    target = llvm.Target.from_triple(llvm.get_process_triple())
    plain = not has_fma and platform.machine().lower() in ("x86_64", "amd64")
    cpu = "x86-64" if plain else llvm.get_host_cpu_name()
    features = "" if plain else llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")


def _loop_text(name: str, type: ir.Type, has_fma: bool, relaxed: bool) -> tuple[str, int]:
    module = ir.Module()
    module.triple = llvm.get_process_triple()
    function = table.refer(module, name, type, relaxed)
    arity, index = len(function.args), ir.IntType(64)
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.PointerType()] * (arity + 1) + [index]), "loop")
    *pointers, count = loop.args
    for pointer in pointers:
        pointer.add_attribute("noalias")
    entry, body, done = (loop.append_basic_block(label) for label in ("entry", "body", "done"))
    builder = ir.IRBuilder(entry)
    builder.cbranch(builder.icmp_signed(">", count, index(0)), body, done)
    builder.position_at_end(body)
    i = builder.phi(index)
    places = [builder.gep(pointer, [i], source_etype=type) for pointer in pointers]
    result = builder.call(function, [builder.load(place, typ=type) for place in places[:-1]])
    builder.store(result, places[-1])
    following = builder.add(i, index(1))
    i.add_incoming(index(0), entry)
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, done)
    builder.position_at_end(done)
    builder.ret_void()
    table.define_called(module, has_fma, vector_widths() if has_fma else PLAIN_WIDTHS)
    return str(module), arity
