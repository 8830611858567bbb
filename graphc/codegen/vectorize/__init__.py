"""Loops in LLVM IR, rewritten over vectors before LLVM's passes see them.

In: a module as numba lowered it. Out: the same module, its plain counted loops interleaved over vectors. loopinfo.py
finds loops, legality.py says whether their iterations may run side by side, widen.py writes the vector body and its
epilogue, vectorizer.py decides.
"""
