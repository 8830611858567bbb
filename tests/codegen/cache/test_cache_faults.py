"""Functions made while something is wrong with the cache folder: the result is right, there is one warning at most,
and nothing of the user's is lost.

What a fault needs a process of its own for runs in one: other rights, a full disk, several processes at once.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import marshal
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.cache import files, manage, store
from graphc.errors import CacheWarning
from graphc.functions.callables import Function
from graphc.options import options
from graphc.startup.process import PROCESS

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with options.change(cache=True, cache_dir=tmp_path / "cache", cache_shared=(), cache_require=False):
        PROCESS.warned.clear()
        yield tmp_path / "cache"


def make(name: str = "step") -> Function:
    """A step of gradient descent: inputs, a matrix product, an update."""
    x = T.dmatrix("x")
    w = graphc.shared(np.ones(3), "w")
    cost = T.sqr(T.dot(x, w) - 1).sum()
    return graphc.function([x], cost, updates=[(w, w - 0.01 * graphc.grad(cost, w))], name=name)


def check(call: Function) -> None:
    """The function computes what NumPy does."""
    x, w = np.arange(6.0).reshape(2, 3), np.ones(3)
    for _ in range(2):
        residual = x @ w - 1
        np.testing.assert_allclose(call(x), residual @ residual, rtol=1e-12)
        w -= 0.02 * x.T @ residual
    (shared,) = call.shared
    np.testing.assert_allclose(shared.get_value(), w, rtol=1e-12)


def entries(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"??/*/{name}"))


# Entries that are not what was stored -------------------------------------------------------------------------------

DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "one bit flipped": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "noise": lambda path: path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size)),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "missing": Path.unlink,
    "a folder": lambda path: path.rename(path.with_suffix(".old")) and path.mkdir(),  # type: ignore[func-returns-value]
    "a link to nothing": lambda path: path.rename(path.with_suffix(".old")) and path.symlink_to("nowhere"),  # type: ignore[func-returns-value]
    "a link to itself": lambda path: path.rename(path.with_suffix(".old")) and path.symlink_to(path.name),  # type: ignore[func-returns-value]
}


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["metadata", "kernel.o"])
def test_a_damaged_entry_is_compiled_again(folder: Path, name: str, damage: str) -> None:
    check(make())
    damaged = entries(folder, name)
    assert damaged
    for path in damaged:
        DAMAGES[damage](path)
    before = PROCESS.compilations
    with pytest.warns(CacheWarning) as warned:
        call = make()
        check(call)
    assert PROCESS.compilations == before + 1
    assert len(warned) == 1 and any(str(path.parent) in str(warned[0].message) for path in damaged)
    check(make())
    assert PROCESS.compilations == before + 1


def reseal(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the metadata of an entry and vouch for it, as another program could."""
    header = marshal.loads(path.read_bytes().partition(b"\n")[2])
    change(header["metadata"])
    rest = marshal.dumps(header)
    path.write_bytes(store._seal(rest) + b"\n" + rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: metadata.clear(),
        lambda metadata: metadata.update(signature="{}"),
        lambda metadata: metadata.update(signature=(1, 2)),
        lambda metadata: metadata.update(signature=None),
        lambda metadata: metadata.update(constants=[("float64", (3,), b"")]),
        lambda metadata: metadata.update(calls=[["unknown", "1"]]),
    ],
)
def test_metadata_that_do_not_fit_the_graph(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    check(make())
    (path,) = [path for path in entries(folder, "metadata") if b"signature" in path.read_bytes()]
    reseal(path, change)
    before = PROCESS.compilations
    check(make())
    assert PROCESS.compilations == before + 1


@pytest.mark.slow
def test_damaged_texts_do_not_matter(folder: Path) -> None:
    source = make().source
    for path in entries(folder, "*.txt") + entries(folder, "*.py"):
        path.write_text("nonsense")
    call = make()
    check(call)
    assert call.source == source


# Folders that cannot be used ----------------------------------------------------------------------------------------


def assert_one_warning(problem: str) -> None:
    """Two functions are made and work, with one warning between them."""
    with pytest.warns(CacheWarning, match=problem) as warned:
        check(make("first"))
        check(make("second"))
    assert len(warned) == 1


@pytest.mark.slow
def test_no_space_left(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def write_part(path: str, content: bytes) -> None:
        Path(path).write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write", write_part)
    assert_one_warning("cannot be written.*No space left")
    assert entries(folder, "*") == []


@pytest.mark.slow
def test_a_file_in_the_way(folder: Path) -> None:
    folder.write_text("precious")
    assert_one_warning("Not a directory|File exists")
    assert folder.read_text() == "precious"


@pytest.mark.slow
def test_a_bucket_in_the_way(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for number in range(256):
        (folder / f"{number:02x}").write_text("precious")
    assert_one_warning("Not a directory|File exists")
    assert {path.read_text() for path in folder.iterdir()} == {"precious"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs rights of groups")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_can_write(folder: Path, mode: int) -> None:
    check(make())
    folder.chmod(mode)
    gc.collect()
    before = PROCESS.compilations
    assert_one_warning("can be written by other users.*delete it")
    assert PROCESS.compilations in (before + 1, before + 2), "the second has the code of the first while that lives"


@pytest.mark.slow
def test_a_folder_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(make())
    monkeypatch.setattr(files, "ROOT", -1)  # which may run the tests
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert_one_warning("belongs to another user")


@pytest.mark.slow
def test_unusual_names(tmp_path: Path) -> None:
    name = "a folder, 日本語 {}%'\n\"" + "x" * 100
    with options.change(cache_dir=tmp_path / name):
        check(make())
        before = PROCESS.compilations
        check(make())
        assert PROCESS.compilations == before


@pytest.mark.slow
def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with options.change(cache_dir="here"):
        check(make())
    assert entries(tmp_path / "here", "kernel.o")


# In use -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_folder_removed_while_in_use(folder: Path) -> None:
    call = make()
    source = call.source
    shutil.rmtree(folder)
    check(call)
    assert call.source == source
    again = make()
    check(again)
    assert entries(folder, "kernel.o")


@pytest.mark.slow
def test_a_loaded_function_outlives_its_entry(folder: Path) -> None:
    source = make().source
    call = make()  # from the cache
    manage.clear()
    shutil.rmtree(folder)
    assert call.source == source
    assert "full reduction" in call.explain()
    check(call)


@pytest.mark.slow
def test_a_folder_removed_again_and_again(folder: Path) -> None:
    stop = threading.Event()

    def remove() -> None:
        while not stop.wait(0.002):
            shutil.rmtree(folder, ignore_errors=True)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for number in range(8):
                check(make(f"step{number % 2}"))
    finally:
        stop.set()
        remover.join()
    assert {warning.category for warning in warned} <= {CacheWarning}


# Processes of their own ---------------------------------------------------------------------------------------------

PROGRAM = """
    import os, sys, warnings
    sys.path.insert(0, sys.argv[1])
    import test_cache_faults as faults
    {before}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for name in ("first", "second"):
            faults.check(faults.make(name))
    print(len(warned), *(warning.message for warning in warned))
    print(faults.PROCESS.compilations, "numba" in sys.modules)
"""
TESTS = os.path.dirname(os.path.abspath(__file__))


def start(folder: Path, before: str = "") -> subprocess.Popen[str]:
    program = textwrap.dedent(PROGRAM).replace("{before}", before)
    return subprocess.Popen(
        [sys.executable, "-c", program, TESTS],
        env={**os.environ, "GRAPHC_CACHE_DIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out.splitlines()


@pytest.mark.slow
def test_processes_that_compile_the_same_at_once(folder: Path) -> None:
    running = [start(folder) for _ in range(3)]
    for process in running:
        assert finish(process)[0] == "0"
    assert len(entries(folder, "kernel.o")) == len(list(folder.glob("??/*"))) >= 2
    assert finish(start(folder)) == ["0", "0 False"]


def give_up_rights() -> None:
    """Let the rights of files hold for this process, also where it is root's."""
    if os.geteuid():
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b1110  # effective: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    assert libc.capset(header, sets) == 0


ORDINARY = "faults.give_up_rights()"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with both entries in it, which nobody damages."""
    folder = tmp_path_factory.mktemp("whole")
    folder.chmod(0o700)
    assert finish(start(folder))[0] == "0"
    return folder


@pytest.fixture
def filled(folder: Path, whole: Path) -> Iterator[Path]:
    """The cache folder with both entries in it, which can be removed again whatever its rights are."""
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)


def allow(folder: Path, rights: Callable[[Path], int]) -> None:
    for path in (*[*folder.rglob("*")][::-1], folder):
        path.chmod(rights(path))


def read_only(path: Path) -> int:
    return 0o500 if path.is_dir() else 0o400


@pytest.mark.slow
@LINUX
def test_a_read_only_folder_is_read(filled: Path) -> None:
    allow(filled, read_only)
    assert finish(start(filled, ORDINARY)) == ["0", "0 False"]


@pytest.mark.slow
@LINUX
def test_a_read_only_folder_is_warned_of(filled: Path) -> None:
    for path in entries(filled, "metadata"):
        shutil.rmtree(path.parent)
    allow(filled, read_only)
    found = finish(start(filled, ORDINARY))
    assert found[0].startswith("1 compiled code is not kept") and "Permission denied" in found[0]
    assert found[1].startswith("2 ")


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("name", ["metadata", "kernel.o", ""])
def test_what_may_not_be_read(filled: Path, name: str) -> None:
    """Files of that name, or all folders of entries."""

    def rights(path: Path) -> int:
        return 0o000 if path.name == name or (not name and path.is_dir() and path != filled) else 0o700

    allow(filled, rights)
    found = finish(start(filled, ORDINARY))
    assert found[0].startswith("1 ") and "Permission denied" in found[0]
    assert found[1].startswith("2 ")


@pytest.mark.slow
@LINUX
def test_a_small_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        found = finish(start(disk / "cache"))
        assert found[0].startswith("1 ") and "No space left" in found[0]
        assert not entries(disk / "cache", "metadata")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
@LINUX
def test_files_that_may_not_grow(folder: Path) -> None:
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    process = start(folder, f"{limit}; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))")
    found = finish(process)
    assert found[0].startswith("1 ") and "File too large" in found[0]
    assert list(folder.glob("??/*")) == []


@pytest.mark.slow
def test_no_home(tmp_path: Path) -> None:
    """Without a home directory and without a folder named, there is a result and a warning, or a cache elsewhere."""
    program = textwrap.dedent(PROGRAM).replace("{before}", "")
    named = ("GRAPHC_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in named}
    done = subprocess.run(
        [sys.executable, "-c", program, TESTS],
        env={**environment, "HOME": str(tmp_path / "nowhere" / "at" / "all"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# Every file of a cache that is in use --------------------------------------------------------------------------------

ANYWHERE: dict[str, Callable[[Path, np.random.Generator], object]] = {
    "a bit": lambda path, rng: path.write_bytes(with_a_bit_flipped(path.read_bytes(), rng)),
    "cut": lambda path, rng: path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)]),
    "empty": lambda path, rng: path.write_bytes(b""),
    "noise": lambda path, rng: path.write_bytes(rng.bytes(300)),
    "a folder": lambda path, rng: in_place_of(path, Path.mkdir),
    "a pipe": lambda path, rng: in_place_of(path, os.mkfifo),
}


def in_place_of(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def with_a_bit_flipped(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    changed[rng.integers(len(content))] ^= 1 << rng.integers(8)
    return bytes(changed)


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("damage", ANYWHERE)
def test_damage_to_any_file(filled: Path, damage: str) -> None:
    rng = np.random.default_rng(len(damage))
    assert finish(start(filled))[0] == "0"
    damaged = [path for path in sorted(filled.rglob("*")) if path.is_file() and path.stat().st_size]
    assert {"metadata", "kernel.o", "usage", "graph.txt"} <= {path.name for path in damaged}
    for path in damaged:
        ANYWHERE[damage](path, rng)
    assert finish(start(filled))[0].startswith("1 compiling again")
    assert finish(start(filled))[0] == "0"
