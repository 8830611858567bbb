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
startup             digest finder garbage idle_blas lazy once paths process record versions __init__
.                   errors
arrays              dtypes __init__
.                   options configdefaults configparser
arrays              portable numerics values trees jets incomplete
loops               operators ir build names syntax unparse text visit assigned verify __init__
ir                  frozen samples where traced fresh called symbol writes kind node lowering call walk tags body
                    interpret passes signs sizes closure text parse verify apply expression pickling __init__
ops                 elementwise plain_shape questions missing custom special scalar shape in_place checked index scaled
                    recur segment reduce masks
ops.linalg          __init__ products derivatives routine cotangents factor spectral equations matrices
ops                 conv assemble scan branch given sinking derivative shifts windows order __init__
.                   autodiff testing
tensor              variables elementary shaping masks keys creation ranges indexing joining reductions products
tensor.nnet         activations normalization bn losses rows regularization blocksparse scores upsampling
tensor.signal       pool downsample
tensor              absent constants special arithmetic selecting order quantiles binning counts sets arranging padding
                    grids statistics calculus polynomials contraction inspection elemwise assertion
tensor.nnet         neighbours sliding abstract_conv images conv films __init__
tensor              __init__ dispatch
tensor.signal       conv __init__
control             derivative loop states updates scan branch functional batch __init__
tensor.linalg       factors functions equations structured polynomials __init__ nlinalg slinalg
tensor.nnet         ctc attention
.                   ifelse
rewrite.rules       __init__ engine algebra matrices positive views stable linear moments pairs scatter
rewrite.loops       __init__ open_loops rows products recurrences steps expensive_steps passes branches equal_steps
                    rolling
rewrite             regions pipeline __init__
codegen             __init__
codegen.llvm        unsupported module typed builder functions poison cpu binding target split values
                    integers __init__
codegen.link        image lljit relocations elf __init__
codegen.threads     chunking nontemporal pool settings __init__
codegen.vecmath     coefficients lanes floats abi double exponential payne_hanek reflection trigonometric portable
                    philox gamma log_gamma table outofline __init__
codegen.vectorize   loopinfo legality widen vectorizer __init__
codegen.gemm        api prototypes context lazy microkernel packing gemv_kernels gemv small blocked batched
                    conv_tables conv_tiles conv_copies conv_lines conv_dots conv_groups convolution dispatch __init__
codegen.lapack      api fortran elimination orthogonal equations batch __init__
codegen.order       api lines rows batch __init__
codegen.special     api batch __init__
codegen.call        callback locks layout result_memory signature launch_python bind objects check_arguments scalars
                    adopt guard_pages native_op vectorcall interrupt signals entry pointer pointer_ir __init__
codegen.schedule    memory sizes labels plan listing accumulators cost strided work steps branches extremes fusion
                    blocks nests inplace materialize scheduler __init__
codegen.lower       tiling access scopes elements lowerer nests calls reductions recurrences segments fused bodies steps
                    branches parts __init__
codegen.transform   passes horizontal simplify privatize independence parallelize fuse forwarding copies registers
                    unroll double_buffers partial_sums polls nontemporal outline_regions outline_merge outline jam
                    __init__
codegen.frontend    language constructs recognize emit intrinsics primitives lowering __init__
codegen.server      process prestart protocol worker numba_subset client __init__
codegen.cache       files key store bundle __init__
codegen.pipeline    kernel program generation runtime compilation build beside stages __init__
.                   shared
random              bits slopes distributions implicit rejection multivariate orders __init__ streams raw categories
sparse              variable structure arithmetic __init__
functions           convention check_arguments layouts variants usage callables lowered native making staged
                    wrapped counted states nested checked pointer recall __init__
.                   function gradient updates inspection
tracing             arguments traced derivatives batches __init__
numpy               named linalg __init__
gof                 graph test_values op fg null_type type opclasses recognised sparse_ops optdb tensor_basic fft
                    synonyms python tried saved replacing shapes __init__
