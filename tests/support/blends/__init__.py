"""Random programs over everything that there is, held to the interpreted mode: `python -m tests.support.blends`."""
