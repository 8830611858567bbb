"""The verifier of loops over vectors: it refuses blocks that break one of its promises."""

from __future__ import annotations

import pytest
from llvmlite import ir

from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Prototype
from graphc.codegen.vectorize import vectorizer, widen
from graphc.codegen.vectorize.legality import Reduction
from graphc.errors import CompileError, VerifyError
from graphc.options import options
from tests.support.vector_loops import on_processor

LOOP = """def f(x, y, z, n):
    total = 0.0
    for i in independent(n):
        v = exp(x[i])
        y[i] = v
        total = accumulate(total, v)
    z[0] = total
    return 0
"""
PROTOTYPE = Prototype("f", ("float64*", "float64*", "float64*", "int64"))


@pytest.fixture(autouse=True)
def masks(monkeypatch: pytest.MonkeyPatch) -> None:
    on_processor(True, monkeypatch)


def lower() -> None:
    lower_source(LOOP, [PROTOTYPE], {}, False)


def test_elements_have_a_known_size() -> None:
    sizes = {ir.IntType(1): 1, ir.IntType(16): 2, ir.FloatType(): 4, ir.DoubleType(): 8, ir.IntType(8).as_pointer(): 8}
    assert {type: widen.bytes_of(type) for type in sizes} == sizes
    assert widen.bytes_of(ir.VectorType(ir.FloatType(), 8)) == 4
    with pytest.raises(TypeError, match="half: their size in memory is not known"):
        widen.bytes_of(ir.HalfType())


def test_loops_are_verified_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.verify
    seen: list[ir.Block] = []
    monkeypatch.setattr(vectorizer, "verify_loop", lambda blocks, body: seen.extend(blocks))
    lower()
    assert [block.name.partition(".")[2] for block in seen] == ["interleaved", "masked"]


def plain_load(builder: ir.IRBuilder, place: ir.Value, lanes: int, mask: ir.Value | None) -> ir.Value:
    return LOAD(builder, place, lanes, None)


def short_load(builder: ir.IRBuilder, place: ir.Value, lanes: int, mask: ir.Value | None) -> ir.Value:
    value = LOAD(builder, place, 4, None)
    return widen.broadcast(builder, builder.extract_element(value, widen.INT32(0)), lanes)


def load_beside(builder: ir.IRBuilder, place: ir.Value, lanes: int, mask: ir.Value | None) -> ir.Value:
    return LOAD(builder, builder.gep(place, [widen.INT64(1)]), lanes, mask)


def store_twice(builder: ir.IRBuilder, value: ir.Value, place: ir.Value, mask: ir.Value | None) -> ir.Value:
    STORE(builder, value, place, mask)
    return STORE(builder, value, place, mask)


def add_unmasked(self: widen.VectorBody, reduction: Reduction, total: ir.Value) -> ir.Value:
    self.mask = None
    return ACCUMULATE(self, reduction, total)


def forget(self: widen.VectorBody, reduction: object, total: ir.Value) -> ir.Value:
    return self.builder.fadd(total.type(None), total.type(None))


LOAD, STORE, ACCUMULATE = widen.load, widen.store, widen.VectorBody.accumulate
BROKEN = [
    (widen, "load", plain_load, "a mask that it should not have, or none"),
    (widen, "load", short_load, "an access of 4 elements, not"),
    (widen, "load", load_beside, "not at the index"),
    (widen, "store", store_twice, "other stores"),
    (widen.VectorBody, "accumulate", add_unmasked, "a term without a mask"),
    (widen.VectorBody, "accumulate", forget, "to which nothing is added"),
]


@pytest.mark.parametrize(("owner", "name", "broken", "message"), BROKEN, ids=[each[2].__name__ for each in BROKEN])
def test_broken_loops_are_refused(
    owner: object, name: str, broken: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises((VerifyError, CompileError), match=message):
        lower()


def test_a_limit_is_a_multiple_of_the_lanes() -> None:
    index = ir.Constant(widen.INT64, 0)
    builder = ir.IRBuilder(
        ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), [widen.INT64]), "f").append_basic_block()
    )
    count = builder.function.args[0]
    rounded = builder.add(count, builder.and_(count, widen.INT64(-8)))
    assert vectorizer.is_whole(rounded, 8)
    assert not vectorizer.is_whole(rounded, 16)
    assert not vectorizer.is_whole(count, 8)
    assert not vectorizer.is_whole(index, 8)
