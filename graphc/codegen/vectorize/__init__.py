"""Loops in LLVM IR, rewritten over vectors before LLVM's passes see them.

In: a module as numba lowered it. Out: the same module, its plain counted loops interleaved over vectors. vectorizer.py
decides, and checks what was written; loopinfo.py finds loops and how they count, legality.py reads their bodies,
widen.py writes the loops over vectors.
"""
