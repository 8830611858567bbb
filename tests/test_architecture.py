"""The floor plan of docs/design.md, read from the imports: who may know of whom, and what is imported when."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import pytest

import graphc
from graphc.startup.hooks import HOOKS, Hooks

PACKAGE = Path(graphc.__file__ or "").parent

ROOMS = """
startup errors options arrays trees loopir ir ops autodiff testing tensor control tensor.linalg
tensor.nnet tensor.signal tensor.__init__ tensor.forms tensor.dispatch rewrite codegen.__init__ codegen.routines
codegen.llvm codegen.link codegen.threads codegen.vecmath codegen.vectorize codegen.gemm codegen.convolution
codegen.lapack codegen.sort codegen.fourier codegen.special codegen.call codegen.transform codegen.schedule
codegen.lower codegen.frontend codegen.server
codegen.cache codegen.pipeline shared random sparse functions inspection tracing lax tree tree_util flatten_util
optimizers numpy autograd scipy nn theano
printing optim session preprocess layers train distributed pytensor pymc bench cli
"""
"""The rooms from the lowest to the highest: folders, modules that stand alone, and doors (`__init__` of a package that
shows what stands higher than its other modules). A module knows those of its own room and of lower rooms, and no
modules know each other in a circle."""

COMPILER = {
    "codegen.frontend.intrinsics",
    "codegen.frontend.primitives",
    "codegen.frontend.lowering",
    "codegen.frontend.parse",
    "codegen.server.worker",
}
"""The only modules that may import numba; they are imported by each other, and late by `codegen.server.client`."""

UPWARD = {
    ("arrays.incomplete", "scipy.special"),
    ("arrays.dtypes", "pickle"),
    ("arrays.numerics", "scipy.special"),
    ("cli", "importlib.metadata"),
    ("cli", "numpy"),
    ("cli", "platform"),
    ("codegen.cache.manage", "fnmatch"),
    ("codegen.cache.manage", "zipfile"),
    ("codegen.call.callback", "numba"),
    ("codegen.call.recipes", "dataclasses"),
    ("codegen.gemm", "scipy.linalg.cython_blas"),
    ("codegen.gemm", "scipy.linalg.cython_lapack"),
    ("codegen.server.process", "tempfile"),
    ("codegen.special", "scipy"),
    ("codegen.special", "scipy.special.cython_special"),
    ("distributed.fits", "scipy.optimize"),
    ("functions.callables", "inspect"),
    ("functions.archive", "_json"),
    ("functions.archive", "json"),
    ("functions.pointer", "scipy"),
    ("ir.call_errors", "inspect"),
    ("ops.linalg.equations", "scipy.linalg"),
    ("ops.linalg.equations", "scipy.linalg.lapack"),
    ("ops.scalar", "scipy.special"),
    ("ops.custom", "scipy.special"),
    ("options", "difflib"),
    ("options", "warnings"),
    ("scipy.special.addressed", "scipy.special"),
    ("scipy.special.composed", "scipy.special"),
    ("scipy.integrate.initial_values", "scipy.integrate"),
    ("scipy.interpolate.splines", "scipy.interpolate"),
    ("scipy.interpolate.splines", "scipy.interpolate"),
    ("scipy.signal", "scipy.signal"),
    ("scipy.signal", "scipy.signal.windows"),
    ("shared", "copy"),
    ("sparse.variable", "scipy.sparse"),
    ("startup.process", "numpy"),
    ("startup.versions", "warnings"),
    ("tracing.variants", "logging"),
    ("train.trainer", "matplotlib.figure"),
    ("train.trainer", "tqdm"),
    ("tracing.saved_calls", "inspect"),
}
"""Late imports of other packages: (module, what it imports). There are none of what stands higher: hooks are filled."""

BY_NAME = {
    "codegen.routines", "scipy.exchange", "scipy.named", "startup.hooks",
    "theano.paths", "tracing.interface",
}  # fmt: skip
"""The modules that import what tables, import statements and pickles name: those of packages, families of routines, and
the public door, which says who fills a hook."""

ON_TOP = {
    "distributed": {
        "ir.call_errors": "explain_all",
        "optimizers": "Optimizer apply_updates",
        "scipy": "optimize special",
        "scipy.optimize": "driven",
        "scipy.optimize.minima": "OPTIONS",
        "scipy.optimize.parameters": "Packing read_constraints",
        "startup.versions": "digest_of",
        "startup.record": "record",
        "tree": "ravel_pytree",
    },
    "layers": {
        "ir.call_errors": "explain_all",
        "ir.node": "describe",
        "shared": "Parameters",
        "startup.record": "record",
        "tensor.shaping": "normalise_axes",
    },
    "optim": {"ir.call_errors": "explain_all", "ir.node": "describe"},
    "preprocess": {"ir.call_errors": "explain_all"},
    "pymc": {
        "functions": "factory",
        "functions.pointer": "Pointer",
        "ir.node": "Array",
        "startup.versions": "digest_of",
        "startup.record": "record",
    },
    "pytensor": {
        "control.batch": "batched",
        "ir.interpret": "interpret",
        "ir.node": "LEAVES Size constant_value variable",
        "ir.walk": "as_size_node",
        "ops.identity": "checked",
        "ops.derivative": "grad_clip grad_scale overridden undefined_grad zero_grad",
        "startup.record": "record",
    },
    "session": {
        "arrays.dtypes": "as_array check_dtype floating is_float natural_dtype promote",
        "ir.call_errors": "explain_all",
        "ir.interpret": "interpret",
        "ir.node": "Array Size Type user_line",
        "ir.walk": "reachable substitute toposort",
        "startup.record": "record",
    },
    "train": {
        "ir.call_errors": "explain_all explained",
        "startup.hooks": "HOOKS lazily",
        "startup.record": "record replace",
    },
}
"""The rooms that are made with graphc as a user's program would be, and all that they need below what is public."""

