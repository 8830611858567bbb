"""Exported functions: what C calls computes what the interpreter does; errors are codes; the files compile."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import scipy

import graphc
import graphc.tensor as T
from graphc import cli
from graphc.codegen.call import c_ir
from graphc.codegen.call.c_interface import CODES, FIRST_CHECK
from graphc.codegen.link.elf import link_image
from graphc.codegen.llvm.cpu import lacking
from graphc.errors import GraphcError
from graphc.functions.exported import part_of
from graphc.layers import Sequential
from graphc.options import options
from graphc.tensor.shared_randomstreams import RandomStreams
from graphc.theano.fft import irfft, rfft
from tests.support.exported_library import C_NUMBERS, NUMBER, Called, agrees

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="it needs a C compiler"),
]


def test_all_dtypes_sizes_and_broadcasts_agree(tmp_path: Path) -> None:
    arrays = [T.TensorType(dtype, (None, None))(f"x_{dtype}") for dtype in C_NUMBERS]
    numbers = [T.TensorType(dtype, ())(f"n_{dtype}") for dtype in C_NUMBERS]
    f32, f64 = arrays[1:3]
    row, fixed = T.drow("int"), T.TensorType("float64", (2, 3))("fixed")  # `int` is no name in C
    outputs = [T.switch(x > 0, x, n).sum(axis=0) for x, n in zip(arrays[1:], numbers[1:], strict=True)]
    outputs += [
        T.and_(arrays[0], numbers[0]), f64 + row, T.exp(fixed), fixed[0], T.constant(np.arange(3.0)) + row,
        T.sin(f64) * T.log1p(abs(f32)), T.tanh(f64).mean(), f64.T[::-1], T.erf(row),
        T.sort(f64, axis=1), f64.cumsum(axis=0), f64.nonzero()[1],
    ]  # fmt: skip
    function = graphc.function([*arrays, *numbers, row, fixed], outputs, mode="interpreted")
    called = Called(function, tmp_path)
    rng = np.random.default_rng(0)
    for shape in ((2, 3), (0, 3), (1, 3), (33, 3)):
        values = [
            rng.integers(0, 2, shape).astype(dtype) if dtype == "bool" else rng.integers(0, 9, shape).astype(dtype)
            for dtype in C_NUMBERS
        ]
        values += [np.dtype(dtype).type(1) for dtype in C_NUMBERS]
        agrees(called, *values, rng.normal(size=(1, 3)), rng.normal(size=(2, 3)), rtol=1e-5)


def test_gradients_products_scans_and_updates_agree(tmp_path: Path) -> None:
    x, y, steps = T.dmatrix("x"), T.dvector("y"), T.iscalar("steps")
    w, b = graphc.shared(np.linspace(-1, 1, 3), name="w"), graphc.shared(0.5, name="b")
    count, table = graphc.shared(np.int8(3), name="count"), graphc.shared(np.arange(6.0).reshape(2, 3), name="table")
    state = T.tanh(T.dot(x, w) + b)
    cost = ((state - y) ** 2).mean() + (table[1] ** 2).sum()
    dw, db = graphc.grad(cost, [w, b])
    powers, _ = graphc.scan(lambda s, a: s * a, outputs_info=T.ones_like(y), non_sequences=y, n_steps=steps)
    updates = [(w, w - 0.1 * dw), (b, b - 0.1 * db), (count, count + 1), (table, table[::-1])]
    outputs = [cost, dw, powers, T.dot(x.T, x), T.dot(x, x.T).sum(), x[steps - 1]]
    called = Called(graphc.function([x, y, steps], outputs, updates=updates, mode="interpreted"), tmp_path)
    rng = np.random.default_rng(1)
    for rows in (5, 1, 100):
        agrees(called, rng.normal(size=(rows, 3)), rng.normal(size=rows), 1)
    header = (tmp_path / "model.h").read_text()
    assert "double b; /* updated */" in header and "double *w; /* [w_0], updated */" in header

    wrong = [rng.normal(size=(5, 4)), rng.normal(size=5), np.int32(1)]
    code, _ = called.call(wrong)
    assert code > FIRST_CHECK and b"the summed axis has sizes" in called.text(code)
    fine = [rng.normal(size=(5, 3)), rng.normal(size=5), np.int32(1)]
    before = [value.copy() for value in called.values]
    assert called.call(fine, room=8)[0] == NUMBER["WORKSPACE"]
    assert called.call([fine[0], fine[1], np.int32(9)])[0] in (NUMBER["REFUSED"], *range(FIRST_CHECK, 200))
    called.state.v0 = called.initial().v0
    places = [leaf.name for leaf in called.shared]
    assert called.call(fine)[0] == NUMBER["STATE_CONSTANT"] or places[0] != "w"
    called.state.v0 = None
    assert called.call(fine)[0] == NUMBER["NULL"] or not called.shared[0].ndim
    for value, old in zip(called.values, before, strict=True):
        np.testing.assert_array_equal(value, old)


def test_convolutions_and_large_products_use_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By tiles and panels; one by one where the workspace has no room for these. Threads call at once."""
    images, kernels, few, m = T.dtensor4("images"), T.ftensor4("kernels"), T.dtensor4("few"), T.dmatrix("m")
    conv = T.nnet.conv2d(images, kernels.astype("float64"), border_mode="half", subsample=(2, 1))
    grouped = T.nnet.conv2d(images, few, border_mode=1, num_groups=6)
    whole = T.nnet.conv2d(images.astype("int64"), kernels.astype("int64"))
    outputs = [conv, grouped, whole, *graphc.grad((conv**2).sum() + grouped.sum(), [images, kernels, few]), T.dot(m, m)]
    function = graphc.function([images, kernels, few, m], outputs, mode="interpreted")
    rng = np.random.default_rng(6)
    values = [
        rng.normal(size=(3, 6, 19, 17)), rng.normal(size=(5, 6, 3, 3)).astype("f"), rng.normal(size=(6, 1, 3, 3)),
        rng.normal(size=(110, 110)),
    ]  # fmt: skip
    wanted = function(*values)
    rounded = [2000 * 2.0**-52 * abs(right).max() for right in wanted]  # 1400 terms at most, rounded once or twice each
    rounded[4] = 2.0**-23 * abs(wanted[4]).max()  # float32
    rooms = []
    for folder, most in (("tiles", c_ir.MOST_ROOM), ("one_by_one", 0)):
        monkeypatch.setattr(c_ir, "MOST_ROOM", most)
        called = Called(function, tmp_path / folder)
        rooms.append(called.sizes(values)[1])
        with ThreadPoolExecutor(3) as pool:
            for code, made in pool.map(called.call, [values] * 3, timeout=300):
                assert code == 0
                for found, right, bound in zip(made, wanted, rounded, strict=True):
                    np.testing.assert_allclose(found, right, rtol=0, atol=bound)
    arrays = sum(each.nbytes for each in (*values, *wanted))
    assert rooms[0] - rooms[1] > 8 * arrays
    small = [rng.normal(size=(1, 6, 4, 4)), *values[1:3], np.eye(3)]
    agrees(called, *small, rtol=1e-6, atol=1e-12)


