"""Work to compile is in proportion to the program, in every family of programs that grow: counted, never timed."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

import graphc
import graphc.lax
import graphc.numpy
import graphc.random
from benchmarks.growth.families import FAMILIES
from graphc.codegen.call.entry import entry_ir
from graphc.codegen.frontend.lowering import lower_modules
from graphc.codegen.pipeline import program
from graphc.codegen.pipeline.program import Program, generate
from graphc.codegen.transform.outline_regions import BLOCK_OPS
from tests.support.counting import calls_made

FACTOR = 2.2
"""The most work for a program twice as large."""
MOST_LINES = 2500
"""Of LLVM's text for one function: of an operator outside loops 1 or 2, in loops over vectors 4 to 8."""


def generated(name: str, size: int) -> Program:
    """Trace the program of a family and generate its source."""
    found: list[Program] = []

    def noted(*args: Any) -> Program:
        found.append(generate(*args))
        return found[-1]

    function, arguments = FAMILIES[name].build(graphc, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "generate", noted)
        graphc.jit(function, mode="python")(*arguments)
    return found[-1]


def lowered(made: Program) -> list[str]:
    """The modules that LLVM is given."""
    return [module.ir for module in lower_modules(made.source, made.prototypes, made.externals, False)]


def work_of(name: str, size: int) -> dict[str, int]:
    """Calls of functions until there is source, and from there to LLVM's text; lines of that, and of the entry point.
    No function is long but the kernel, which calls the others and computes next to nothing."""
    programs, modules = list[Program](), list[str]()
    generating = calls_made(lambda: programs.append(generated(name, size)))
    to_llvm = calls_made(lambda: modules.extend(lowered(programs[0])))
    functions = [text for module in modules for text in f"\n{module}".split("\ndefine ")[1:]]
    (kernel,) = (text for text in functions if '@"kernel"' in text.split("(")[0])
    assert max(text.count("\n") for text in functions if text is not kernel) <= MOST_LINES
    assert name != "scalars" or len(re.findall(r" f(?:add|sub|mul|div) | @gc_", kernel)) <= BLOCK_OPS
    lines = sum(text.count("\n") for text in functions)
    entry = entry_ir(programs[0].signature, whole=False).count("\n")
    return {"generating": generating, "lowering": to_llvm, "lines": lines, "entry": entry}


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """What is imported late, and caches of templates, are no family's work."""
    lowered(generated("sums", 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_work_is_in_proportion_to_the_program(name: str) -> None:
    small, large = map(partial(work_of, name), (FAMILIES[name].small, 2 * FAMILIES[name].small))
    for what, count in small.items():
        assert large[what] <= FACTOR * count, (what, small, large)
