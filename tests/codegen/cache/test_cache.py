"""The compile cache: what is stored is what is loaded, and nothing that can happen to its folder makes a wrong
result.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphc.codegen.cache import files, key, manage, store
from graphc.codegen.cache.key import Key
from graphc.codegen.cache.store import Entry
from graphc.codegen.server.prestart import USAGE
from graphc.errors import CacheMissError, CacheWarning, GraphcError
from graphc.options import options
from graphc.startup.process import PROCESS
from graphc.startup.record import replace

SETTINGS = {"fast_math": "False", "excluding": ""}
KEY = Key(
    "a = input float64[n]\nb = exp a\nreturn b\n", SETTINGS, "target native; features avx,fma; graphc 0123; numpy 2.4"
)
ENTRY = Entry(KEY, "one loop\n", "def kernel():\n    pass\n", {"name": "f", "sizes": [1, "μ"]}, bytes(range(256)) * 8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with options.change(cache=True, cache_dir=tmp_path / "cache", cache_shared=(), cache_require=False):
        PROCESS.warned.clear()
        yield tmp_path / "cache"


def keyed(graph: str, size: int = 2048) -> Entry:
    return replace(ENTRY, key=replace(KEY, graph=graph), object=os.urandom(size))


def place(entry: Entry) -> Path:
    digest = entry.key.digest
    return Path(options.cache_dir, digest[:2], digest)


def test_what_is_stored_is_loaded() -> None:
    assert store.find(KEY) is None
    assert store.store(ENTRY)
    loaded = store.find(KEY)
    assert loaded is not None
    assert (loaded.metadata, loaded.object) == (ENTRY.metadata, ENTRY.object)
    assert [loaded.text(kind) for kind in ("graph", "plan", "source")] == [KEY.graph, ENTRY.plan, ENTRY.source]


def test_nobody_else_may_look(folder: Path) -> None:
    store.store(ENTRY)
    assert [path.stat().st_mode & 0o777 for path in (folder, place(ENTRY).parent, place(ENTRY))] == [0o700] * 3


def test_nothing_is_left_beside_an_entry() -> None:
    store.store(ENTRY)
    store.store(ENTRY)
    assert os.listdir(place(ENTRY).parent) == [KEY.digest]


def test_the_cache_can_be_switched_off(folder: Path) -> None:
    with options.change(cache=False):
        assert not store.store(ENTRY)
    assert not folder.exists()
    store.store(ENTRY)
    with options.change(cache=False):
        assert store.find(KEY) is None


# Damage


@pytest.mark.parametrize("name", [store.METADATA, store.OBJECT])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "missing"])
def test_a_damaged_entry_is_removed_and_replaced(name: str, damage: str) -> None:
    store.store(ENTRY)
    path = place(ENTRY) / name
    content = path.read_bytes()
    middle = len(content) // 2
    match damage:
        case "truncated":
            path.write_bytes(content[:middle])
        case "flipped":
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        case "empty":
            path.write_bytes(b"")
        case "missing":
            path.unlink()
    with pytest.warns(CacheWarning, match="damaged"):
        assert store.find(KEY) is None
    assert not place(ENTRY).exists()
    assert store.store(ENTRY)
    assert store.find(KEY) is not None


def test_an_entry_under_another_name_is_refused() -> None:
    store.store(ENTRY)
    other = keyed("another graph")
    place(other).parent.mkdir(exist_ok=True)
    place(ENTRY).rename(place(other))
    with pytest.warns(CacheWarning, match="another key"):
        assert store.find(other.key) is None


def test_a_damaged_text_is_not_shown() -> None:
    store.store(ENTRY)
    loaded = store.find(KEY)
    (place(ENTRY) / "source.py").write_text("import os\n")
    assert loaded is not None and loaded.text("source") is None
    manage.clear()
    assert loaded.text("plan") is None


# Folders that cannot be used


def assert_useless(problem: str) -> None:
    """Loading finds nothing, storing fails, and there is one warning for all attempts."""
    with pytest.warns(CacheWarning, match=problem) as warned:
        for _ in range(3):
            assert store.find(KEY) is None
            assert not store.store(ENTRY)
    assert len(warned) == 1


def test_a_folder_that_cannot_be_made(folder: Path) -> None:
    folder.write_text("a file is in the way")
    with options.change(cache_dir=folder / "cache"), pytest.warns(CacheWarning) as warned:
        assert store.find(KEY) is None
        assert not store.store(ENTRY)
        assert not store.store(ENTRY)
    assert {str(warning.message).partition(" (")[2] for warning in warned} == {"Not a directory)"}
    assert folder.read_text() == "a file is in the way"


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_part(path: str, content: bytes) -> None:
        Path(path).write_bytes(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write", write_part)
    assert_useless("No space left")
    assert os.listdir(place(ENTRY).parent) == []


LIMITED = """
    import resource, signal, sys, warnings
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    from test_cache import ENTRY, KEY, store, options

    options.cache_dir = Path(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert not store.store(ENTRY) and store.find(KEY) is None
    print([str(w.message) for w in warned])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the operating system")
def test_a_write_that_stops_half_way(folder: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(LIMITED), str(folder), os.path.dirname(__file__)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=300)
    assert "File too large" in done.stdout
    assert manage.list_entries() == [] and os.listdir(place(ENTRY).parent) == []


@pytest.fixture
def read_only(folder: Path) -> Iterator[None]:
    """The cache folder, with ENTRY in it, for a user who may only read it."""
    store.store(ENTRY)
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o500 if path.is_dir() else 0o400)
    privileged = os.geteuid() == 0
    chain = [(path, path.stat().st_mode) for path in folder.parents if path.stat().st_uid == 0 and path != Path("/")]
    if privileged:
        for path in paths:
            os.chown(path, 65534, -1)
        for path, mode in chain:
            path.chmod(mode | 0o011)
        os.seteuid(65534)
    yield
    if privileged:
        os.seteuid(0)
        for path, mode in chain:
            path.chmod(mode)
    for path in paths:
        path.chmod(0o700)


