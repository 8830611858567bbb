"""Theano's place for random streams: rng_mrg.py, and the folder cuda.

In: import statements of Theano's programs. Out: the names of `graphc.random`.
"""

from graphc.sandbox import cuda, rng_mrg

__all__ = ["cuda", "rng_mrg"]
