"""Theano's place for random streams of graphics cards: rng_curand.py. They run on the processor here.

In: import statements of Theano's programs. Out: the names of `graphc.random`.
"""

from graphc.sandbox.cuda import rng_curand

__all__ = ["rng_curand"]