def test_draws_go_on_from_the_state_in_the_struct(tmp_path: Path) -> None:
    stream, number, pair = RandomStreams(3), T.dscalar("number"), {"a": T.dvector("a"), "b": T.dvector("b")}
    a, b = np.arange(3.0), np.ones(3)
    cases: list[tuple[list[Any], Any, list[Any], list[Any]]] = [
        ([graphc.In(number, value=2.0, update=number * 3)], [stream.normal((5,)), number + 1], [], []),
        ([pair], [pair["a"] - pair["b"]], [{"a": a, "b": b}], [a, b]),
    ]
    for place, (inputs, outputs, given, leaves) in enumerate(cases):
        called = Called(graphc.function(inputs, outputs, mode="interpreted"), tmp_path / str(place))
        for _ in range(2):
            for found, right in zip(called.call(leaves)[1], called.function(*given), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-12)


def test_threads_call_at_once_each_with_a_workspace_of_its_own(tmp_path: Path) -> None:
    """ctypes gives up the GIL: calls overlap. Every result has the bits of a call that was alone."""
    x, w = T.dmatrix("x"), graphc.shared(np.linspace(-1, 1, 60), name="w")
    state = T.tanh(T.dot(x, w))
    outputs = [state.sum(), graphc.grad((state**2).sum(), x), T.sort(x.sum(axis=1)), T.dot(x.T, x), x.cumsum(axis=0)]
    called = Called(graphc.function([x], outputs, mode="interpreted"), tmp_path)
    rng = np.random.default_rng(5)
    given = [rng.normal(size=(rows, 60)) for rows in (150, 151, 40, 200)]
    wanted = [called.call([value]) for value in given]
    assert called.sizes([given[0]])[1] > 0 and all(code == 0 for code, _ in wanted)
    start = Barrier(len(given), timeout=60)

    def work(value: Any) -> list[tuple[int, list[Any]]]:
        start.wait()
        return [called.call([value]) for _ in range(20)]

    with ThreadPoolExecutor(len(given)) as pool:
        running = [pool.submit(work, value) for value in given]
        for (_, right), each in zip(wanted, running, strict=True):
            for code, made in each.result(timeout=60):
                assert code == 0
                for found, one in zip(made, right, strict=True):
                    np.testing.assert_array_equal(found, one)


