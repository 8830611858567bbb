"""Why graphc is not first, for the report: a sentence for each workload and rival, kept by hand.

In: nothing. Out: `REASONS`, by workload, or by workload and peer where rivals differ. The report names every workload
where graphc is behind and says so where no reason is given yet.
"""

from __future__ import annotations

BLAS = (
    "graphc calls the OpenBLAS that NumPy has loaded, which where it does not know the processor takes its kernels for "
    "AVX2; XLA's products use AVX-512, at up to twice the speed"
)

REASONS: dict[str | tuple[str, str], str] = {
    ("dot-256", "jax"): BLAS,
    ("dot-1024", "jax"): BLAS,
    ("mlp-step", "jax"): BLAS,
    ("attention-gradient", "jax"): BLAS,
    ("fifty-batch-sizes", "jax"): BLAS,
    "matrix-vector": "a loop that reads the matrix once: memory limits it, and more rows a turn would read it faster",
    "pairwise-kernel": "the loop over three dimensions is the innermost and does not vectorise; the kernel matrix is "
    "stored, because its sum and the gradient are nests of their own",
    "layer-norm-gradient": "more loops over a row than by hand, sums of float32 are carried in float64, and elements "
    "are divided by the deviation instead of multiplied by its inverse, which is not exact",
    "deep-chain-gradient": "the sum stands between the way forward and the way back, so that what the gradient needs "
    "is stored; by hand the slopes are multiplied on the way forward",
    "black-scholes": "the gradient of the graph has more exponentials than the closed form, where vega shares one with "
    "the distribution function",
    "moments-axis0": "by hand a turn takes four rows into both sums at once",
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
