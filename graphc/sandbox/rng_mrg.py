"""Random streams under Theano's name for the faster of its two: there is one kind here.

In: `from graphc.sandbox.rng_mrg import MRG_RandomStreams`. Out: that class.
"""

from graphc.random.streams import RandomStreams

MRG_RandomStreams = RandomStreams

__all__ = ["MRG_RandomStreams", "RandomStreams"]
