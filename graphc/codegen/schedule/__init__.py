"""Graph to plan: what is materialised, which nests of loops there are, which share loops, where temporaries lie.

In: the results of a rewritten graph, and which sizes are equal (sizes.py). Out: a `Plan` (plan.py), with the reason of
every decision. Read plan.py, then scheduler.py, which calls materialize.py (what is materialised) on top of nests.py
(in which nest, after which others), inplace.py (which results are written over operands), fusion.py (nests that share
outer loops) and memory.py (temporaries that share memory); cost.py is the one cost function, strided.py says which
operands are parts of buffers, accumulators.py what loops add into.
"""
