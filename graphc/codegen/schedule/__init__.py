"""Graph to plan: what is materialised, which nests of loops there are, which share loops, where temporaries lie.

In: the results of a rewritten graph, and which sizes are equal (nodes.py). Out: a `Plan` (plan.py), with the reason of
every decision. Read plan.py, then scheduler.py, which calls the others in order and says which they are; verify.py says
what a plan promises.
"""