compile             builders ops mode io sharedvalue pfunc function_module debugmode nanguardmode __init__
scalar              ops composite __init__ basic
printing            drawing __init__ monitormode
.                   optim session preprocess
layers              initial layer dense norm recurrent spatial sequential __init__
train               checkpoint trainer plots estimator __init__
pytensor            unknown scalars table tensors matrices loops walk linker __init__
pymc                identity model sampler __init__
.                   bench cli
"""
"""The rooms from the lowest to the highest, each with its modules: a module stands above all that it imports. `.` is
graphc itself, which has modules on several floors. So no two rooms can be tied both ways."""

COMPILER = {
    "codegen.frontend.intrinsics",
    "codegen.frontend.primitives",
    "codegen.frontend.lowering",
    "codegen.server.worker",
}
"""The only modules that may import numba; they are imported by each other, and late by `codegen.server.client`."""

LATE = {
    ("", "graphc.compile"),
    ("", "graphc.configdefaults"),
    ("", "graphc.configparser"),
    ("", "graphc.optim"),
    ("", "graphc.session"),
    ("", "graphc.random"),
    ("", "graphc.sandbox"),
    ("", "graphc.layers"),
    ("", "graphc.preprocess"),
    ("", "graphc.sparse"),
    ("", "graphc.train"),
    ("train.trainer", "graphc.train.plots"),
    ("train.trainer", "tqdm"),
    ("train.plots", "matplotlib.figure"),
    ("shared", "graphc.random.streams"),
    ("shared", "graphc.sparse"),
    ("arrays.values", "pickle"),
    ("arrays.numerics", "graphc.arrays.portable"),
    ("arrays.numerics", "scipy.special"),
    ("arrays.incomplete", "scipy.special"),
    ("ops.linalg.equations", "scipy.linalg"),
    ("ops.linalg.equations", "scipy.linalg.lapack"),
    ("sparse.variable", "scipy.sparse"),
    ("codegen.pipeline.beside", "graphc.ir.parse"),
    ("functions.variants", "graphc.codegen.pipeline.beside"),
    ("", "graphc.functions.checked"),
    ("", "graphc.printing"),
    ("", "graphc.gof"),
    ("", "graphc.gradient"),
    ("", "graphc.ir.parse"),
    ("", "graphc.scalar"),
    ("", "graphc.scan_module"),
    ("scalar", "graphc.scalar.basic"),
    ("", "graphc.gof.tensor_basic"),
    ("ir.called", "inspect"),
    ("tensor", "graphc.gof.tensor_basic"),
    ("gradient", "graphc.gof.opclasses"),
    ("ifelse", "graphc.gof.opclasses"),
    ("tensor.nnet.abstract_conv", "graphc.gof.opclasses"),
    ("tensor.nnet", "graphc.gof.opclasses"),
    ("", "graphc.updates"),
    ("configdefaults", "graphc.gof.test_values"),
    ("configdefaults", "graphc.rewrite.pipeline"),
    ("function", "graphc.functions.states"),
    ("functions.callables", "graphc.compile.function_module"),
    ("functions.callables", "graphc.functions.states"),
    ("options", "graphc.configdefaults"),
    ("tensor", "graphc.tensor.dispatch"),
    ("", "graphc.gof.graph"),
    ("", "graphc.gof.replacing"),
    ("", "graphc.startup.paths"),
    ("", "graphc.inspection"),
    ("functions.making", "graphc.ir.pickling"),
    ("ir.node", "graphc.ir.apply"),
    ("ir.node", "graphc.ir.expression"),
    ("ir.node", "graphc.ir.pickling"),
    ("ir.apply", "graphc.gof.op"),
    ("ir.apply", "graphc.gof.recognised"),
    ("codegen.transform.passes", "graphc.loops.verify"),
    ("loops", "graphc.loops.ir"),
    ("startup.idle_blas", "numpy"),
    ("startup.versions", "warnings"),
    ("options", "difflib"),
    ("shared", "copy"),
    ("tensor", "graphc.tensor.absent"),
    ("tensor.nnet", "graphc.tensor.absent"),
    ("ops.special", "scipy.special"),
    ("codegen.special.api", "scipy"),
    ("codegen.special.api", "scipy.special.cython_special"),
    ("ops.scalar", "scipy.special"),
    ("options", "warnings"),
    ("codegen.server.prestart", "graphc.codegen.server.process"),
    ("codegen.pipeline.build", "graphc.codegen.lapack.api"),
    ("codegen.pipeline.build", "graphc.codegen.order.api"),
    ("codegen.pipeline.build", "graphc.codegen.special.api"),
    ("pytensor.matrices", "graphc.ops.linalg.equations"),
    ("pytensor.tensors", "graphc.gof.fft"),
    ("functions.lowered", "graphc.ops.linalg.routine"),
    ("codegen.pipeline.runtime", "graphc.codegen.call.entry"),
    ("codegen.pipeline.runtime", "graphc.codegen.server.client"),
    ("codegen.server.numba_subset", "graphc.codegen.llvm.binding"),
    ("codegen.pipeline.build", "graphc.codegen.server.client"),
    ("codegen.pipeline.build", "graphc.codegen.pipeline.compilation"),
    ("codegen.pipeline.build", "graphc.codegen.pipeline.generation"),
    ("codegen.pipeline.build", "graphc.codegen.pipeline.stages"),
    ("codegen.pipeline.build", "graphc.codegen.llvm.target"),
    ("codegen.pipeline.compilation", "graphc.codegen.vecmath.outofline"),
    ("codegen.pipeline.runtime", "graphc.codegen.pipeline.compilation"),
    ("codegen.server.client", "graphc.codegen.server.worker"),
    ("functions.native", "graphc.codegen.call.guard_pages"),
    ("functions.lowered", "graphc.codegen.call.launch_python"),
    ("function", "graphc.functions.checked"),
    ("functions.making", "graphc.functions.staged"),
    ("functions.making", "graphc.functions.counted"),
    ("codegen.call.callback", "graphc.codegen.call.native_op"),
    ("codegen.call.native_op", "numba"),
    ("function", "graphc.functions.nested"),
    ("ops.scan", "graphc.control.batch"),
    ("autodiff", "graphc.tracing"),
    ("", "graphc.tracing"),
    ("", "graphc.numpy"),
    ("ops.branch", "graphc.control.batch"),
    ("codegen.server.process", "tempfile"),
    ("codegen.server.numba_subset", "graphc.codegen.server.worker"),
    ("codegen.cache.store", "graphc.codegen.cache.bundle"),
    ("codegen.link.image", "graphc.codegen.link.lljit"),
    ("codegen.llvm.cpu", "graphc.codegen.llvm.target"),
    ("pymc", "graphc.pymc.sampler"),
    ("codegen.gemm.api", "scipy.linalg.cython_blas"),
    ("codegen.gemm.api", "scipy.linalg.cython_lapack"),
}
"""What is imported only when it is needed, by `import_module`: (module, what it imports)."""

LAZILY = "startup.lazy"
"""The module that imports those of a package whose names are asked for: the packages say which these are."""

LONGEST = 800
"""Lines of a file; a table may be long, a program should not be."""


def module_name(path: Path) -> str:
    """The name below `graphc`, that of a package for its `__init__`; "" for graphc itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def in_order(floors: str) -> Iterator[str]:
    """The names of all modules below graphc, from the lowest to the highest."""
    room = ""
    for line in floors.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            room = words.pop(0).removeprefix(".")
        for word in words:
            yield room if word == "__init__" else f"{room}.{word}".removeprefix(".")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
