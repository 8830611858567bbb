"""The floor plan of docs/design.md, read from the imports: who may know of whom, and what is imported when."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import graphc

PACKAGE = Path(graphc.__file__ or "").parent

FLOORS = """
garbage idle_blas errors record digest dtypes options values numerics

ir.loops ir.node ir.walk ir.sizes ir.text ir.parse ir.verify ir.passes ir

ops.elementwise ops.shape ops.scalar ops.recur ops.reduce ops.index ops.linalg ops.custom ops

autodiff interpret testing
tensor.variables tensor.elementary tensor.shaping tensor.creation tensor.indexing tensor.joining tensor.reductions
tensor.products tensor.nnet tensor
rewrite.engine rewrite.algebra rewrite.views rewrite.stable rewrite.linear rewrite.moments rewrite.pairs rewrite.scatter
rewrite.pipeline rewrite

codegen codegen.process codegen.forecast
codegen.templates codegen.loops_text codegen.loops_verify codegen.loop_passes
codegen.prototype codegen.chunks codegen.prelude codegen.simplify codegen.emit codegen.sizing
codegen.arena codegen.plan codegen.copies codegen.tiles codegen.cost codegen.operand codegen.sharing codegen.nests
codegen.schedule
codegen.callback
codegen.blas codegen.terms codegen.lower
codegen.lower_call codegen.lower_fold codegen.lower_recur codegen.lower_rows
codegen.parallel codegen.stream_ir codegen.streams codegen.merge codegen.forward codegen.narrow codegen.outline_find
codegen.outline_compare codegen.outline
codegen.coefficients codegen.real codegen.pairs codegen.vector_variants codegen.huge codegen.negative
codegen.exponential codegen.circular codegen.gamma codegen.log_gamma codegen.vecmath
codegen.llvm_binding codegen.target codegen.host codegen.image codegen.jit codegen.relocations
codegen.link
codegen.casts codegen.integers codegen.intrinsics codegen.math_calls codegen.loop_forms codegen.turns
codegen.vector_loop codegen.vectorize
codegen.primitives codegen.numba_lowering codegen.worker codegen.lean_numba codegen.compile codegen.counted
codegen.product_tiles codegen.product_packing codegen.product_threads codegen.product_streams codegen.pool_ir
codegen.product_vectors codegen.product_loops codegen.product_blocks codegen.product_batches codegen.products
codegen.split
codegen.recycling codegen.locks codegen.launch codegen.guard codegen.poison codegen.vectorcall
codegen.objects codegen.arguments codegen.callees codegen.scalars codegen.pool codegen.deferred codegen.entry
codegen.kernel codegen.program
codegen.files codegen.sources codegen.cache codegen.bundle codegen.parts codegen.produce codegen.build codegen.stages

shared convention layouts variants callables staged function

optim session

bench cli
"""
"""Every module, a paragraph a floor, each after all that it imports; a package's name stands for its `__init__`."""

COMPILER = {"codegen.intrinsics", "codegen.primitives", "codegen.numba_lowering", "codegen.worker"}
"""The only modules that may import numba; they are imported by each other, and late by `codegen.compile`."""

LATE = {
    ("", "graphc.ir.parse"),
    ("codegen.loop_passes", "graphc.codegen.loops_verify"),
    ("idle_blas", "numpy"),
    ("options", "difflib"),
    ("shared", "copy"),
    ("options", "warnings"),
    ("codegen.forecast", "graphc.codegen.process"),
    ("codegen.parts", "graphc.codegen.callees"),
    ("codegen.parts", "graphc.codegen.compile"),
    ("codegen.lean_numba", "graphc.codegen.llvm_binding"),
    ("codegen.build", "graphc.codegen.compile"),
    ("codegen.build", "graphc.codegen.produce"),
    ("codegen.build", "graphc.codegen.stages"),
    ("codegen.build", "graphc.codegen.target"),
    ("codegen.produce", "graphc.codegen.math_calls"),
    ("codegen.parts", "graphc.codegen.produce"),
    ("codegen.compile", "graphc.codegen.worker"),
    ("callables", "graphc.codegen.guard"),
    ("callables", "graphc.staged"),
    ("codegen.process", "tempfile"),
    ("codegen.lean_numba", "graphc.codegen.worker"),
    ("codegen.cache", "graphc.codegen.bundle"),
    ("codegen.image", "graphc.codegen.jit"),
    ("codegen.host", "graphc.codegen.target"),
    ("codegen.blas", "scipy.linalg.cython_blas"),
}
"""What is imported only when it is needed, by `import_module`: (module, what it imports)."""