def test_a_network_is_exported_by_the_command_line(tmp_path: Path) -> None:
    """A saved network with a convolution, whose images C takes by strides: here with the channels last."""
    with options.change(mode="interpreted"):
        net = Sequential(input_shape=(1, 8, 8), dtype="float64", seed=3)
        net.add_conv(1, 3, activation="relu", pool=2).add_flatten().add_fc(None, 4).add_cost("softmax").save(
            tmp_path / "net.graphc"
        )
        x = np.random.default_rng(8).normal(size=(5, 8, 8, 1))
        images = np.moveaxis(x, -1, 1)[::-1]
        wanted = net.predict_probabilities(images)
        place = tmp_path / "lib" / "net"
        words = ["export", str(tmp_path / "net.graphc"), str(place), "--part", "probabilities", "--strided", "all"]
        assert cli.main(words) == 0
        function = part_of(graphc.load(tmp_path / "net.graphc"), "probabilities")
    called = Called(function, place.parent, "net", written=True)
    code, (found,) = called.call([images])
    assert code == 0, called.text(code)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_jitted_function_is_exported_with_the_keys_of_its_results(tmp_path: Path) -> None:
    def both(x: Any) -> Any:
        return {"total": x.sum(), "double": x * 2, "pair": [x - 1, {"last": x[-1:]}]}

    f = graphc.jit(both, mode="interpreted")
    with pytest.raises(GraphcError, match="both .* was not called yet; call it first, since calls compile"):
        f.export(tmp_path / "both")
    f(np.ones(3))
    with pytest.raises(GraphcError, match="'write' cannot be the name .*; C's library has a function of this name"):
        f.export(tmp_path / "write")
    f.export(tmp_path / "both", strided="pair_0")
    header = (tmp_path / "both.h").read_text()
    names = re.findall(r"double \*(\w+)", header[header.index("int both(") :])
    assert names == ["x", "out", "pair_0", "pair_1_last", "total"]  # double is a word of C
    f(np.ones((3, 3)))
    with pytest.raises(GraphcError, match="there are the parts 0: .*; 1: .*: name one of them by `part`"):
        f.export(tmp_path / "both")


def test_special_functions_and_transforms_are_written_out(tmp_path: Path) -> None:
    """In the place of SciPy's; both dtypes, and the derivatives that are such functions."""
    x, y, z = T.dvector("x"), T.dvector("y"), T.fvector("z")
    special = graphc.scipy.special
    chance = special.gammaincc(2.0, y).sum() + special.ndtri(T.sigmoid(y)).sum()
    outputs = [
        special.gammainc(x, y), special.betainc(x, y, T.sigmoid(x)), special.kv(x, y), special.erfinv(T.tanh(z)),
        graphc.scipy.stats.gamma.cdf(y, x), graphc.grad(chance, y), irfft(rfft(T.exp(x[None]))),
        special.j1(10 * x), special.gamma(-x), special.ellipe(-y), special.expi(-y),
        graphc.scipy.stats.f.ppf(T.sigmoid(y), x, 3.0), special.gammaincinv(x, T.sigmoid(z)),
        special.airy(x - 3 * y)[0], special.airy(-y)[3], graphc.grad(special.jv(1.5 * x, y + 7 * x).sum(), y),
    ]  # fmt: skip
    called = Called(graphc.function([x, y, z], outputs, mode="interpreted"), tmp_path)
    rng = np.random.default_rng(0)
    agrees(called, rng.uniform(0.1, 5, 40), rng.uniform(0.1, 5, 40), rng.normal(size=40).astype("f"), rtol=2e-6)


