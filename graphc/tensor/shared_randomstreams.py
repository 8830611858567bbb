"""Random streams under Theano's name for the slower of its two: there is one kind here.

In: `from graphc.tensor.shared_randomstreams import RandomStreams`. Out: that class.
"""

from graphc.random.streams import RandomStreams

__all__ = ["RandomStreams"]
