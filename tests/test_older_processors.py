"""Kernels for older processors than this one, which it can run as well: right there too."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

AVX2 = {"avx": True, "avx2": True, "fma": True}
MASKS = {f"avx512{each}": True for each in ("f", "vl", "bw", "dq", "cd")}
PROCESSORS = {"skylake-avx512": {**AVX2, **MASKS}, "haswell": AVX2, "x86-64": {}}
"""The names that LLVM knows them by, and what graphc asks of them."""
VARIANTS = {"skylake-avx512": [4, 8], "haswell": [4, 8], "x86-64": [2, 4]}
"""How many lanes of float64 the guard of log_gamma is made for: those of one vector, and of two."""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="they are of another kind")


@pytest.mark.parametrize("name", PROCESSORS)
def test_random_programs_and_sums(name: str, tmp_path: Path) -> None:
    """In a process that takes its CPU for an older one, and compiles there itself."""
    code = f"""
        from graphc.codegen.llvm_binding import llvm
        llvm.get_host_cpu_name = lambda: {name!r}
        llvm.get_host_cpu_features = lambda: llvm.FeatureMap({PROCESSORS[name]!r})
        from graphc.codegen.target import has_avx512, has_fma
        assert has_avx512() == {"avx512vl" in PROCESSORS[name]} and has_fma() == {bool(PROCESSORS[name])}
        import re
        import numpy as np
        import pytest
        import graphc, test_sums, test_vectorize, test_wide_programs
        x = graphc.tensor.dvector("x")
        machine_code = graphc.function([x], graphc.tensor.exp(x).sum()).assembly
        assert "zmm" not in machine_code and ("ymm" in machine_code) == {bool(PROCESSORS[name])}
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
        np.testing.assert_allclose(gammaln(arguments), graphc.numerics.gammaln(arguments), rtol=1e-13, atol=1e-13)
        for seed in range(0, 30, 3):
            test_wide_programs.test_modes_agree(seed)
        for seed in range(1000, 1030):
            test_vectorize.test_random_loops(seed, pytest.MonkeyPatch())
        for size in (65, 255):
            test_sums.test_short_sums_of_single_precision_are_at_least_as_accurate_as_numpys(size)
        test_sums.test_sums_of_every_length_over_every_axis("float64", "compiled")
    """
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    own = {"PYTHONPATH": folders, "GRAPHC_COMPILE": "inline", "GRAPHC_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **own}, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # nor has LLVM a word to say
