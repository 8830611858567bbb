"""Random streams under Theano's name for those of graphics cards: there is one kind here, on the processor.

In: `from graphc.sandbox.cuda.rng_curand import CURAND_RandomStreams`. Out: that class.
"""

from graphc.random.streams import RandomStreams

CURAND_RandomStreams = RandomStreams

__all__ = ["CURAND_RandomStreams"]