@pytest.mark.usefixtures("read_only")
def test_a_read_only_folder_is_read() -> None:
    assert store.find(KEY) is not None
    other = keyed("another graph")
    with pytest.warns(CacheWarning, match="cannot be written") as warned:
        assert not store.store(other)
        assert not store.store(other)
    assert len(warned) == 1
    assert store.find(other.key) is None


def test_the_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store.store(ENTRY)
    monkeypatch.setattr(files, "ROOT", -1)  # which may run the tests
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert_useless("belongs to another user")


def test_a_folder_of_root_is_read_by_all_and_written_by_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """As in an image that root built: the test runs as another user by what the system says."""
    store.store(ENTRY)
    monkeypatch.setattr(files, "ROOT", os.getuid())
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert store.find(KEY) is not None and len(manage.list_entries()) == 1
    assert not recwarn.list
    folder.chmod(0o770)
    with pytest.warns(CacheWarning, match="chmod go-w"):
        assert store.find(KEY) is None


def test_a_folder_that_others_can_write_is_refused(folder: Path) -> None:
    store.store(ENTRY)
    folder.chmod(0o770)
    assert_useless("can be written by other users")
    folder.chmod(0o755)
    assert store.find(KEY) is not None


# Sharing


def test_a_shared_folder_is_read_and_never_written(folder: Path, tmp_path: Path) -> None:
    store.store(ENTRY)
    other = keyed("another graph")
    with options.change(cache_dir=tmp_path / "mine", cache_shared=[folder]):
        assert store.find(KEY) is not None
        assert store.store(other)
        assert manage.clear() == 1
        assert [summary.folder for summary in manage.list_entries()] == [str(place_in(folder))]
    assert store.find(KEY) is not None
    assert store.find(other.key) is None


def place_in(folder: Path) -> Path:
    return folder / KEY.digest[:2] / KEY.digest


