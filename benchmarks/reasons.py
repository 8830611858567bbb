"""Why graphc is not first, for the report: a sentence for each workload and rival, kept by hand.

In: nothing. Out: `REASONS`, by workload, or by workload and peer where rivals differ. The report names every workload
where graphc is behind and says so where no reason is given yet.
"""

from __future__ import annotations

PHASES = (
    "; and data of this size stand in the caches of two processors together, which the machine shares with others: "
    "for seconds at a time both libraries take 1.5 times as long, and not always at the same time"
)
SAME_CALL = "the same call of the same OpenBLAS: what is measured is noise"
WHOLE_DOMAIN = (
    "the same arithmetic but for the polynomials: graphc's keep 2 ulp over the whole domain, subnormal numbers and "
    "signed zeros, those by hand what the arguments of the workload need"
)

REASONS: dict[str | tuple[str, str], str] = {
    "dot-1024": SAME_CALL,
    ("dot-1024", "jax"): "both use all registers of AVX-512 on two threads; who is ahead changes from run to run",
    "matrix-vector": "all read the matrix once, at the speed of memory; who is ahead changes from run to run",
    "elementwise-large-f32": WHOLE_DOMAIN,
    "elementwise-large-f64": WHOLE_DOMAIN,
    "moments-axis1": "sums go by blocks and carry what they round off, to be as accurate as NumPy's; by hand they are "
    "plain" + PHASES,
    "pairwise-kernel": "a row of exponentials is written and read once more, and sums go by blocks, to be as accurate "
    "as NumPy's; by hand everything stays in registers, and sums are plain",
    "layer-norm-gradient": "elements are divided by the deviation, three times each, where others multiply by its "
    "inverse, which is not exact, and sums go by blocks",
    "black-scholes": "the gradient of the graph has more exponentials than the closed form, where vega shares one with "
    "the distribution function",
    "garch-gradient": "the loop backward divides in each step; by hand what needs no carry is done by vectors before",
    "kalman-gradient": "each division of the gradient is carried out; by hand all multiply by one inverse",
    "double-pendulums": "the sine and the cosine of one angle reduce it twice; by hand once",
    "edit-distance": "by hand elements are held less their place, so that only a running minimum goes one by one",
    "front-last": "each neighbour is a copy of the row; by hand the row is read where it stands",
    "front-checkpoint": "each neighbour is a copy of the row, which is kept; by hand rows are read where they stand",
    "moments-axis0": "besides the squares the matrix is summed about a pivot and as it is, to be as accurate as two "
    "passes; by hand one pass takes both sums, shifted by the first row, which is not accurate for every matrix"
    + PHASES,
}

LEFT_OUT = {
    "Gaussian process": "needs a Cholesky factor and triangular solves",
}
"""Workloads that wait for ops which graphc does not have yet."""


def reason(workload: str, peer: str) -> str:
    """The reason why this peer is ahead in this workload."""
    return REASONS.get((workload, peer)) or REASONS.get(workload) or "no reason found yet"
