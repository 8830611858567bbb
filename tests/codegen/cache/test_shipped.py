"""Parts that come with graphc: taken where they fit, and compiled where they do not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphc.codegen.cache import shipped
from graphc.codegen.cache.files import replace
from graphc.codegen.llvm import cpu, target
from graphc.codegen.pipeline import compilation, runtime
from graphc.codegen.pipeline.runtime import ENTRY_POINTS
from graphc.errors import CacheWarning
from graphc.options import NATIVE, options
from graphc.startup.process import PROCESS
from release import parts

CODE = {"gc_exp_f64": b"the code of exp", ENTRY_POINTS: b"", "gc_gemm_f64": b"that of products" * 9}

pytestmark = pytest.mark.skipif(not cpu.equivalent(), reason="no named target computes what this machine does")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file for this machine, in a folder of its own; the cache is empty."""
    monkeypatch.setattr(shipped, "FOLDER", str(tmp_path / "parts"))
    monkeypatch.setattr(PROCESS, "parts", {})
    monkeypatch.setattr(PROCESS, "shipped", {})
    monkeypatch.setattr(PROCESS, "warned", set())
    with options.change(cache=True, cache_dir=tmp_path / "cache", cache_shared=(), poison="off"):
        yield Path(shipped.place_of(cpu.equivalent()))


def write(place: Path) -> None:
    shipped.write(str(place), place.name, CODE)
    PROCESS.shipped.clear()


def test_a_part_is_taken_from_the_file_and_not_compiled(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.missing_parts(CODE) == list(CODE) and shipped.describe() == "none compiled before"
    write(place)
    monkeypatch.setattr(compilation, "compile_part", None)
    assert {name: runtime.part_code(name) for name in CODE} == CODE
    runtime.ready_part("gc_gemm_f64")
    assert runtime.missing_parts([*CODE, "gc_sin_f64"]) == ["gc_sin_f64"]
    assert not [*Path(options.cache_dir).glob("??/*")], "what comes with graphc is not stored once more"
    assert shipped.describe() == f"3 compiled before, for {place.name}"


@pytest.mark.parametrize("name", ["sources", "system", "target"])
def test_parts_of_other_sources_systems_and_targets_are_not_taken(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shipped.identity_of(place.name)
    with monkeypatch.context() as other:
        other.setattr(shipped, "identity_of", lambda target: own | {name: "another"})
        write(place)
        assert shipped.has_part("gc_exp_f64")
    PROCESS.shipped.clear()
    assert not shipped.has_part("gc_exp_f64") and shipped.shipped_part("gc_exp_f64") is None


def test_poisoned_code_and_libraries_for_other_processors_take_none(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place)
    with options.change(poison="on"):
        assert shipped.shipped_part("gc_exp_f64") is None
    monkeypatch.setattr(PROCESS, "triple", "aarch64-unknown-linux-gnu")
    assert shipped.shipped_part("gc_exp_f64") is None


def test_no_damage_gives_code_that_was_not_written(place: Path) -> None:
    write(place)
    content, chance = place.read_bytes(), random.Random(5)
    damaged = [content[:length] for length in range(0, len(content), 7)]
    for _ in range(400):
        at = chance.randrange(len(content))
        damaged.append(content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :])
    for each in damaged:
        replace(str(place), each)
        PROCESS.shipped.clear()
        PROCESS.warned.clear()
        with pytest.warns(CacheWarning, match="is damaged .*compiled again|compiled again.*is damaged"):
            got = {name: shipped.shipped_part(name) for name in CODE}
        assert all(code in (None, CODE[name]) for name, code in got.items()) and None in got.values()


FLAGS = {
    name: ",".join(cpu.SYSTEM_NAMES.get(flag, flag) for flag in sorted(flags)) for name, flags in cpu.NAMED.items()
}


@pytest.mark.parametrize(
    ("name", "flags", "wanted"),
    [
        ("AuthenticAMD 25 33 AMD Ryzen 9 0", FLAGS["haswell"], "haswell"),
        ("AuthenticAMD 25 97 AMD Ryzen 9 2", FLAGS["x86-64-v4"], "x86-64-v4"),
        ("GenuineIntel 6 85 Xeon 7", FLAGS["x86-64-v4"], "skylake-avx512"),
        ("GenuineIntel 6 207 Xeon 2", FLAGS["x86-64-v4"] + ",amx_tile", "x86-64-v4"),
        ("GenuineIntel 6 26 Core i7 5", FLAGS["nehalem"], "nehalem"),
        ("GenuineIntel 6 42 Core i7 7", FLAGS["nehalem"] + ",avx", ""),
        ("AuthenticAMD 21 2 FX 0", FLAGS["nehalem"] + ",avx,fma", ""),
        ("cascadelake", FLAGS["skylake-avx512"], "skylake-avx512"),
        ("GenuineIntel 15 4 Xeon 3", "", "x86-64"),
    ],
    ids=lambda value: None if "," in value else value,
)
def test_a_processor_takes_parts_with_its_own_vectors(
    name: str, flags: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "processor", lambda: (name, flags))
    for each in (cpu.lacking, cpu.runnable, cpu.equivalent):
        monkeypatch.setattr(cpu, each.__name__, each.__wrapped__)
    assert cpu.equivalent() == wanted


def test_code_for_the_named_target_is_written_as_that_for_this_machine() -> None:
    """The bits of a result thus do not depend on whether a part came with graphc."""
    names = ["gc_exp_f64", "gc_sin_f32", "gc_philox_f64", "gc_gemm_f64", "gc_lapack_lu_f64", "gc_fourier_float32"]
    names = [name for name in compilation.part_names() if name in names]
    assert len(names) >= 5

    def written(target_name: str) -> list[str]:
        with options.change(target=target_name):
            facts = [str(target.vector_widths()), str(target.usual_width()), str(target.has_fma())]
            texts = [text for name in names for text in compilation.part_ir(name)[0]]
            return facts + [
                compilation.vecmath().math_ir(text.name) if isinstance(text, compilation.Elementary) else str(text)
                for text in texts
            ]

    assert written(NATIVE) == written(cpu.equivalent())


@pytest.mark.slow
def test_the_command_writes_a_file_once(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compilation, "part_names", lambda: ["gc_exp_f64", "gc_gemv_f32"])
    assert parts.main(["--jobs", "1"]) == 0 and "2 parts for" in capsys.readouterr().out
    first = place.read_bytes()
    assert parts.main([]) == 0 and not capsys.readouterr().out
    PROCESS.shipped.clear()
    assert shipped.has_part("gc_gemv_f32")
    replace(str(place), b"nothing")
    with pytest.warns(CacheWarning, match="first line"):
        parts.main(["--jobs", "1"])
    assert place.read_bytes() == first, "the same sources make the same bytes"
