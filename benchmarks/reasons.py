"""Why graphc is not first, for the report: a sentence for each workload and rival, kept by hand.

In: nothing. Out: `REASONS`, by workload, or by workload and peer where rivals differ. The report names every workload
where graphc is behind and says so where no reason is given yet.
"""

from __future__ import annotations

REASONS: dict[str | tuple[str, str], str] = {}

LEFT_OUT = {
    "LSTM": "needs a loop over time (scan)",
    "Gaussian process": "needs a Cholesky factor and triangular solves",
    "LeNet": "needs convolution and pooling",
}
"""Workloads that wait for ops which graphc does not have yet."""


def reason(workload: str, peer: str) -> str:
    """The reason why this peer is ahead in this workload."""
    return REASONS.get((workload, peer)) or REASONS.get(workload) or "no reason found yet"