STUBS = {module_name(path) for path in PACKAGE.rglob("*.pyi")}
"""What type checkers know of tables (test_stubs.py): on no floor, since nothing imports them."""
PACKAGES = {module for module, path in MODULES.items() if path.name == "__init__.py"}
ORDER = list(in_order(FLOORS))
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


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_every_module_has_its_floor() -> None:
    assert set(ORDER) == set(MODULES) - ROOTS
    assert len(ORDER) == len(set(ORDER))


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted(set(MODULES) - ROOTS))
def test_a_module_knows_only_what_stands_below_it(module: str) -> None:
    below = ORDER[: ORDER.index(module)] if module in ORDER else []
    assert known(module) <= set(below)


def room(module: str) -> str:
    """The package of a module; "" for the modules of graphc itself, each of which stands alone."""
    return module if module in PACKAGES else module.rpartition(".")[0]


@pytest.mark.slow
def test_no_two_rooms_are_tied_both_ways() -> None:
    """But for what a package gives of those within it: its `__init__` alone may know them."""
    ties = {
        (room(module), room(other))
        for module in MODULES
        for other in known(module)
        if room(module) != room(other) and not (module in PACKAGES and other.startswith(f"{module}."))
    }
    assert {(one, other) for one, other in ties if one and (other, one) in ties and other} == set()


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
def test_late_imports_are_declared() -> None:
    names = ("import_module", "importlib.import_module", "__import__")
    calls = {
        (module, ast.literal_eval(node.args[0]))
        for module in set(MODULES) - {LAZILY, "startup.finder"}
        for node in ast.walk(parse(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    }
    assert calls == LATE


@pytest.mark.slow
@pytest.mark.parametrize("package", ["numba", "scipy"])
def test_heavy_packages_are_imported_where_declared(package: str) -> None:
    importers = {module for module in MODULES if any(name.split(".")[0] == package for name in imports(parse(module)))}
    assert importers <= (COMPILER if package == "numba" else set())


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
tensor.absent tensor.arithmetic tensor.contraction tensor.nnet.losses tensor.padding tensor.selecting tensor.special
compile configdefaults functions.states gof gradient scalar updates
codegen.cache.bundle codegen.call.launch_python codegen.gemm.prototypes codegen.lapack.api codegen.order.api
codegen.special.api codegen.server.client codegen.frontend.emit
codegen.link.lljit codegen.link.elf codegen.lower.lowerer codegen.schedule.plan codegen.schedule.scheduler
codegen.pipeline.generation codegen.pipeline.program codegen.transform.simplify codegen.llvm.target
codegen.server.worker control.batch functions.nested gof inspection ir.apply ir.expression ir.parse ir.pickling
loops.ir loops.operators numpy ops.conv ops.linalg.factor ops.linalg.routine ops.segment ops.windows optim rewrite
session tensor.dispatch testing tracing
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
llvmlite numba graphc.codegen.llvm.binding graphc.codegen.llvm.target graphc.codegen.llvm.builder
graphc.codegen.call.entry graphc.codegen.call.objects graphc.codegen.call.signals graphc.codegen.frontend.lowering
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
    assert "graphc.codegen.pipeline.generation" in modules


TABLES = {
    "codegen.llvm.typed.ELEMENTS", "configdefaults.ADDED", "gof.op._performers", "ir.body._bodies",
    "ir.node._interned", "ir.node._owners", "ir.passes._watchers", "ir.symbol.FUNCTIONS", "ir.traced.LEFT",
    "ir.traced.TRACED",
    "ops.elementwise.ROWS", "ops.linalg.routine.ROUTINES", "pytensor.linker.WARNED", "pytensor.table.NESTED",
    "pytensor.table.ROWS", "session._default", "session._gradients", "sparse.variable.METHODS",
    "tensor.indexing._selections",
}  # fmt: skip
"""What is filled in modules: tables of functions and ops, graphs, and what a session is about."""


@pytest.mark.slow
def test_the_state_of_a_process_is_one_object() -> None:
    makers = {"dict", "list", "set", "deque", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
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
