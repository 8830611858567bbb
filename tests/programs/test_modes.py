"""Every op, from its record: compiled = generated source under CPython = interpreted; dtypes, layouts, odd values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import graphc
from graphc.ir.node import OPS, Node, Op, Sample, variable
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within
from tests.support.op_samples import NAMES, SAMPLES, Array, draw, inputs_for

TOLERANCE = {"float32": 3e-5, "float64": 1e-11}
MODES = ("interpreted", "python", "compiled")


def agree(got: Array, want: Array, scale: float = 1.0) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        rtol = TOLERANCE[want.dtype.name] * scale
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(got, want)


def run_everywhere(inputs: list[Node], outputs: list[Node], values: list[Array]) -> Iterator[tuple[str, list[Array]]]:
    for mode in MODES:
        call = graphc.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        yield mode, call(*values)


HAVE_FLOATS = [any(argument.kind == "float" for argument in sample.args) for _, sample in SAMPLES]
TYPED = [
    pytest.param(op, sample, dtype, id=f"{op.name}-{sample.name}-{dtype}")
    for (op, sample), has_floats in zip(SAMPLES, HAVE_FLOATS, strict=True)
    for dtype in (("float64", "float32") if has_floats else ("float64",))
]


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sample", "dtype"), TYPED)
def test_modes_agree(op: Op, sample: Sample, dtype: str) -> None:
    rng = np.random.default_rng(7)
    values = [draw(argument, rng, dtype) for argument in sample.args]
    inputs = inputs_for(sample, values)
    output = sample.build(*inputs)
    results = dict(run_everywhere(inputs, [output], values))
    assert results["interpreted"][0].dtype == output.dtype
    for mode in MODES[1:]:
        assert_within(results[mode], [output], dict(zip(inputs, values, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sample"), SAMPLES, ids=NAMES)
def test_layouts(op: Op, sample: Sample) -> None:
    """Strided, Fortran-ordered, reversed and read-only arguments give what contiguous ones give."""
    rng = np.random.default_rng(8)
    values = [draw(argument, rng) for argument in sample.args]
    inputs = inputs_for(sample, values)
    call = graphc.function(inputs, sample.build(*inputs), on_unused_input="ignore")
    want = call(*values)
    compiled = PROCESS.compilations
    for layout in (fortran, spread, backwards, frozen):
        agree(call(*map(layout, values)), want)
    assert PROCESS.compilations == compiled


def fortran(value: Array) -> Array:
    """The same elements, the first axis the fastest."""
    return np.asfortranarray(value) if value.ndim else value


def spread(value: Array) -> Array:
    """The same elements, every other one of a larger buffer."""
    wide = np.zeros((*value.shape[:-1], value.shape[-1] * 2) if value.ndim else (), value.dtype)
    if not value.ndim:
        wide[...] = value
        return wide
    wide[..., ::2] = value
    return wide[..., ::2]


def backwards(value: Array) -> Array:
    """The same elements with negative strides."""
    return np.ascontiguousarray(value[::-1])[::-1] if value.ndim else value


def frozen(value: Array) -> Array:
    copied = value.copy()
    copied.flags.writeable = False
    return copied


SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-20]
)


def is_of_one_vector(op: Op) -> bool:
    """Whether an op's first sample applies it to one vector of floats."""
    if not op.samples or len(op.samples[0].args) != 1:
        return False
    (argument,) = op.samples[0].args
    return argument.kind == "float" and len(argument.shape) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", [op for op in OPS.values() if is_of_one_vector(op)], ids=repr)
def test_special_values(op: Op, dtype: str) -> None:
    """NaN, infinities, signed zeros, subnormal and huge numbers as NumPy has them."""
    with np.errstate(all="ignore"):
        values = SPECIAL.astype(dtype)
    x = variable(dtype, (None,), "x")
    results = dict(run_everywhere([x], [op.samples[0].build(x)], [values]))
    for mode in MODES[1:]:
        agree(results[mode][0], results["interpreted"][0], scale=10.0)