def test_wrong_arguments_are_codes_with_texts(tmp_path: Path) -> None:
    x = T.dvector("x")
    called = Called(graphc.function([x], [T.exp(x), x.sum()], mode="interpreted"), tmp_path)
    run, value = called.library.model, np.ones(4)
    out, total = np.zeros(4), np.zeros(())
    size = ctypes.c_int64

    def at(array: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    code, length, _ = called.sizes([value])
    assert code == 0
    room = np.zeros(length, np.uint8)
    rest: Any = (at(room), ctypes.c_size_t(length))
    cases = {
        "NULL": [None, size(4), at(out), size(4), at(total), *rest],
        "SIZE": [at(value), size(-1), at(out), size(4), at(total), *rest],
        "OVERLAP": [at(value), size(4), at(value), size(4), at(total), *rest],
        "RESULT_SIZE": [at(value), size(4), at(out), size(5), at(total), *rest],
        "TOO_LARGE": [at(value), size(2**60), at(out), size(2**60), at(total), *rest],
        "OK": [at(value), size(4), at(out), size(4), at(total), *rest],
    }
    assert {name: run(*args) for name, args in cases.items()} == {name: NUMBER[name] for name in cases}
    np.testing.assert_array_equal(out, np.exp(value))
    assert run(None, size(0), None, size(0), at(total), *rest) == 0 and total == 0
    assert [called.text(number).decode() for number in NUMBER.values()] == [*CODES.values()]
    assert b"no error of this number" in called.text(-3)
    header = (tmp_path / "model.h").read_text()
    assert all(re.search(rf"MODEL_{name} = {number},", header) for name, number in NUMBER.items())


def test_what_cannot_be_exported_is_refused_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    x, m = T.dvector("x"), T.dmatrix("m")

    as_op: Any = import_module("graphc.compile.ops").as_op
    mine = as_op([T.dvector], [T.dvector], infer_shape=lambda node, shapes: shapes)(lambda value: value + 1)

    cases: dict[str, tuple[Any, Any]] = {
        "Python computes FromFunctionOp(": ([x], mine(x)),
        "SciPy computes special_struve(": ([x], graphc.scipy.special.struve(1.5, x)),
        "export it with blas=True": ([m], T.slinalg.cholesky(m)),
    }
    for words, (inputs, output) in cases.items():
        function = graphc.function(inputs, output, mode="interpreted")
        with pytest.raises(GraphcError, match=re.escape(words)) as found:
            function.export(tmp_path / "model")
        assert "(test_exported.py:" in str(found.value) or "blas" in words
    staged = graphc.function([x], T.zeros((T.nonzero(x)[0].sum(),)))
    with pytest.raises(GraphcError, match="several kernels"):
        staged.export(tmp_path / "model")
    plain = graphc.function([x], x + 1, mode="interpreted")
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("cannot be the name", "double", {}),
        ("must be one of", "model", {"target": "pdp11"}),
        ("language='ada'", "model", {"language": "ada"}),
    ]
    for words, path, asked in wrong:
        with pytest.raises(GraphcError, match=words):
            plain.export(tmp_path / path, **asked)
    assert not list(tmp_path.iterdir())


