"""Every op, from its record: compiled = generated source under CPython = interpreted; dtypes, layouts, odd values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, compress

import numpy as np
import pytest

import graphc
from graphc.ir.node import OPS, Node, Op, Sample, variable
from graphc.startup.process import PROCESS
from tests.support.bounds import assert_within
from tests.support.op_samples import SAMPLES, Array, draw, inputs_for

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


FLOATS = [any(argument.category == "float" for argument in sample.args) for _, sample in SAMPLES]
TOGETHER = 12
"""Samples that are one function: a compilation costs as much as some ops."""
BATCHES = [
    pytest.param(dtype, some[place : place + TOGETHER], id=f"{some[place][0].name}-{place}-{dtype}")
    for dtype, some in (("float64", SAMPLES), ("float32", [*compress(SAMPLES, FLOATS)]))
    for place in range(0, len(some), TOGETHER)
]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "samples"), BATCHES)
def test_modes_and_layouts_agree(dtype: str, samples: list[tuple[Op, Sample]]) -> None:
    """In every mode; and strided, Fortran-ordered, reversed and read-only arguments give what contiguous ones give."""
    values = []
    for _, sample in samples:
        rng = np.random.default_rng(7)  # what a sample is given does not depend on its neighbours
        values.append([draw(argument, rng, dtype) for argument in sample.args])
    inputs = [inputs_for(sample, own) for (_, sample), own in zip(samples, values, strict=True)]
    outputs = [sample.build(*own) for (_, sample), own in zip(samples, inputs, strict=True)]
    leaves, given = [*chain(*inputs)], [*chain(*values)]
    for mode in MODES if dtype == "float64" else ("interpreted", "compiled"):
        call = graphc.function(leaves, outputs, mode=mode, on_unused_input="ignore")
        results = call(*given)
        for (op, sample), output, result in zip(samples, outputs, results, strict=True):
            assert result.dtype == output.dtype
            where = f"{op.name}, {sample.name}, {mode}"
            assert_within([result], [output], dict(zip(leaves, given, strict=True)), message=where)
    compiled = PROCESS.compilations
    for layout in (fortran, spread, backwards, frozen):
        for found, want in zip(call(*map(layout, given)), results, strict=True):
            agree(found, want)
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
    return argument.category == "float" and len(argument.shape) == 1


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
