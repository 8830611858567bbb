"""The option `target`: kernels for older processors than this one, which it can run as well, are right there too."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import graphc
from graphc.codegen.llvm import cpu, target
from graphc.codegen.llvm.target import llvm
from graphc.codegen.pipeline import build
from graphc.options import options
from graphc.startup.process import PROCESS

VARIANTS = {"skylake-avx512": [4, 8], "haswell": [4, 8], "x86-64": [2, 4]}
"""How many lanes of float64 the guard of log_gamma is made for: those of one vector, and of two."""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="they are of another kind")


def require(name: str) -> None:
    """Skip a test of what is newer than this machine."""
    try:
        target.processor(name)
    except graphc.GraphcError as error:
        pytest.skip(str(error))


def run_python(code: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    folders = os.pathsep.join(sys.path)
    own = {**os.environ, "PYTHONPATH": folders, "GRAPHC_CACHE_DIR": str(tmp_path), **environment}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=own, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_random_programs_and_sums(name: str, tmp_path: Path) -> None:
    require(name)
    code = f"""
        from graphc.codegen.llvm.target import has_avx512, has_fma
        assert has_avx512() == {name == "skylake-avx512"} and has_fma() == {name in {"haswell", "skylake-avx512"}}
        import re
        import numpy as np
        import graphc
        from tests.codegen.lower import test_reductions
        from tests.programs import test_wide_programs
        from graphc.arrays import numerics
        x = graphc.tensor.dvector("x")
        machine_code = graphc.function([x], graphc.tensor.exp(x).sum()).assembly
        assert "zmm" not in machine_code and ("ymm" in machine_code) == has_fma()
        gammaln = graphc.function([x], graphc.tensor.gammaln(x))
        variants = re.findall(r"^gc_negative_gammaln_f64(?:_x(\\d+))?:", gammaln.assembly, re.MULTILINE)
        assert sorted(int(lanes or 1) for lanes in variants) == {VARIANTS[name]}
        three = graphc.function([x], graphc.tensor.exp(x) * graphc.tensor.log1p(x * x) + graphc.tensor.tanh(x))
        called = set(re.findall(r"call\\w*\\s+gc_exp_f64_x(\\d+)", three.assembly))
        assert str({4 * VARIANTS[name][0]}) in called and "zmm" not in three.assembly
        for size in range(70):
            values = np.random.default_rng(size).normal(size=size)
            expected = np.exp(values) * np.log1p(values * values) + np.tanh(values)
            np.testing.assert_allclose(three(values), expected, rtol=1e-13, atol=1e-13)
        arguments = np.random.default_rng(1).uniform(-30, 5, 99)
        np.testing.assert_allclose(gammaln(arguments), numerics.gammaln(arguments), rtol=1e-13, atol=1e-13)
        for seed in range(0, 30, 6):
            test_wide_programs.test_modes_agree(seed)
        for size in (65, 255):
            test_reductions.test_short_sums_of_single_precision_are_at_least_as_accurate_as_numpys(size)
        test_reductions.test_sums_of_every_length_over_every_axis("float64", "compiled")
    """
    done = run_python(code, tmp_path, GRAPHC_TARGET=name)
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # nor has LLVM a word to say


@pytest.mark.slow
def test_the_compile_process_and_this_one_make_code_for_the_same(tmp_path: Path) -> None:
    """The process was started ahead, for what the environment says."""
    code = """
        import re
        import numpy as np, graphc
        import graphc.tensor as T
        from graphc.codegen.server.worker import WARM_UP
        graphc.options.target = "x86-64"
        x = T.dmatrix("x")
        f = graphc.function([x], [T.exp(x).sum(), T.dot(x, x), T.log(x) * T.tanh(x) + T.exp(x)])
        f(np.ones((70, 70)))
        assert not re.search("[yz]mm", f.assembly)
        from graphc.codegen.server.client import SERVER, compile_assembly
        assert SERVER._process is not None
        assert not re.search("[yz]mm", compile_assembly(WARM_UP.source, WARM_UP.functions))
    """
    done = run_python(code, tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.slow
def test_a_target_is_chosen_once(tmp_path: Path) -> None:
    code = """
        import numpy as np, graphc
        graphc.options.target = "native"
        x = graphc.tensor.dvector("x")
        f = graphc.function([x], x + 1)
        assert "; target native; " in graphc.codegen.llvm.cpu.target_fingerprint()
        with graphc.options.change(target="x86-64"):
            graphc.function([x], x + 2, mode="python"), graphc.function([x], x + 2, mode="interpreted")
            graphc.function([x], x + 2)
    """
    done = run_python(code, tmp_path)
    assert "'x86-64': functions of this process are compiled for 'native' already; it is set before" in done.stderr


def test_targets_that_are_not_known_or_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(graphc.GraphcError, match="target='pentium': must be one of native, x86-64, nehalem, haswell"):
        options.target = "pentium"
    name, features = cpu.processor()
    without = ",".join(each for each in features.split(",") if each != "bmi2")
    monkeypatch.setattr(cpu, "processor", lambda: (name, without))
    monkeypatch.setattr(cpu, "lacking", cpu.lacking.__wrapped__)
    choose = target.processor.__wrapped__
    assert choose("x86-64")[:2] == ("x86-64", frozenset()) and cpu.runnable.__wrapped__() == ("nehalem", "x86-64")
    monkeypatch.setattr(target, "processor", choose)
    with options.change(target="haswell"), pytest.raises(graphc.GraphcError, match="cannot run .*: it has no bmi2"):
        build.start_compiler()
    monkeypatch.setattr(PROCESS, "is_foreign", True)
    assert choose("haswell")[1] == cpu.NAMED["haswell"], "it is compiled for others"
    monkeypatch.setattr(PROCESS, "is_foreign", False)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(graphc.GraphcError, match="target='x86-64': this machine cannot run such code: it is riscv64"):
        choose("x86-64")


def test_code_for_a_named_target_and_its_key_do_not_depend_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name: target.processor.__wrapped__(name)[2] for name in cpu.runnable()}
    fingerprints = {name: cpu.target_fingerprint(name) for name in cpu.runnable()}
    own = dict(llvm.get_host_cpu_features())
    more = llvm.FeatureMap({name: name not in ("rdseed", "aes") for name in own})
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: more)
    monkeypatch.setattr(cpu, "processor", lambda: ("another", "one,more"))
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.9")
    monkeypatch.setattr(target, "check_target", lambda name: None)
    for name in cpu.runnable():
        assert target.processor.__wrapped__(name)[2] == told[name]
        assert cpu._fingerprint.__wrapped__(name) == fingerprints[name] and f"; target {name}; " in fingerprints[name]


def test_the_system_and_the_compiler_agree_on_what_this_processor_has() -> None:
    own = {name for name, has in llvm.get_host_cpu_features().items() if has}
    for name, needed in cpu.NAMED.items():
        assert set(cpu.lacking(name)) == (needed - own if platform.machine().lower() in cpu.X86 else {"x86-64"})
