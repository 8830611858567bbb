"""The pool of threads, and how loops are cut for it.

In: a loop's trip count and work. Out: chunking.py: chunk sizes that do not depend on the number of threads; pool.py:
the pool as LLVM IR; settings.py: how many threads, and from which size on; nontemporal.py: non-temporal stores.
"""