def test_factorisations_call_the_lapack_that_is_linked(tmp_path: Path) -> None:
    m, b = T.dmatrix("m"), T.dvector("b")
    outputs = [T.slinalg.cholesky(m), T.slinalg.solve(m, b), T.dot(m, m)]
    function = graphc.function([m, b], outputs, mode="interpreted")
    function.export(tmp_path / "factors", blas=True)
    header = (tmp_path / "factors.h").read_text()
    assert "Link BLAS and LAPACK" in header and "dpotrf_" in header and "dgetrf_" in header and "dgeev_" not in header
    assert "-llapack -lblas" in (tmp_path / "factors.pc").read_text()
    assert "libfactors.a -llapack -lblas -lm &&" in (tmp_path / "factors_example.c").read_text()
    done = subprocess.run(
        ["nm", "-u", str(tmp_path / "factors.o")], capture_output=True, text=True, timeout=60, check=True
    )
    assert {"dpotrf_", "dgetrf_", "dgemm_"} <= set(done.stdout.split())
    # Small matrices go by graphc's own loops: stand-ins for the routines show that these are not called.
    names = sorted(set(re.findall(r"\b[ds][a-z]+_\b", done.stdout)))
    (tmp_path / "standins.c").write_text(
        "#include <stdlib.h>\n" + "".join(f"void {n}(void) {{ abort(); }}\n" for n in names)
    )
    cc = [
        "cc",
        "-shared",
        "-fPIC",
        "-o",
        str(tmp_path / "libfactors.so"),
        str(tmp_path / "factors.o"),
        str(tmp_path / "standins.c"),
    ]
    subprocess.run([*cc, "-lm"], check=True, timeout=60)
    called = Called.of(function, tmp_path / "libfactors.so", "factors")
    root = np.random.default_rng(2).normal(size=(5, 5))
    agrees(called, root @ root.T + np.eye(5), np.arange(5.0), rtol=1e-9)
    assert called.call([-np.eye(5), np.arange(5.0)])[0] == NUMBER["REFUSED"]


COUNTED = """
void {real}(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);
int calls_{name};
void {own}(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j, void *k, void *l,
           void *m) {{ calls_{name}++; {real}(a, b, c, d, e, f, g, h, i, j, k, l, m); }}
"""
"""A function that counts calls of a routine, and hands its arguments on: 13 addresses at most."""


def found_blas(folder: Path) -> dict[str, tuple[str, str, list[str]]]:
    """The BLAS and LAPACK of this machine: what linkers of C find, and SciPy's own. For each the names of a function in
    place of a routine and of the routine, and the words for the linker."""
    found: dict[str, tuple[str, str, list[str]]] = {}
    (folder / "empty.c").write_text("void dgemm_(void); void dpotrf_(void); int main(void) { dgemm_(); dpotrf_(); }")
    words = ["-llapack", "-lblas"]
    command = ["cc", str(folder / "empty.c"), "-o", str(folder / "empty"), *words]
    if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0:
        found["the system's"] = "__wrap_{}", "__real_{}", words
    for path in (Path(scipy.__file__).parents[1] / "scipy.libs").glob("libscipy_openblas-*.so"):
        found["SciPy's"] = "{}", "scipy_{}", [str(path), f"-Wl,-rpath,{path.parent}"]
    return found


