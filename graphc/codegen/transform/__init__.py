"""Loops to better loops: the passes over the loop IR, in the order of the table in passes.py, which carries them out.

In: the statements of a kernel. Out: the same computation in fewer statements (simplify.py), with the loops along a row
fused (merge_rows.py), loads forwarded from stores and copies elided (forwarding.py), states in two buffers that take
turns (double_buffers.py), short loops unrolled and elements that loops carry in scalars (unroll.py), float32 sums in
partial accumulators (sums.py), loops marked whose iterations are independent (independence.py), safepoints in
long loops (safepoints.py), loops shared by threads (parallelize.py), and parts as functions of their own
(outline_regions.py finds them, outline.py moves them), whose scatters take a few rows at a time (unroll.py).
"""
