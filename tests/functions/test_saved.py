"""Functions as files: the same results in another process without a compiler, and errors for all that is damaged."""

from __future__ import annotations

import errno
import inspect
import io
import os
import random
import re
import subprocess
import sys
import textwrap
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc.codegen.cache import files, key
from graphc.codegen.cache.key import fingerprint_parts
from graphc.codegen.llvm.cpu import runnable, target_fingerprint
from graphc.codegen.threads.settings import available_processors
from graphc.errors import CacheMissError, GraphcError
from graphc.functions import loaded as reading
from graphc.functions.archive import FIRST, Opened, open_file
from graphc.functions.callables import Function
from graphc.functions.native import Compiled
from graphc.options import options
from graphc.scipy import special
from graphc.trees import leaves, structure

LARGE = np.random.default_rng(5).normal(size=(3, 4000))
"""A constant that stands in keys by its digest."""


def with_updates() -> Function:
    x, w = T.dmatrix("x"), graphc.shared(np.arange(3.0), name="w")
    scale = graphc.In(T.fscalar("scale"), value=np.float32(2.5))
    outputs = [T.dot(x, T.constant(LARGE)).sum(1) * scale.variable, T.dot(x, w), T.linalg.solve(T.eye(3) * 2, w)]
    return graphc.function([x, scale], outputs, updates=[(w, w + x.sum(0))], name="step")


def of_loops() -> Function:
    x = T.dvector("x")
    states, _ = graphc.scan(lambda v, total: total * 0.5 + T.exp(v), [x], outputs_info=[T.constant(0.0)])
    return graphc.function([x], {"last": states[-1], "gradient": T.grad(states[-1], x), "order": T.argsort(x)})


def of_sizes_that_follow_from_values() -> Function:
    lengths = T.lvector("lengths")
    return graphc.function([lengths], T.zeros((T.cumsum(lengths)[-1] * 2,)) + lengths.sum())


