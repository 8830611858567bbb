"""The pool of threads, and how loops are cut for it.

In: a loop's trip count and work. Out: settings.py: chunk sizes that do not depend on the number of threads, how many
threads there are, and from which size on; pool.py: the pool and non-temporal stores as LLVM IR.
"""
