"""What makes a start short: records that are cheap to define, digests, NumPy imported so that the threads of its BLAS
sleep, no garbage collection while modules load. And the versions of other packages, and the state of a process, which
all rooms reach.

In: nothing of graphc. Out: `record`, `Digest`, `import_numpy`, `uncollected`, `version_of`, `PROCESS`. Read record.py
first: most modules use it.
"""