def of_integers() -> Function:
    x, y = T.imatrix("x"), T.bvector("y")
    return graphc.function([x, y], [(x // 3) % 2 + y, x > y], allow_input_downcast=True)


def of_special_functions() -> Function:
    x = T.dvector("x")
    return graphc.function([x], [special.jv(1.5, x), T.gammainc(2.0, x), T.searchsorted(T.sort(x), x)])


CASES: dict[str, tuple[Callable[[], Function], list[Any]]] = {
    "updates, products, a large constant": (with_updates, [np.arange(12.0).reshape(4, 3)]),
    "loops, gradients, a dict": (of_loops, [np.linspace(-1, 1, 7)]),
    "sizes of values": (of_sizes_that_follow_from_values, [[1, 2, 3]]),
    "special functions": (of_special_functions, [np.linspace(0.5, 3, 5)]),
    "integers": (of_integers, [np.arange(-6, 6).reshape(3, 4), [1, 0, -1, 2]]),
}


def flat(results: Any) -> list[Any]:
    values = list(results.values()) if isinstance(results, dict) else results
    return values if isinstance(values, list) else [values]


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
@pytest.mark.parametrize("name", CASES)
def test_a_function_that_was_loaded_does_the_same(name: str, mode: str, tmp_path: Path) -> None:
    make, arguments = CASES[name]
    with options.change(mode=mode):
        function = make()
    function(*arguments)  # the states move on before they are saved
    function.save(tmp_path / "f.graphc")
    loaded = graphc.load(tmp_path / "f.graphc")
    assert (loaded.mode, loaded.name, repr(loaded)) == (mode, function.name, repr(function))
    for _ in range(2):
        expected, got = function(*arguments), loaded(*arguments)
        assert type(expected) is type(got)
        for old, new in zip(flat(expected), flat(got), strict=True):
            assert old.dtype == new.dtype
            np.testing.assert_array_equal(new, old)
    for old_leaf, new_leaf in zip(function.shared, loaded.shared, strict=True):
        assert old_leaf is not new_leaf and old_leaf.name == new_leaf.name
        np.testing.assert_array_equal(new_leaf.get_value(), old_leaf.get_value())
    with pytest.raises(GraphcError):
        loaded("text", *arguments[1:])


def test_messages_of_what_was_loaded_name_the_lines_of_the_program_that_was_saved(tmp_path: Path) -> None:
    program = """
    x, y, w = T.dmatrix("x"), T.dvector("y"), graphc.shared(np.ones(3), name="w")
    states, _ = graphc.scan(lambda row, total: total + T.dot(row, w), [x], outputs_info=[T.constant(0.0)])
    joined = T.concatenate([x, T.stack([y, y])])
    f = graphc.function([x, y], [states[-1], joined, T.grad(states[-1], w)])
    """
    made: dict[str, Any] = {"graphc": graphc, "T": T, "np": np}
    exec(compile(textwrap.dedent(program), "/no/such/folder/model.py", "exec"), made)
    made["f"].save(tmp_path / "f.graphc")
    assert b"/no/such/folder" not in (tmp_path / "f.graphc").read_bytes()
    loaded, seen = graphc.load(tmp_path / "f.graphc"), set()
    for sizes in ((2, 4), (3, 2)):
        texts = []
        for function in (made["f"], loaded):
            with pytest.raises(ValueError, match=r"model\.py:\d") as caught:
                function(np.ones((2, sizes[0])), np.ones(sizes[1]))
            texts.append(str(caught.value))
        assert texts[0] == texts[1]
        seen |= {*re.findall(r"model\.py:\d", texts[0])}
    assert len(seen) > 2


def test_code_in_the_file_is_taken_and_a_graph_without_code_is_compiled(tmp_path: Path) -> None:
    place, (make, arguments) = tmp_path / "f.graphc", CASES["updates, products, a large constant"]
    expected = make()(*arguments)
    make().save(place)
    with options.change(cache=False):
        before = graphc.compilations()
        assert isinstance(graphc.load(place, recompile=False), Compiled) and graphc.compilations() == before
        with options.change(outline="never"):
            with pytest.raises(
                CacheMissError, match=r"no code for this process\n  option outline: here never, stored auto"
            ):
                graphc.load(place, recompile=False)
            again = graphc.load(place)
        assert graphc.compilations() > before
        for old, new in zip(expected, again(*arguments), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12)
    (text,) = (part for part in again.text.splitlines() if "constant(" in part and "4000" in part)
    assert len(text) > 16 * LARGE.size, "the elements are there"


def test_a_file_keeps_its_code_through_an_edit_of_the_compiler_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, x = tmp_path / "f.graphc", T.dvector("x")
    graphc.function([x], x * 3).save(place)

    def with_changed(part: str) -> Function:
        digest = key.sources_digest
        monkeypatch.setattr(
            key, "sources_digest", lambda *args: digest(*args) if part not in args[2] else f"{part} changed"
        )
        key.package_fingerprint.cache_clear()
        key._bound_versions.cache_clear()
        made: Function = graphc.load(place, recompile=False)
        return made

    with options.change(cache=False):
        try:
            loaded = with_changed("")
            assert "changed" in key.package_fingerprint()
            np.testing.assert_array_equal(loaded([1.0, 2.0]), [3.0, 6.0])
            loaded.save(tmp_path / "g.graphc")  # no cache has its code
            np.testing.assert_array_equal(graphc.load(tmp_path / "g.graphc", recompile=False)([1.0]), [3.0])
            with pytest.raises(CacheMissError, match="the stored code was made by other sources of graphc"):
                with_changed("codegen/call")
            monkeypatch.undo()
            monkeypatch.setattr(key, "VERSION", "9.9")
            key._bound_versions.cache_clear()
            with pytest.raises(CacheMissError, match="version: here 9.9, stored"):
                graphc.load(place, recompile=False)
        finally:
            key.package_fingerprint.cache_clear()
            key._bound_versions.cache_clear()


@pytest.mark.slow
def test_another_process_needs_no_source_no_cache_and_no_compiler(tmp_path: Path) -> None:
    make, arguments = CASES["updates, products, a large constant"]
    function, other = make(), of_special_functions()
    function.save(tmp_path / "f.graphc")
    other.save(tmp_path / "g.graphc")
    np.savez(tmp_path / "values.npz", *function(*arguments), *other(np.ones(2)))
    code = f"""
        import sys
        import numpy as np, graphc
        f = graphc.load({str(tmp_path / "f.graphc")!r}, recompile=False)
        values = np.load({str(tmp_path / "values.npz")!r})
        found = f(np.arange(12.0).reshape(4, 3))
        f([[1, 2, 3]])
        graphs = {{f"graphc.{{name}}" for name in ("autodiff", "control", "ir.parse", "ir.text", "ops", "tensor")}}
        assert not graphs & set(sys.modules), "a call reads no graph"
        from graphc.codegen.cache.key import BOUND
        bound = {{each.removesuffix(".py").replace("/", ".") for each in BOUND}}
        others = {{"codegen.cache", "codegen.llvm.cpu", "codegen.server"}}
        loaded = [each.removeprefix("graphc.") for each in sys.modules if each.startswith("graphc.codegen.")]
        free = [each for each in loaded if not any(f"{{each}}.".startswith(f"{{room}}.") for room in bound | others)]
        assert free == ["codegen.llvm"], free  # others are in BOUND
        g = graphc.load({str(tmp_path / "g.graphc")!r}, recompile=False)
        for old, new in zip(values.values(), [*found, *g(np.ones(2))], strict=True):
            np.testing.assert_array_equal(new, old)
        f(np.ones((90, 3)))
        (constant,) = (each for each in f.built.constants if each.size > 1000)
        owner = constant
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert type(owner.base) is memoryview and type(owner.base.obj).__name__ == "mmap", "it is read from the file"
        assert not constant.flags.writeable and constant.ctypes.data % 64 == 0
        assert graphc.compilations() == 0 and not {{"numba", "llvmlite"}} & set(sys.modules)
        assert "matmul" in f.text and graphc.grad(f.kernel.outputs[0].sum(), f.kernel.inputs[0]).ndim == 2
    """
    others = "1" if available_processors() > 1 else "2"
    environment = {**os.environ, "GRAPHC_CACHE": "off", "OMP_NUM_THREADS": others}
    program = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    x, n = T.dvector("x"), T.lscalar("n")
    place = tmp_path / "f.graphc"
    with pytest.raises(GraphcError, match="calls tripled, a Python function of the program"):
        graphc.function([x], graphc.custom_op("tripled", lambda a: 3 * a)(x), mode="interpreted").save(place)
    doubled = graphc.custom_op("doubled_within", lambda a: 2 * a)
    states, _ = graphc.scan(doubled, [x])
    with pytest.raises(GraphcError, match="calls doubled_within, a Python function"):
        graphc.function([x], states, mode="interpreted").save(place)
    point = namedtuple("point", "a b")
    for function, said in (
        (graphc.function([point(x, n)], x + n, mode="interpreted"), "a point cannot be saved; tuples, lists and dicts"),
        (graphc.function([{(1, 2): x}], x + 1, mode="interpreted"), "the key .1, 2. of a dict is neither text nor"),
        (graphc.function([x], x + 1, mode="DebugMode"), "cannot be saved; pickle it"),
        (graphc.function([x], states, mode="interpreted", profile=True), "with a profile of its loops"),
    ):
        with pytest.raises(GraphcError, match=said):
            function.save(place)
    plain = graphc.function([x], x + 1, mode="interpreted")
    with pytest.raises(GraphcError, match="values='outside': must be 'inside' or 'beside'"):
        plain.save(place, values="outside")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IsADirectoryError):
        graphc.function([x], x + 1, mode="interpreted").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_functions_of_trees_and_of_states_go_on_where_they_were(tmp_path: Path) -> None:
    x, b, n = T.dvector("x"), T.dscalar("b"), T.iscalar("n")
    total = graphc.shared(1.0, name="total")
    with options.change(mode="interpreted"):
        first = graphc.function([graphc.In(n, value=5, update=n * 2)], n)
        shares = graphc.function([graphc.In(n, value=first.container[n])], n + 1)
        nested = graphc.function(
            [{"x": x, "rest": [b]}, graphc.In(n, value=0, update=n + 1)], {"s": x * b + n, "t": (total + n,)},
            updates=[(total, total + 1)],
        )  # fmt: skip
    given = {"x": [1.0, 2.0], "rest": [3.0]}
    for function, arguments in ((first, ()), (shares, ()), (nested, (given,))):
        function(*arguments)
        function.save(tmp_path / "f.graphc")
        loaded = graphc.load(tmp_path / "f.graphc")
        assert type(loaded) is type(function) and [*inspect.signature(loaded).parameters] == [
            *inspect.signature(function).parameters
        ]
        for _ in range(3):
            expected, got = function(*arguments), loaded(*arguments)
            assert structure(expected) == structure(got)
            for old, new in zip(leaves(expected), leaves(got), strict=True):
                assert old.dtype == new.dtype
                np.testing.assert_array_equal(new, old)
        loaded["n"] = 40
        assert int(loaded["n"]) == 40 != int(function[n]), "values of its own"
    assert int(loaded.copy()["n"]) == int(nested.copy()[n]) == 0, "a copy begins anew"
    assert int(nested(given, 7)["s"][0]) == int(loaded(given, 7)["s"][0]) == 10
    with pytest.raises(GraphcError, match="must be a dict of 2: x, rest|must be {"):
        loaded({"x": [1.0]})
    with pytest.raises(GraphcError, match="is implicit and cannot be given"):
        graphc.load(saved(shares, tmp_path))(3)


def saved(function: Any, tmp_path: Path) -> Path:
    function.save(tmp_path / "g.graphc")
    return tmp_path / "g.graphc"


def test_values_stand_in_the_file_or_beside_it(tmp_path: Path) -> None:
    place, (make, arguments) = tmp_path / "f.graphc", CASES["updates, products, a large constant"]
    with options.change(mode="interpreted"):
        function = make()
    function.save(place, values="beside")
    beside = Path(f"{place}.values")
    assert place.stat().st_size < LARGE.nbytes < beside.stat().st_size
    loaded = graphc.load(place)
    for old, new in zip(function(*arguments), loaded(*arguments), strict=True):
        np.testing.assert_array_equal(new, old)
    content = bytearray(beside.read_bytes())
    content[-100] ^= 1
    beside.unlink()
    with pytest.raises(GraphcError, match=r"saved with its values beside it, and .*values is not there"):
        graphc.load(place)
    beside.write_bytes(content)
    with pytest.raises(GraphcError, match=r"f.graphc.values is damaged: blob"):
        graphc.load(place)
    function.value["w"] = np.zeros(3)
    function.save(tmp_path / "g.graphc", values="beside")
    beside.write_bytes(Path(f"{tmp_path / 'g.graphc'}.values").read_bytes())
    with pytest.raises(GraphcError, match="has not the values that .* was saved with"):
        graphc.load(place)


@pytest.mark.slow
def test_a_file_has_code_for_several_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best that the processor runs is taken; code for another one is never read."""
    place, x = tmp_path / "f.graphc", T.dvector("x")
    function = graphc.function([{"a": x}], T.exp(x).sum() * 3, name="several")
    with pytest.raises(GraphcError, match="'pentium' is no target"):
        function.save(place, targets=["pentium"])
    function.save(place, targets=["x86-64", "skylake-avx512"])
    opened = open_file(os.fspath(place))
    rows = opened.header["function"]["whole"]["codes"]
    assert [fingerprint_parts(row["fingerprint"])["target"] for row in rows] == ["native", "x86-64", "skylake-avx512"]
    assert len({bytes(opened.blob(row["object"])) for row in rows[1:]}) == 2 and len([*tmp_path.iterdir()]) == 1
    before = target_fingerprint
    monkeypatch.setattr(
        key, "target_fingerprint", lambda target=None: before(target) + "; features another" * (not target)
    )
    if not runnable():
        pytest.skip("this processor runs no named target")
    expected = float(function({"a": [0.0, 1.0]}))
    read: list[int] = []
    blob = Opened.blob

    def noted(self: Opened, number: int) -> memoryview:
        read.append(number)
        return blob(self, number)

    monkeypatch.setattr(Opened, "blob", noted)
    with options.change(cache=False):
        for known in (["x86-64", "skylake-avx512"], ["x86-64"]):
            best = [each for each in runnable() if each in known]
            monkeypatch.setattr(reading, "runnable", lambda best=best: best)
            read.clear()
            loaded = graphc.load(place, recompile=False)
            taken = next(row for row in rows if f"target {best[0]};" in row["fingerprint"])
            assert taken["object"] in read and not {row["object"] for row in rows if row is not taken} & {*read}
            np.testing.assert_allclose(loaded({"a": [0.0, 1.0]}), expected, rtol=1e-14)
        monkeypatch.setattr(reading, "runnable", list)
        with pytest.raises(CacheMissError, match="has no code for this process"):
            graphc.load(place, recompile=False)


def test_other_files_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "f.graphc"
    for content, said in (
        (b"", "no function that was saved"),
        (b"PK\x03\x04", "no function that was saved"),
        (b"graphc 1 " + FIRST, r"by an older graphc, in another version of the format \(1, not 3\): save it again"),
        (b"graphc 4 " + FIRST, r"by a newer graphc, in another version of the format \(4, this one reads 3\)"),
        (b"graphc x " + FIRST, "damaged: its first line"),
        (FIRST + b"0" * 64 + b" 99999999999999\n", "its first line"),
        (FIRST + b"0" * 64 + b" 2\n{}", "its header"),
    ):
        place.write_bytes(content)
        with pytest.raises(GraphcError, match=said):
            graphc.load(place)
    with pytest.raises(FileNotFoundError):
        graphc.load(tmp_path / "none")


def test_a_file_may_be_open_or_be_named_in_any_way(tmp_path: Path) -> None:
    place, other, x = tmp_path / "f.graphc", tmp_path / "g.graphc", T.dvector("x")
    with options.change(mode="interpreted"):
        double = graphc.function([x], T.dot(x, T.constant(LARGE)))
        wanted = double(np.ones(3))
        double.save(os.fsencode(place))
        other.symlink_to(place)
        held, loaded = io.BytesIO(), graphc.load(str(place))
        double.save(held)
        assert held.getvalue() == place.read_bytes()
        held.seek(0)
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as folder, folder.open("f", "w") as file:
            double.save(file)
        with zipfile.ZipFile(tmp_path / "all.zip") as folder, folder.open("f") as file, place.open("rb") as opened:
            for each in (held, file, opened, other, os.fsencode(other)):
                np.testing.assert_array_equal(graphc.load(each)(np.ones(3)), wanted)
        double.save(other)
        assert other.is_symlink() and place.stat().st_nlink == 1
        loaded.save(place)  # over the file that it reads its constant from
        place.unlink()
        np.testing.assert_array_equal(loaded(np.ones(3)), wanted)
        with (tmp_path / "text").open("w+") as text:
            acts: tuple[Any, ...] = double.save, graphc.load
            for act in acts:
                with pytest.raises(GraphcError, match="open it with mode 'w?r?b'"):
                    act(text)
        for how in ({"values": "beside"}, {"targets": ["haswell"]}):
            with pytest.raises(GraphcError, match="give (a|its) path"):
                double.save(io.BytesIO(), **how)


def test_what_cannot_be_written_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, x = tmp_path / "f.graphc", T.dvector("x")
    with options.change(mode="interpreted"):
        double = graphc.function([x], x * 2)
        double.save(place)
        before = place.read_bytes()
        os.mkfifo(tmp_path / "pipe")
        for path, error, said in (
            (tmp_path, IsADirectoryError, "is a folder: name a file in it"),
            (tmp_path / "none" / "f", FileNotFoundError, f"cannot be written: there is no folder {tmp_path / 'none'}"),
            (tmp_path / "pipe", OSError, "is no regular file: give an open file"),
        ):
            with pytest.raises(error, match=said):
                double.save(path)
        for number, said in (
            (errno.ENOSPC, "and is as it was: No space left on device"),
            (errno.EROFS, f"; in {tmp_path} a new file must be made"),
            (errno.EACCES, f"; in {tmp_path} a new file must be made"),
        ):

            def fail(*args: Any, number: int = number, **how: Any) -> None:
                raise OSError(number, os.strerror(number), "another name")

            with monkeypatch.context() as patch:
                patch.setattr(files, "write", fail)
                with pytest.raises(OSError, match=said) as caught:
                    double.save(place)
            assert (caught.value.errno, caught.value.filename) == (number, str(place))
        assert place.read_bytes() == before and {each.name for each in tmp_path.iterdir()} == {"f.graphc", "pipe"}


MUTATE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from test_saved import mutate
    mutate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


def mutate(path: str, seed: int, count: int) -> None:
    """Change a file at random, `count` times; loading it is an error, or the function is as it was."""
    whole, draw = Path(path).read_bytes(), random.Random(seed)
    argument = CASES["loops, gradients, a dict"][1][0]
    expected, refused = flat(graphc.load(path)(argument)), 0
    for number in range(count):
        content = bytearray(whole)
        kind = number % 4
        if kind == 0:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        elif kind == 1:  # the header, which all else hangs on
            content[draw.randrange(3000)] = draw.randrange(256)
        elif kind == 2:
            del content[draw.randrange(len(content)) :]
        else:
            start, end = sorted(draw.randrange(len(content)) for _ in range(2))
            content[start:end] = draw.randbytes(draw.randrange(200))
        changed = f"{path}.{number % 2}"
        Path(changed).unlink(missing_ok=True)
        Path(changed).write_bytes(content)
        try:
            got = flat(graphc.load(changed)(argument))
        except GraphcError as error:
            refused += changed in str(error)
            continue
        for old, new in zip(expected, got, strict=True):
            np.testing.assert_array_equal(new, old)
    assert refused >= count * 0.9, refused


@pytest.mark.slow
def test_no_change_of_a_file_crashes_or_changes_a_result(tmp_path: Path) -> None:
    place = tmp_path / "f.graphc"
    of_loops().save(place)
    program = [sys.executable, "-c", textwrap.dedent(MUTATE), os.path.dirname(__file__), str(place), "1", "400"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
