"""Loops in LLVM IR, rewritten over vectors before LLVM's passes see them.

In: a module as numba lowered it. Out: the same module, its plain counted loops interleaved over vectors. loopinfo.py
finds loops, and which have independent iterations, legality.py says whether an iteration has a form for vectors,
widen.py writes the vector body and its epilogue, vectorizer.py decides.
"""