LONGEST = 800
"""Lines of a file; a table may be long, a program should not be."""


def module_name(path: Path) -> str:
    """The name below `graphc`, that of a package for its `__init__`; "" for graphc itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
ORDER = FLOORS.split()
ROOTS = {"", "__main__"}
"""The package itself and its command: above all floors."""


@cache
def parse(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


def imports(tree: ast.AST) -> Iterator[str]:
    """The full names of all modules that `tree` imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = node.module or ""
            members = [f"{name}.{alias.name}" for alias in node.names]
            submodules = [member for member in members if member.removeprefix("graphc.") in MODULES]
            yield from submodules or [name]


def known(module: str) -> set[str]:
    """The modules of graphc that `module` imports."""
    return {name.removeprefix("graphc.") for name in imports(parse(module)) if name.startswith("graphc.")}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_every_module_has_its_floor() -> None:
    assert set(ORDER) == set(MODULES) - ROOTS
    assert len(ORDER) == len(set(ORDER))


@pytest.mark.parametrize("module", sorted(set(MODULES) - ROOTS))
def test_a_module_knows_only_what_stands_below_it(module: str) -> None:
    below = ORDER[: ORDER.index(module)] if module in ORDER else []
    assert known(module) <= set(below)


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_imported_inside_a_function(module: str) -> None:
    late = [name for function in functions(parse(module)) for name in imports(function)]
    assert late == []


@pytest.mark.parametrize("module", MODULES)
def test_no_private_name_is_borrowed(module: str) -> None:
    borrowed = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(parse(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphc")
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]
    assert borrowed == []


def test_late_imports_are_declared() -> None:
    names = ("import_module", "importlib.import_module", "__import__")
    calls = {
        (module, ast.literal_eval(node.args[0]))
        for module in MODULES
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    }
    assert calls == LATE


@pytest.mark.parametrize("package", ["numba", "scipy"])
def test_heavy_packages_are_imported_where_declared(package: str) -> None:
    importers = {module for module in MODULES if any(name.split(".")[0] == package for name in imports(parse(module)))}
    assert importers <= (COMPILER if package == "numba" else set())


def test_the_compiler_is_known_to_itself_only() -> None:
    assert {module for module in MODULES if known(module) & COMPILER} <= COMPILER


IMPORT = """
import sys
import graphc
heavy = {"numba", "scipy", "sklearn", "matplotlib", "tqdm", "difflib", "email", "unittest"}
print(sorted(heavy & set(sys.modules)))
"""


def test_importing_graphc_imports_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WARM_START = """
import sys
import numpy as np
before = set(sys.modules)
import graphc
import graphc.tensor as T
x, w = T.dmatrix("x"), graphc.shared(np.ones((3, 2)), name="w")
cost = graphc.nnet.sigmoid(T.dot(x, w)).mean()
f = graphc.function([x], cost, updates=[(w, w - graphc.grad(cost, w))])
f(np.ones((4, 3)))
print(f.built.report.origin, *sorted(set(sys.modules) - before))
"""
STANDARD = """
__future__ _blake2 atexit errno gc marshal mmap
"""
"""What graphc may import beside itself and NumPy when it finds a graph in the cache: each is a part of every start."""
NOT_WARM = """
codegen.bundle codegen.compile codegen.emit codegen.jit codegen.link codegen.lower codegen.plan codegen.produce
codegen.program codegen.schedule codegen.simplify codegen.target codegen.worker ir.parse optim rewrite session testing
"""


def test_a_warm_start_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path)}
    for origin in ("compiled", "cache"):
        done = subprocess.run(
            [sys.executable, "-c", WARM_START], capture_output=True, text=True, check=True, env=environment
        )
        found, *modules = done.stdout.split()
        assert found == origin
    assert {name for name in modules if name.partition(".")[0] != "graphc"} <= set(STANDARD.split())
    assert not {f"graphc.{name}" for name in NOT_WARM.split()} & set(modules)


def test_names_say_what_is_in_a_module() -> None:
    vague = {"base", "common", "core", "helpers", "misc", "utils"}
    words = {word for module in MODULES for word in re.split(r"[._]", module) if word}
    assert not words & vague
    assert not [module for module in MODULES if re.search(r"\d", module)]


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_comes_in_and_what_goes_out(module: str) -> None:
    assert ast.get_docstring(parse(module)), f"{module} has no docstring"


@pytest.mark.parametrize("module", MODULES)
def test_files_are_of_a_readable_length(module: str) -> None:
    assert len(MODULES[module].read_text("utf-8").splitlines()) <= LONGEST
