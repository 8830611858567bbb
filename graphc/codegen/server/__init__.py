"""The compile process: numba and its memory, beside the user's program.

In: requests over a pipe (protocol.py). Out: objects and modules. client.py asks, worker.py answers, process.py starts
it, prestart.py does so while graphc is still being imported, numba_subset.py imports numba without what it does not
need.
"""
