"""Object code of source in the generated language, as tests of the compiler want it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphc.codegen.llvm.module import IR, Prototype
from graphc.codegen.server.client import compile_request
from graphc.codegen.server.protocol import Request


def compile_source(
    source: str,
    functions: Sequence[Prototype],
    *,
    modules: Sequence[IR] = (),
    externals: Mapping[str, Prototype] = {},
    opt: int = 3,
    fast_math: bool = False,
) -> bytes:
    """An object that exports `functions`; `modules` of IR are linked in before optimisation."""
    given = tuple(functions), tuple(externals.items()), tuple(modules)
    return compile_request(Request(source, *given, (), opt, fast_math))