LONGEST, LONGEST_FUNCTION = 800, 70
"""Lines of a file, and of a function; a table may be long, a program should not be."""


def module_name(path: Path) -> str:
    """The name below `graphc`, that of a package for its `__init__`; "" for graphc itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
STUBS = {module_name(path) for path in PACKAGE.rglob("*.pyi")}
"""What type checkers know of tables (test_stubs.py): on no floor, since nothing imports them."""
PACKAGES = {module for module, path in MODULES.items() if path.name == "__init__.py"}
ORDER = ROOMS.split()
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
    """The modules of graphc that `module` imports; not what a package shows to type checkers alone."""
    shown = [part for part in parse(module).body if ast.unparse(getattr(part, "test", part)) == "TYPE_CHECKING"]
    rest = [part for part in parse(module).body if module not in PACKAGES or part not in shown]
    names = imports(ast.Module(rest, []))
    return {name.removeprefix("graphc.") for name in names if name.startswith("graphc.")} - STUBS


def public_objects() -> set[int]:
    """The objects that users find under public names, without what explains errors around them."""
    names = """
        tensor tensor.nnet tensor.linalg tensor.signal.conv tensor.signal.pool random random.streams sparse
        control.functional optim errors
    """
    found = set()
    for module in (graphc, *(import_module(f"graphc.{name}") for name in names.split())):
        listed = getattr(module, "__all__", ())
        for name in listed or dir(module):
            value = unwrap(getattr(module, name))
            if listed or getattr(value, "__module__", "") == module.__name__:
                found.add(id(value))
    return found


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def room(module: str) -> str:
    """The entry of `ROOMS` that a module belongs to: the longest that its name begins with."""
    name = f"{module}.__init__" if module in PACKAGES else module
    return max((entry for entry in ORDER if f"{name}.".startswith(f"{entry}.")), key=len, default="")


def test_every_module_is_in_a_room() -> None:
    assert not [module for module in set(MODULES) - ROOTS if not room(module)]
    assert set(ORDER) <= {room(module) for module in MODULES}
    assert len(ORDER) == len(set(ORDER))


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(set(MODULES) - ROOTS))
def test_a_module_knows_only_its_own_and_lower_rooms(module: str) -> None:
    height = ORDER.index(room(module))
    assert not {other for other in known(module) if other in ROOTS or ORDER.index(room(other)) > height}


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_imported_inside_a_function(module: str) -> None:
    late = [name for function in functions(parse(module)) for name in imports(function)]
    assert late == []


@pytest.mark.slow
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


@pytest.mark.slow
def test_rooms_on_top_use_what_is_public() -> None:
    public, found = public_objects(), dict[str, dict[str, set[str]]]()
    for module in sorted(MODULES):
        top = module.partition(".")[0]
        for node in ast.walk(parse(module)) if top in ON_TOP else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphc."):
                home = str(node.module).removeprefix("graphc.")
                for name in [each.name for each in node.names if home.partition(".")[0] not in ON_TOP]:
                    if f"{home}.{name}" in MODULES:
                        is_public = home.startswith("tensor")
                    else:
                        is_public = id(unwrap(getattr(import_module(f"graphc.{home}"), name))) in public
                    if not is_public:
                        found.setdefault(top, {}).setdefault(home, set()).add(name)
    assert found == {top: {home: set(names.split()) for home, names in homes.items()} for top, homes in ON_TOP.items()}


@pytest.mark.slow
def test_no_modules_know_each_other_in_a_circle() -> None:
    TopologicalSorter({module: known(module) for module in MODULES}).prepare()


def late_imports(module: str) -> set[str]:
    """What a module imports when it is needed, by `import_module`: full names."""
    names = ("import_module", "importlib.import_module", "__import__")
    calls = (node for node in ast.walk(parse(module)) if isinstance(node, ast.Call))
    return {ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) in names}


@pytest.mark.slow
def test_late_imports_go_down_or_are_declared() -> None:
    found = set()
    for module in set(MODULES) - ROOTS - BY_NAME:
        for name in late_imports(module):
            inside = name.removeprefix("graphc.")
            if name == inside or ORDER.index(room(inside)) > ORDER.index(room(module)):
                found.add((module, name))
    assert found == UPWARD


def reached(module: str) -> set[str]:
    """The modules of graphc that a module imports, at once or when they are needed."""
    own = {name for name in late_imports(module) if name.startswith("graphc.")} if module not in BY_NAME else set()
    late = {name.removeprefix("graphc.") for name in own}
    tables = [part for part in parse(module).body if ast.unparse(part).startswith(("LAZY = {", "LATER = {"))]
    named = {f"{module}.{name}" for table in tables for name in ast.literal_eval(getattr(table, "value"))}  # noqa: B009
    return known(module) | ((late | named) & set(MODULES))


@pytest.mark.slow
def test_no_modules_know_each_other_in_a_circle_of_late_imports() -> None:
    TopologicalSorter({module: reached(module) for module in set(MODULES) - ROOTS}).prepare()


def test_every_hook_is_declared_and_filled() -> None:
    for name, module in HOOKS.modules.items():
        assert name in Hooks.__annotations__ and getattr(HOOKS, name) is not None
        assert vars(HOOKS)[name] is getattr(HOOKS, name), f"{module} fills it"
    assert set(Hooks.__annotations__) - set(HOOKS.modules) == {"default_mode", "default_profile"}


@pytest.mark.slow
@pytest.mark.parametrize("package", ["numba", "scipy"])
def test_heavy_packages_are_imported_where_declared(package: str) -> None:
    importers = {module for module in MODULES if any(name.split(".")[0] == package for name in imports(parse(module)))}
    assert importers <= (COMPILER | {"functions.numba_calls"} if package == "numba" else set())


@pytest.mark.slow
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
"""What graphc may import besides itself and NumPy when it finds a graph in the cache: each is a part of every start."""
NOT_WARM = """
tensor.arranging tensor.contraction tensor.nnet.losses tensor.selecting tensor.special
functions.states codegen.convolution
codegen.call.launch_python codegen.gemm.dispatch codegen.lapack codegen.sort codegen.fourier
codegen.special codegen.server.client loopir.syntax
codegen.link.elf codegen.lower.elements codegen.schedule.plan codegen.schedule.scheduler
codegen.pipeline.program codegen.transform.passes codegen.llvm.target
codegen.server.worker control.batch control.updates functions.wrappers inspection ir.expression ir.parse ir.pickling
lax loopir.ir loopir.operators numpy ops.conv ops.lines ops.linalg.factor ops.linalg.routine ops.windows optim rewrite
session tensor.dispatch tensor.forms testing theano tracing
"""


@pytest.mark.slow
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
    assert {*NOT_WARM.split()} <= {*MODULES}


SOURCES = """
import sys
import numpy as np
import graphc
import graphc.tensor as T
x, w = T.dmatrix("x"), graphc.shared(np.ones((3, 2)), name="w")
cost = graphc.nnet.sigmoid(T.dot(x, w)).mean()
f = graphc.function([x], cost, updates=[(w, w - graphc.grad(cost, w))])
g = graphc.function([x], cost, mode="python")
g(np.ones((4, 3)))
assert "def kernel" in f.source and "plan:" in f.explain() and g.source and g.explain()
print(f.built.report.origin, *sorted(sys.modules))
"""
COMPILING = """
llvmlite numba graphc.codegen.llvm.target graphc.codegen.llvm.builder
graphc.codegen.call.entry graphc.codegen.call.objects graphc.codegen.call.exits graphc.codegen.frontend.lowering
graphc.codegen.gemm.dispatch graphc.codegen.gemm.blocked graphc.codegen.link.elf graphc.codegen.pipeline.compilation
graphc.codegen.server.client
graphc.codegen.threads.pool graphc.codegen.vecmath graphc.codegen.vectorize
"""


@pytest.mark.slow
def test_a_source_is_generated_without_what_compiles_it(tmp_path: Path) -> None:
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(tmp_path)}
    for origin in ("compiled", "cache"):
        command = [sys.executable, "-c", SOURCES]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found, *modules = done.stdout.split()
        assert found == origin
    assert not set(COMPILING.split()) & set(modules)
    assert "graphc.codegen.pipeline.program" in modules


TABLES = {
    "trees.REGISTERED", "codegen.llvm.typed.ELEMENTS", "ir.body._bodies",
    "ir.node.NODES", "ir.node._owners", "ir.verify._watchers", "ir.source_lines.LEFT",
    "ir.source_lines.GIVEN", "ir.source_lines.TRACED",
    "ops.elementwise.ROWS", "ops.linalg.routine.ROUTINES", "scipy.special.composed._FLOATS",
    "scipy.special.composed._INTEGERS", "pytensor.linker.WARNED", "pytensor.table.NESTED",
    "pytensor.table.ROWS", "session._default", "session._gradients", "sparse.variable.METHODS",
    "tensor.creations.BOUND", "tensor.creations.KEPT", "tensor.creations.REPLACED",
    "tensor.indexing._selections", "theano.flags.ADDED", "theano.flags.VALUES", "theano.user_ops._performers",
    "tracing.callbacks._TAKEN", "tracing.loop_plans.SWAPPED", "tracing.rewritten.REWRITTEN",
}  # fmt: skip
"""What is filled in modules: tables of functions and ops, graphs, and what a session is about."""


@pytest.mark.slow
def test_the_state_of_a_process_is_one_object() -> None:
    makers = {"dict", "list", "set", "deque", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "Interned"}
    found = set()
    for module in MODULES:
        assert not [node for node in ast.walk(parse(module)) if isinstance(node, ast.Global)]
        for node in parse(module).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                value = node.value
                empty = isinstance(value, ast.List) or (isinstance(value, ast.Dict) and not value.keys)
                if empty or (isinstance(value, ast.Call) and ast.unparse(value.func) in makers and not value.args):
                    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                    found.add(f"{module}.{ast.unparse(target)}")
    assert {name for name in found if not name.endswith("__all__")} == TABLES


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


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_functions_are_of_a_readable_length(module: str) -> None:
    spans = {each.name: (each.end_lineno or 0) - each.lineno + 1 for each in functions(parse(module))}
    assert not {name: span for name, span in spans.items() if span > LONGEST_FUNCTION}


def test_names_of_test_files_are_unique() -> None:
    """pytest imports them by their names alone."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