def test_large_products_and_factorisations_run_in_a_real_blas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each library that is there is linked with the object, and each routine is counted."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    libraries = found_blas(tmp_path)
    if not libraries:
        pytest.skip("it needs a BLAS and a LAPACK")
    m, k, b = T.dmatrix("m"), T.fmatrix("k"), T.dvector("b")
    outputs = [T.slinalg.cholesky(m), T.slinalg.solve(m, b), T.dot(k, k)]
    function = graphc.function([m, k, b], outputs, mode="interpreted")
    function.export(tmp_path / "factors", blas=True)
    names = re.findall(r"\b[ds][a-z]+_\b", (tmp_path / "factors.h").read_text().splitlines()[0])
    routines = {"sgemm_", "dgemm_", "dpotrf_", "dgetrf_"}
    assert routines <= set(names)
    rng, size = np.random.default_rng(2), 130  # above 64^3 multiplications, and above the blocks that LAPACK gets
    root = rng.normal(size=(size, size))
    positive, right = root @ root.T / size + np.eye(size), root[0]
    bound = float(np.linalg.cond(positive)) * size**2 * 2.0**-52  # of either factorisation, of entries about 1
    exact = rng.integers(-8, 9, (size, size)).astype("float32")  # sums below 2^24: float32 rounds nothing
    for number, (kind, (own, real, words)) in enumerate(libraries.items()):
        counters = [COUNTED.format(name=n, own=own.format(n), real=real.format(n)) for n in names]
        (tmp_path / "counters.c").write_text("".join(counters))
        wraps = [f"-Wl,--wrap={n}" for n in names if own != "{}"]
        library = tmp_path / f"libfactors{number}.so"
        files = [str(tmp_path / "factors.o"), str(tmp_path / "counters.c")]
        command = ["cc", "-shared", "-fPIC", "-w", "-o", str(library), *files, *wraps, *words, "-lm", "-Wl,-z,defs"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{kind}: {done.stderr}"
        called = Called.of(function, library, "factors")

        def called_so_often(of: Any = called.library) -> dict[str, int]:
            return {name: ctypes.c_int.in_dll(of, f"calls_{name}").value for name in names}

        agrees(called, np.eye(5), exact[:5, :5].copy(), np.arange(5.0))
        assert not any(called_so_often().values()), kind
        agrees(called, positive, exact, right, atol=bound)
        counts = called_so_often()
        assert all(counts[name] for name in routines), (kind, counts)
        assert called.call([-positive, exact, right])[0] == NUMBER["REFUSED"], kind


def test_the_files_compile_without_a_warning_and_run(tmp_path: Path) -> None:
    """The example in C and C++, by the static and the shared library, pkg-config and CMake, under valgrind."""
    x = T.dmatrix("x")
    w, b = graphc.shared(np.ones(3), name="w"), graphc.shared(np.float32(2), name="b")
    cost = T.exp(T.dot(x, w)).sum() * b
    function = graphc.function([x], [cost, graphc.grad(cost, x)], updates=[(w, w + 1)], mode="interpreted")
    paths = function.export(tmp_path / "model", target="haswell")
    assert sorted(map(os.path.basename, paths)) == sorted(
        ["model.h", "model.o", "libmodel.a", "libmodel.so", "model.pc", "model.cmake", "model_example.c"]
    )
    assert len((tmp_path / "model_example.c").read_text().splitlines()) < 40

    def run(command: str) -> str:
        env = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path)}
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=env, check=False
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout

    strict = "-std=c99 -Wall -Wextra -Werror -pedantic"
    wanted = "{:.9g} \n{}\n".format(np.exp(3.0) * 8, f"{2 * np.exp(3.0):.9g} " * 8)
    run(f"cc {strict} model_example.c libmodel.a -lm -o static")
    run(f"cc {strict} model_example.c -L. -lmodel -Wl,-rpath,. -o dynamic")
    assert run("./dynamic") == wanted
    if shutil.which("g++"):
        run("g++ -std=c++11 -Wall -Wextra -Werror -x c++ -fsyntax-only model.h")
    if shutil.which("pkg-config"):
        assert run("cc model_example.c $(pkg-config --cflags --libs model) -o packaged && ./packaged") == wanted
    if not lacking("haswell"):
        assert run("./static") == wanted
        if shutil.which("valgrind"):
            assert run("valgrind -q --error-exitcode=3 ./static") == wanted
    if shutil.which("cmake"):
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.10)\nproject(use C)\ninclude(model.cmake)\n"
            "add_executable(use model_example.c)\ntarget_link_libraries(use model)\n"
            "add_executable(shared model_example.c)\ntarget_link_libraries(shared model_shared)\n"
        )
        run("cmake -S . -B build > log && cmake --build build > log")
        assert run("./build/use") == run("./build/shared") == wanted
    works = shutil.which("rustc") and subprocess.run(["rustc", "--version"], capture_output=True, check=False)
    if works and works.returncode == 0:  # rustup puts a program there that may have no compiler behind it
        (tmp_path / "use.rs").write_text(RUST)
        assert run("rustc -L. -lstatic=model use.rs -o rust && ./rust") == f"{np.exp(3.0) * 4:.6f}\n"


