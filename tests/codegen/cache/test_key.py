"""The key of the cache: every part of it matters, and so does every source of graphc."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.cache import key
from graphc.codegen.cache.key import Key, cache_key
from graphc.codegen.pipeline.build import key_of
from graphc.codegen.pipeline.kernel import Kernel
from graphc.options import options
from graphc.startup.record import replace
from graphc.startup.versions import DIGITS

KEY = Key("a = input float64[n]\nb = exp a\nreturn b\n", {"fast_math": "False", "excluding": ""}, "graphc 1; +avx,+fma")


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, graph=KEY.graph + " "),
        replace(KEY, settings={**KEY.settings, "fast_math": "True"}),
        replace(KEY, settings={"fast_math": "False"}),
        replace(KEY, fingerprint=KEY.fingerprint + ",+avx2"),
        replace(KEY, graph="", fingerprint=KEY.graph + KEY.fingerprint),
    ],
)
def test_every_part_of_a_key_matters(other: Key) -> None:
    assert other.digest != KEY.digest


def test_a_key_does_not_depend_on_the_order_of_the_settings() -> None:
    settings = {name: KEY.settings[name] for name in sorted(KEY.settings)[::-1]}
    assert cache_key(KEY.graph, settings, KEY.fingerprint) == KEY.digest
    assert len(KEY.digest) == DIGITS


def test_kernels_that_differ_in_one_respect_have_keys_of_their_own() -> None:
    x = T.dvector("x")
    first, second = (graphc.shared(np.zeros(3), name=name) for name in ("first", "second"))
    both, product = first + second + x, first * second * x
    kernel = Kernel("f", (x,), (first, second), (both,), ((first, product),), "array")
    others = [
        kernel,
        replace(kernel, name="g"),
        replace(kernel, returns="list"),
        replace(kernel, mutable=(0,)),
        replace(kernel, updates=((second, product),)),
        replace(kernel, updates=((first, product + 1.0),)),
        replace(kernel, outputs=(both, product)),
        replace(kernel, outputs=(both, product), updates=()),
        replace(kernel, outputs=(both + 1.0,)),
    ]
    digests = [key_of(other).digest for other in others]
    with options.change(fast_math=True):
        digests.append(key_of(kernel).digest)
    with options.change(excluding="logaddexp_of_zero"):
        digests.append(key_of(kernel).digest)
    with options.change(outline="never"):
        digests.append(key_of(kernel).digest)
    assert len(set(digests)) == len(digests)
    assert key_of(replace(kernel, threads=3)).digest == digests[0]


def fingerprint_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the fingerprint would be if graphc's sources were in `package`."""
    monkeypatch.setattr(key, "PACKAGE", f"{package}{os.sep}")
    return key.package_fingerprint.__wrapped__()


def test_the_package_fingerprint_follows_the_content_of_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    (package / "ir").mkdir(parents=True)
    source = package / "ir" / "node.py"
    source.write_text("x = 1\n")
    before = fingerprint_of(package, monkeypatch)
    os.utime(source, (1, 1))
    (package / "notes.txt").write_text("not a source")
    assert fingerprint_of(package, monkeypatch) == before
    source.write_text("x = 2\n")
    edited = fingerprint_of(package, monkeypatch)
    source.rename(package / "node.py")
    assert len({before, edited, fingerprint_of(package, monkeypatch)}) == 3
    assert before.startswith("graphc ") and "numpy " in before


def test_what_the_system_says_of_the_sources_stands_for_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, kept = tmp_path / "package", str(tmp_path / "sources")
    package.mkdir()
    source = package / "node.py"
    source.write_text("x = 1\n")
    before = key.sources_digest(f"{package}", kept)
    assert not os.path.exists(kept)  # another write could fall in the same tick of the clock
    monkeypatch.setattr(key, "SETTLED_SECONDS", -60.0)
    assert key.sources_digest(f"{package}", kept) == before
    with monkeypatch.context() as patch:
        patch.setattr(key, "_digest", lambda *args: pytest.fail("the sources are read"))
        assert key.sources_digest(f"{package}", kept) == before
    status = source.stat()
    source.write_text("x = 2\n")  # as long as before, and with the times that any program can set
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    edited = key.sources_digest(f"{package}", kept)
    assert edited != before and edited == key.sources_digest(f"{package}", None)
    Path(kept).write_bytes(Path(kept).read_bytes()[:-1] + b"\n\n\xff")
    assert key.sources_digest(f"{package}", kept) == edited
    for number in range(2 * key.MOST_KEPT):
        source.write_text(f"y = {number}\n")
        assert key.sources_digest(f"{package}", kept) == key.sources_digest(f"{package}", None)
    assert len(Path(kept).read_bytes().split(b"\n")) == key.MOST_KEPT


def test_parts_of_the_sources_have_digests_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole package, of some of its folders and files: each follows what is in it and nothing else."""
    monkeypatch.setattr(key, "SETTLED_SECONDS", -60.0)
    package, kept = f"{tmp_path / 'package'}{os.sep}", str(tmp_path / "sources")
    for name in ("call/bind.py", "call/deep/more.py", "ops/custom.py", "ops/other.py"):
        Path(package, name).parent.mkdir(parents=True, exist_ok=True)
        Path(package, name).write_text("x = 1\n")
    parts = ("call", "ops/custom.py")
    for edited, is_in in (("call/deep/more.py", True), ("ops/custom.py", True), ("ops/other.py", False)):
        before = [key.sources_digest(package, kept, each) for each in (("",), parts)]
        Path(package, edited).write_text(f"{edited!r}\n")
        after = [key.sources_digest(package, kept, each) for each in (("",), parts)]
        assert after == [key.sources_digest(package, None, each) for each in (("",), parts)]
        assert [old != new for old, new in zip(before, after, strict=True)] == [True, is_in]
    assert all(Path(os.path.dirname(graphc.__file__ or ""), each).exists() for each in key.BOUND)


@pytest.mark.slow
def test_a_kept_digest_with_any_bit_flipped_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key, "SETTLED_SECONDS", -60.0)
    package, kept = tmp_path / "package", tmp_path / "sources"
    package.mkdir()
    (package / "node.py").write_text("x = 1\n")
    right = key.sources_digest(str(package), str(kept))
    content = kept.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        kept.write_bytes(damaged)
        assert key.sources_digest(str(package), str(kept)) == right