def test_a_shared_folder_that_anyone_can_write_is_refused(folder: Path, tmp_path: Path) -> None:
    store.store(ENTRY)
    folder.chmod(0o777)
    path = f"{tmp_path / 'none'}{os.pathsep}{folder}"
    with (
        options.change(cache_dir=tmp_path / "mine", cache_shared=path),
        pytest.warns(CacheWarning, match="can be written by other users"),
    ):
        assert store.find(KEY) is None


CONTENDER = """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    from test_cache import keyed, manage, options, store

    options.cache_dir, options.cache_megabytes = Path(sys.argv[1]), 1
    for iteration in range(60):
        entry = keyed(f"graph {iteration % 7}", 300_000)
        loaded = store.find(entry.key)
        assert loaded is None or len(loaded.object) == 300_000
        assert loaded is None or loaded.text("graph") in (None, entry.key.graph)
        store.store(entry)
        if iteration % 20 == 19:
            manage.clear()
"""


@pytest.mark.slow
def test_processes_that_write_load_evict_and_clear_at_once(folder: Path) -> None:
    program = [sys.executable, "-W", "error", "-c", textwrap.dedent(CONTENDER), str(folder), os.path.dirname(__file__)]
    contenders = [subprocess.Popen(program, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [contender.communicate(timeout=300)[1] for contender in contenders] == [""] * 3
    assert {path.name for path in store._folders(str(folder))} == {summary.key for summary in manage.list_entries()}


def test_threads_that_store_the_same_entry() -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(store.store(ENTRY))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
    assert os.listdir(place(ENTRY).parent) == [KEY.digest]


# Size


def test_the_least_recently_used_entries_go_first() -> None:
    entries = [keyed(f"graph {number}", 300_000) for number in range(4)]
    with options.change(cache_megabytes=1):
        for age, entry in zip((40, 30, 20), entries, strict=False):
            store.store(entry)
            os.utime(place(entry), (time.time() - age,) * 2)
        assert store.find(entries[0].key) is not None
        store.store(entries[3])
        assert [store.find(entry.key) is not None for entry in entries] == [True, False, True, True]
        assert manage.size() <= 2**20


def test_an_entry_above_the_limit_is_kept_alone() -> None:
    small, large = keyed("small"), keyed("large", 2**20)
    with options.change(cache_megabytes=1):
        store.store(small)
        store.store(large)
    assert [summary.key for summary in manage.list_entries()] == [large.key.digest]


def test_what_a_dead_process_left_is_removed() -> None:
    store.store(ENTRY)
    abandoned, recent = (Path(files.aside(str(place(ENTRY)))) for _ in range(2))
    for path in (abandoned, recent):
        path.mkdir()
        (path / store.OBJECT).write_bytes(b"half")
    os.utime(abandoned, (time.time() - 2 * store.STALE_SECONDS,) * 2)
    usage().unlink()  # as if the folder had not been looked through for long
    store.store(keyed("another graph"))
    assert not abandoned.exists()
    assert recent.exists()


def usage() -> Path:
    return Path(options.cache_dir, USAGE)


def test_the_folder_is_looked_through_only_where_it_may_be_full(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    scan = store._folders

    def look(root: str) -> Iterator[os.DirEntry[str]]:
        looks.append(root)
        return scan(root)

    monkeypatch.setattr(store, "_folders", look)
    for number in range(5):
        store.store(keyed(f"graph {number}", 300_000))
    assert len(looks) == 1, "the size was unknown at first"
    assert sum(map(int, usage().read_bytes().split()[1:])) == manage.size()
    looks.clear()
    with options.change(cache_megabytes=1):
        store.store(keyed("one too many", 300_000))
    assert len(looks) == 1
    assert manage.size() <= 2**20 - 2**16, "with room for more, so that the next one does not look again"
    assert usage().read_bytes().split()[1:] == [b"%d" % manage.size()]


@pytest.mark.parametrize("content", [b"", b"bytes\nx\n", b"\xff", b"5\n5\n", b"bytes\n" + 300 * b"1\n"])
def test_a_size_that_is_not_believed_is_counted_again(content: bytes) -> None:
    store.store(ENTRY)
    usage().write_bytes(content)
    store.store(keyed("another graph"))
    assert usage().read_bytes().split()[1:] == [b"%d" % manage.size()]


def test_entries_are_listed_by_use(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = keyed("first"), keyed("second")
    for entry in (first, second):
        store.store(entry)
        os.utime(place(entry), (1e9, 1e9))
    store.find(first.key)
    listed = manage.list_entries()
    assert [summary.key for summary in listed] == [first.key.digest, second.key.digest]
    assert listed[0].metadata == ENTRY.metadata
    assert sum(summary.size for summary in listed) == manage.size()
    with monkeypatch.context() as patch:
        patch.setattr(manage, "discard", lambda folder: None)  # as on a file system that is read only, also for root
        patch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(GraphcError, match="2 of 2 entries cannot be removed: .* cannot be written"):
            manage.clear()
    assert manage.clear() == 2
    assert (manage.size(), manage.list_entries(), store.find(first.key)) == (0, [], None)


def test_entries_are_pruned_by_age_size_and_name() -> None:
    old, large, named = keyed("old"), keyed("large", 70_000), replace(keyed("named"), metadata={"name": "train_step"})
    for entry in (ENTRY, old, large, named):
        store.store(entry)
    os.utime(place(old), (1e9, 1e9))
    with pytest.raises(GraphcError, match="prune wants a condition"):
        manage.prune()
    assert manage.prune(older=30, larger=70_000) == 0
    assert (manage.prune(older=30), manage.prune(larger=70_000), manage.prune(name="train*")) == (1, 1, 1)
    assert [summary.key for summary in manage.list_entries()] == [KEY.digest]


def test_what_is_damaged_is_found_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [keyed(f"graph {number}") for number in range(3)]
    for entry in (ENTRY, *others):
        store.store(entry)
    assert manage.verify() == []
    (place(others[0]) / "plan.txt").write_text("another plan")
    (place(others[1]) / store.OBJECT).unlink()
    planted(place(others[2]), monkeypatch)
    said = sorted(problem.partition(":")[0] for problem in manage.verify())
    assert said == ["not used", "removed", "removed"]
    assert len(list(store.entries(str(place(ENTRY).parent.parent)))) == 2


def test_lookups_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_LOOKUPS", 20)
    monkeypatch.setattr(PROCESS, "lookups", [])
    store.store(ENTRY)
    for process in range(9):
        for hit in (True, True, False):
            store.count_lookup(hit)
        assert store.counts_of(str(folder)) == (2 * process + 2, process + 1)
        store._write_lookups()
        assert store.counts_of(str(folder)) == (2 * process + 2, process + 1)
    figures = manage.statistics()
    assert (figures.entries, figures.hits, figures.misses, figures.targets) == (1, 18, 9, {"native": 1})
    assert "27: 18 hits (67 %), 9 misses" in str(figures) and (folder / store.LOOKUPS).stat().st_size <= 20


# Explaining


def test_a_miss_is_explained_by_the_nearest_entry() -> None:
    assert "empty" in manage.explain_miss(KEY)
    store.store(ENTRY)
    store.store(keyed("something\nwholly\nelse"))
    part = replace(ENTRY, key=Key("gc_parallel", {}, KEY.fingerprint))
    store.store(part)
    assert "stored  a = input" in manage.explain_miss(replace(KEY, graph="c\n")), "a part is no graph"
    assert manage.explain_miss(KEY) == "the graph is in the cache"
    graph = manage.explain_miss(replace(KEY, graph=KEY.graph.replace("exp", "log")))
    assert "line 2" in graph and "here    b = log a" in graph and "stored  b = exp a" in graph
    setting = manage.explain_miss(replace(KEY, settings={**KEY.settings, "fast_math": "True"}))
    assert setting.splitlines()[1:] == ["  option fast_math: here True, stored False"]
    version = manage.explain_miss(replace(KEY, fingerprint=KEY.fingerprint.replace("2.4", "2.5")))
    assert version.splitlines()[1:] == ["  numpy: here 2.5, stored 2.4"]
    feature = manage.explain_miss(replace(KEY, fingerprint=KEY.fingerprint.replace("avx,fma", "avx2,fma,sse4")))
    said = "  features of the processor: here alone avx2, sse4; stored alone avx"
    assert feature.splitlines()[1:] == [said]
    sources = manage.explain_miss(replace(KEY, fingerprint=KEY.fingerprint.replace("0123", "4567")))
    assert sources.splitlines()[1:] == ["  graphc: the stored code was made by other sources of graphc"]


def test_a_miss_can_be_an_error() -> None:
    store.store(ENTRY)
    with options.change(cache_require=True):
        assert store.find(KEY) is not None
        with pytest.raises(CacheMissError, match="(?s)^step is not .* fast_math: here True, stored False"):
            manage.refuse_miss(replace(KEY, settings={**KEY.settings, "fast_math": "True"}), "step")


# Bundles


def test_a_bundle_carries_the_entries(tmp_path: Path) -> None:
    other = keyed("another graph")
    store.store(ENTRY)
    store.store(other)
    bundle = tmp_path / "bundle.zip"
    assert manage.export(bundle) == 2
    with options.change(cache_dir=tmp_path / "elsewhere"):
        store.store(other)
        assert manage.import_(bundle) == 1
        loaded = store.find(KEY)
        assert loaded is not None and loaded.object == ENTRY.object and loaded.text("source") == ENTRY.source
        assert place(ENTRY).stat().st_mode & 0o777 == 0o700


def keyed_for(target: str, number: int = 0) -> Entry:
    """An entry with code for a target of this machine."""
    return replace(ENTRY, key=Key(ENTRY.key.graph, {"number": str(number)}, key.fingerprint(target)))


def test_imported_entries_of_a_named_target_serve_processors_that_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native, haswell, nehalem = (keyed_for(name) for name in ("native", "haswell", "nehalem"))
    for entry in (haswell, nehalem, keyed_for("nehalem", 1)):
        store.store(replace(entry, object=entry.key.fingerprint.encode()))
    assert store.find(native.key) is None, "own code for an older processor is not what was asked for"
    bundle = tmp_path / "bundle.zip"
    assert manage.export(bundle) == 3
    with options.change(cache_dir=tmp_path / "elsewhere"):
        monkeypatch.setattr(store, "runnable", lambda: ("haswell", "nehalem", "x86-64"))
        assert manage.import_(bundle) == 3
        assert sorted(entry.target for entry in manage.list_entries()) == ["haswell", "nehalem", "nehalem"]
        best = store.find(native.key)
        assert best is not None and b"; target haswell; " in b"; " + best.object and store.holds(native.key)
        only = store.find(keyed_for("native", 1).key)
        assert only is not None and b"; target nehalem; " in b"; " + only.object
        monkeypatch.setattr(store, "runnable", lambda: ("nehalem", "x86-64"))
        older = store.find(native.key)
        assert older is not None and b"target nehalem" in older.object
        monkeypatch.setattr(store, "runnable", lambda: ("x86-64",))
        assert store.find(native.key) is None and not store.holds(native.key)
    with options.change(cache_dir=tmp_path / "mine", cache_shared=[tmp_path / "elsewhere"]):
        monkeypatch.setattr(store, "runnable", lambda: ("haswell",))
        assert store.find(native.key) is not None, "a shared folder keeps the list"


def tampered(bundle: Path, name: str, content: bytes) -> Path:
    """A bundle with one file's content changed."""
    result = bundle.with_name("tampered.zip")
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(result, "w") as target:
        for member in source.namelist():
            target.writestr(member, content if member.endswith(name) else source.read(member))
    return result


@pytest.mark.parametrize("name", store.FILES)
def test_a_tampered_bundle_is_refused(name: str, tmp_path: Path) -> None:
    store.store(ENTRY)
    manage.export(tmp_path / "bundle.zip")
    bundle = tampered(tmp_path / "bundle.zip", name, b"tampered")
    manage.clear()
    with pytest.raises(GraphcError, match="not a bundle"):
        manage.import_(bundle)
    assert manage.list_entries() == []


@pytest.mark.parametrize("member", ["../../evil.py", "/etc/evil", "notes.txt"])
def test_a_foreign_zip_file_is_refused(member: str, tmp_path: Path, folder: Path) -> None:
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as foreign:
        foreign.writestr(member, "text")
    with pytest.raises(GraphcError, match="not a bundle"):
        manage.import_(tmp_path / "foreign.zip")
    assert list(folder.rglob("*")) == []


def test_a_file_that_is_no_zip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with pytest.raises(GraphcError, match="not a bundle"):
        manage.import_(tmp_path / "text")


# What other users could have written


def planted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `path` belong to another user."""
    number = path.stat().st_ino

    def told(call: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def status(*args: Any, **kwargs: Any) -> os.stat_result:
            found = call(*args, **kwargs)
            fields = list(found)
            fields[4] += 1234 * (found.st_ino == number)
            return os.stat_result(fields)

        return status

    for name in ("stat", "lstat", "fstat"):
        monkeypatch.setattr(os, name, told(getattr(os, name)))


PARTS: dict[str, Callable[[Path], Path]] = {
    "bucket": lambda entry: entry.parent,
    "entry": lambda entry: entry,
    "metadata": lambda entry: entry / store.METADATA,
    "object": lambda entry: entry / store.OBJECT,
}


@pytest.mark.skipif(os.name != "posix", reason="needs users")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("how", ["owner", "group", "world"])
def test_entries_that_others_could_write_are_refused_though_the_folder_is_mended(
    part: str, how: str, shared: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.store(ENTRY)
    path = PARTS[part](place(ENTRY))
    if how == "owner":
        planted(path, monkeypatch)
    else:
        path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
    change = options.change(cache_dir=tmp_path / "mine", cache_shared=[folder]) if shared else options.change()
    with change, pytest.warns(CacheWarning, match="not used.*(delete it|GRAPHC_CACHE_DIR)") as warned:
        assert store.find(KEY) is None
        assert store.find(KEY) is None
        assert manage.list_entries() == [] or part == "object"  # which a list does not read
    assert len(warned) == 1 and str(path) in str(warned[0].message)


def test_an_entry_behind_a_link_is_refused(tmp_path: Path) -> None:
    store.store(ENTRY)
    place(ENTRY).rename(tmp_path / "elsewhere")
    place(ENTRY).symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning):
        assert store.find(KEY) is None


def test_files_are_written_for_the_user_alone() -> None:
    before = os.umask(0o002)
    try:
        store.store(ENTRY)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o077 for path in place(ENTRY).iterdir()} == {0}
    assert store.find(KEY) is not None


@pytest.mark.skipif(os.name != "posix", reason="needs users")
def test_nothing_is_imported_into_a_folder_that_others_can_write(tmp_path: Path, folder: Path) -> None:
    store.store(ENTRY)
    manage.export(tmp_path / "bundle.zip")
    manage.clear()
    folder.chmod(0o777)
    with pytest.raises(GraphcError, match="can be written by other users"):
        manage.import_(tmp_path / "bundle.zip")
    assert not place(ENTRY).exists()


# The files beside the entries


def test_writes_that_fail_leave_nothing_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key, "SETTLED_SECONDS", -60.0)
    store.store(ENTRY)
    usage().unlink()

    def fail(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", fail)
    store.store(keyed("another graph"))
    package = tmp_path / "package"
    package.mkdir()
    key.sources_digest(str(package), str(folder / key.SOURCES))
    assert [path.name for path in folder.iterdir() if len(path.name) > 2] == [USAGE]


def test_what_a_dead_process_left_beside_the_entries_is_removed(folder: Path) -> None:
    store.store(ENTRY)
    left = [folder / f"{name}.0123" for name in (USAGE, key.SOURCES)]
    for path in left:
        path.write_text("half")
        os.utime(path, (time.time() - 2 * store.STALE_SECONDS,) * 2)
    usage().unlink()
    store.store(keyed("another graph"))
    assert not any(path.exists() for path in left)
