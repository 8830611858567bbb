"""Caches that are filled ahead of time, and the commands for them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from graphc.codegen.llvm import cpu

PROGRAM = """
    import sys
    import numpy as np, graphc, graphc.tensor as T

    x = T.dvector("x")
    total = graphc.shared(0.0, name="total")
    add = graphc.function([x], T.exp(x).sum(), updates=[(total, total + x.sum())], name="add")
    lengths = T.lvector("lengths")
    zeros = graphc.function([lengths], T.zeros((lengths.sum(),)), name="zeros")

    @graphc.jit
    def scaled(a):
        return a * 2 if a.shape[0] > 2 else a + 1

    assert float(add(np.zeros(3))) == 3 and float(add(np.ones(2))) > 5 and total.get_value() == 2
    assert zeros([1, 2]).shape == (3,)
    assert scaled(np.ones(3)).tolist() == [2, 2, 2] and scaled(np.ones(2)).tolist() == [2, 2]
    print("done", *sys.argv[1:])
"""


def command(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `graphc` with a cache folder."""
    return subprocess.run(
        [sys.executable, "-m", "graphc", *arguments],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "GRAPHC_CACHE_DIR": str(folder), **environment},
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.skipif(bool(cpu.lacking("haswell")), reason="this processor does not run the target")
def test_a_program_is_compiled_ahead_for_several_targets_and_runs_elsewhere_without_a_compiler(tmp_path: Path) -> None:
    program, folder, elsewhere = tmp_path / "model.py", tmp_path / "cache", tmp_path / "elsewhere"
    program.write_text(textwrap.dedent(PROGRAM))
    why = command(folder, "cache", "why", str(program))
    assert why.returncode == 1 and "add (model.py:7) is not in the cache: the cache is empty" in why.stdout
    assert why.stdout.splitlines()[-1] == "0 of 4 kernels are in the cache" and not (folder / "usage").exists()
    made = command(folder, "compile", "--target", "haswell,x86-64", str(program), "one", "two")
    assert made.returncode == 0 and "done one two" in made.stdout, made.stderr
    assert made.stdout.splitlines()[-1] == f"8 of 8 kernels are in {folder}"
    assert (
        "4 of 4 kernels are in the cache"
        in command(folder, "cache", "why", str(program), GRAPHC_TARGET="haswell").stdout
    )
    (folder / "targets").unlink()
    differs = command(folder, "cache", "why", str(program)).stdout
    assert "  target: here native, stored " in differs and "0 of 4 kernels" in differs
    bundle = str(tmp_path / "bundle.zip")
    assert command(folder, "cache", "export", bundle).returncode == 0
    assert "entries added" in command(elsewhere, "cache", "import", bundle).stdout
    code = f"""
        import runpy, sys
        runpy.run_path({str(program)!r}, run_name="__main__")
        assert not {{"numba", "llvmlite"}} & set(sys.modules), "a compiler was imported"
        from graphc.options import options
        print(options.target)
    """
    environment = {**os.environ, "GRAPHC_CACHE_DIR": str(elsewhere), "GRAPHC_CACHE_REQUIRE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        check=False,
        text=True,
        env=environment,
        timeout=300,
    )
    assert run.returncode == 0 and run.stdout.split() == ["done", "native"], run.stderr
    stats = command(elsewhere, "cache", "stats").stdout
    assert "4 hits" in stats and "haswell" in stats
    assert "are in order" in command(elsewhere, "cache", "verify").stdout


@pytest.mark.slow
def test_what_a_program_raises_is_told_after_what_was_compiled(tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    program.write_text("import graphc, graphc.tensor as T\nx = T.dvector()\ngraphc.function([x], x + 1)\n1 / 0\n")
    made = command(tmp_path / "cache", "compile", str(program))
    assert made.returncode == 1 and "1 of 1 kernels" in made.stdout
    assert made.stderr == f"graphc: {program}:4: ZeroDivisionError: division by zero\n"
    assert command(tmp_path, "compile", "--target", "pentium", str(program)).stderr.startswith(
        "graphc: --target pentium: "
    )
    assert "there is no program" in command(tmp_path, "compile", "nowhere.py").stderr
    assert "targets    native" in command(tmp_path, "info").stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_another_user_runs_what_root_compiled_without_a_word(tmp_path: Path) -> None:
    """As in an image: the program's user owns nothing and can write nothing."""
    program, folder = tmp_path / "model.py", tmp_path / "cache"
    program.write_text(textwrap.dedent(PROGRAM))
    assert command(folder, "compile", str(program)).returncode == 0
    unreadable = run_as_another(program, GRAPHC_CACHE_REQUIRE="1", GRAPHC_CACHE_DIR=str(folder))
    assert "cannot be read (Permission denied); its owner lets others read it by `chmod -R go+rX`" in unreadable.stderr
    subprocess.run(["chmod", "-R", "go+rX", folder], check=True)
    for name in ("GRAPHC_CACHE_DIR", "GRAPHC_CACHE_SHARED"):
        done = run_as_another(program, GRAPHC_CACHE_REQUIRE="1", **{name: str(folder)})
        assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def run_as_another(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a user without a home, as far as files are concerned. It runs as this user first, since the
    other one may not read the files of the interpreter."""
    code = f"""
        import contextlib, gc, io, os
        import graphc.codegen.cache.manage
        from graphc.startup.process import PROCESS
        source = compile(open({str(program)!r}).read(), {str(program)!r}, "exec")
        own = graphc.options.change(cache_dir={str(program.parent / "own")!r}, cache_require=False)
        with contextlib.redirect_stdout(io.StringIO()), own:
            exec(source, {{"__name__": "__main__"}})
        gc.collect()
        PROCESS.start_afresh()
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        exec(source, {{"__name__": "__main__"}})
    """
    for folder in (program.parent, *program.parents[1:4]):
        if folder.owner() == "root" and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    home = {"HOME": "/nonexistent", "GRAPHC_CACHE_DIR": "/nonexistent/graphc"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **home, **environment},
        timeout=300,
    )