def test_the_program_of_the_page_prints_what_is_said(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text("utf-8")
    python, program, printed, imports, imported = (
        re.findall(rf"<!-- {label} -->\n```\w+\n(.*?)```", page, re.DOTALL)[0]
        for label in ("export", "use", "printed", "import", "imported")
    )
    made: dict[str, Any] = {}
    exec(python.replace('"lib/fit"', repr(str(tmp_path / "lib" / "fit"))), made)
    made["step"].export(tmp_path / "lib" / "fit", language="python")
    (tmp_path / "lib" / "use.py").write_text(imports)
    words = [sys.executable, str(tmp_path / "lib" / "use.py")]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout == imported
    (tmp_path / "use.c").write_text(program)
    command = re.findall(r"^    (cc use.c .*)$", page, re.MULTILINE)[0]
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (printed, "")
    declared = " ".join((tmp_path / "lib" / "fit.h").read_text().split())
    for said in re.findall(r"^    ((?:int|const char \*)\s*fit\w*\([^;]*;)", page, re.MULTILINE):
        assert " ".join(said.split()) in declared


def test_cffi_reads_the_header_and_calls_the_library(tmp_path: Path) -> None:
    ffi = pytest.importorskip("cffi").FFI()
    x, w = T.dvector("x"), graphc.shared(np.array([1.0, 2.0]), name="w")
    function = graphc.function([x], x * w.sum(), updates=[(w, w + 1)], mode="interpreted")
    function.export(tmp_path / "model")
    header = (tmp_path / "model.h").read_text()
    plain = re.sub(r"^#.*\n", "", re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.DOTALL), flags=re.M)
    ffi.cdef(plain.replace("extern const", "extern"))  # cffi reads no constant of a library but integers
    library = ffi.dlopen(str(tmp_path / "libmodel.so"))
    state, sizes = ffi.new("model_state *", library.model_initial), ffi.new("model_sizes *")
    values, out, own = ffi.new("double[]", [1.0, 2.0, 3.0]), ffi.new("double[3]"), ffi.new("double[]", [1.0, 2.0])
    state.w = own
    assert library.model_workspace_size(values, 3, state, sizes) == library.MODEL_OK and sizes.out_0 == 3
    workspace = ffi.new("char[]", sizes.workspace + 1)
    assert library.model(values, 3, state, out, 3, workspace, sizes.workspace) == library.MODEL_OK
    assert list(out) == [3.0, 6.0, 9.0] and list(own) == [2.0, 3.0]
    code = library.model(values, 3, state, values, 3, workspace, sizes.workspace)
    assert code == library.MODEL_OVERLAP and b"overlaps" in ffi.string(library.model_error_text(code))


RUST = """
#[repr(C)] #[derive(Clone, Copy)] struct State { w: *mut f64, w_0: i64, b: f32 }
#[repr(C)] struct Sizes { workspace: usize, out1_0: i64, out1_1: i64 }
extern "C" {
    static model_initial: State;
    fn model_workspace_size(x: *const f64, x_0: i64, x_1: i64, state: *const State, sizes: *mut Sizes) -> i32;
    fn model(x: *const f64, x_0: i64, x_1: i64, state: *mut State, out: *mut f64, out1: *mut f64, out1_0: i64,
        out1_1: i64, workspace: *mut u8, workspace_size: usize) -> i32;
}
fn main() {
    let x = [1f64; 6];
    let mut w = [1f64; 3];
    let (mut cost, mut gradient) = (0f64, [0f64; 6]);
    let mut sizes = Sizes { workspace: 0, out1_0: 0, out1_1: 0 };
    unsafe {
        let mut state = State { w: w.as_mut_ptr(), ..model_initial };
        assert_eq!(model_workspace_size(x.as_ptr(), 2, 3, &state, &mut sizes), 0);
        let mut room = vec![0u8; sizes.workspace];
        assert_eq!(model(x.as_ptr(), 2, 3, &mut state, &mut cost, gradient.as_mut_ptr(), sizes.out1_0, sizes.out1_1,
            room.as_mut_ptr(), room.len()), 0);
    }
    assert!(gradient.iter().all(|each| *each > 0.0) && w == [2f64; 3]);
    println!("{:.6}", cost);
}
"""


def test_an_object_for_arm_is_whole(tmp_path: Path) -> None:
    x = T.dmatrix("x")
    function = graphc.function([x], [T.exp(x).sum(), T.sort(x, axis=1)], mode="interpreted")
    function.export(tmp_path / "arm", target="aarch64")
    content = (tmp_path / "arm.o").read_bytes()
    assert content[18] == 183  # the number of the processor
    image = link_image([content], ["arm", "arm_workspace_size", "arm_error_text"])
    assert set(image.imports) <= {"memset", "memcpy"}
