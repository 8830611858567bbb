"""Why graphc is not first, for the report: a sentence for each workload and rival, kept by hand.

In: nothing. Out: `REASONS`, by workload, or by workload and peer where rivals differ. The report names every workload
where graphc is behind and says so where no reason is given yet.
"""

from __future__ import annotations

BLAS = (
    "graphc calls the OpenBLAS that NumPy has loaded, which where it does not know the processor takes its kernels for "
    "AVX2; XLA's products use AVX-512, at up to twice the speed"
)
ONE_THREAD = "products of this size run in graphc's own loops, which keep to one thread; XLA shares them out"
SAME_CALL = "the same call of the same OpenBLAS: what is measured is noise"

REASONS: dict[str | tuple[str, str], str] = {
    ("dot-256", "jax"): ONE_THREAD,
    ("dot-1024", "jax"): BLAS,
    "dot-1024": SAME_CALL,
    ("mlp-step", "jax"): ONE_THREAD,
    ("attention-gradient", "jax"): ONE_THREAD,
    ("fifty-batch-sizes", "jax"): ONE_THREAD,
    "matrix-vector": SAME_CALL,
    "memory-chain": "both read and write the same bytes on two threads; why by hand is faster was not found",
    "pairwise-kernel": "a row of exponentials is written and read once more, and sums go by blocks, to be as accurate "
    "as NumPy's; by hand everything stays in registers, and sums are plain",
    "layer-norm-gradient": "elements are divided by the deviation, twice each, where others multiply by its inverse, "
    "which is not exact; and one loop over a row more than by hand",
    "deep-chain-gradient": "the sum stands between the way forward and the way back, so that what the gradient needs "
    "is stored; by hand the slopes are multiplied on the way forward",
    "black-scholes": "the gradient of the graph has more exponentials than the closed form, where vega shares one with "
    "the distribution function",
    "moments-axis0": "besides the squares the matrix is summed about a pivot and as it is, to be as accurate as two "
    "passes; by hand one pass takes both sums, shifted by the first row, which is not accurate for every matrix",
}

LEFT_OUT = {
    "LSTM": "needs a loop over time (scan)",
    "Gaussian process": "needs a Cholesky factor and triangular solves",
    "LeNet": "needs convolution and pooling",
}
"""Workloads that wait for ops which graphc does not have yet."""


def reason(workload: str, peer: str) -> str:
    """The reason why this peer is ahead in this workload."""
    return REASONS.get((workload, peer)) or REASONS.get(workload) or "no reason found yet"
