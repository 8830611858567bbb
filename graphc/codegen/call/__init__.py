"""Calls: the native entry point between Python's call and the kernel, as LLVM IR over Python's and NumPy's objects.

In: a `Signature` and the functions of an image (bind.py). Out: a builtin function. entry.py is the whole call;
arguments.py, objects.py, scalars.py and callees.py its parts; vectorcall.py the type of callables; locks.py the locks
of shared variables; result_memory.py large results used again; callback.py calls back into Python; guard_pages.py and
poison.py are stress modes for tests.
"""
