"""Loops to better loops: the passes over the loop IR, in the order in which pipeline/program.py runs them.

In: the statements of a kernel. Out: the same computation in fewer statements (simplify.py), with the loops along a row
fused (fuse.py), loads forwarded from stores (forwarding.py), elements that loops carry in scalars (registers.py),
float32 sums in partial accumulators (partial_sums.py), loops marked whose iterations are independent (independence.py),
loops that ask whether their call must end (polls.py), loops shared by threads (parallelize.py, privatize.py,
nontemporal.py), and regions as functions of their own (outline_regions.py finds them, outline_merge.py finds equal
ones, outline.py moves them). passes.py carries out each, for the verifier and for tests.
"""
