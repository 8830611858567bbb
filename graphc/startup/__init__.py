"""What makes a start short: records that are cheap to define, digests, NumPy imported so that the threads of its BLAS
sleep, and no garbage collection while modules load.

In: nothing of graphc. Out: `record`, `Digest`, `import_numpy`, `uncollected`. Read record.py first: most modules use
it.
"""
