"""Calls: the native entry point between Python's call and the kernel, as LLVM IR over Python's and NumPy's objects.

In: a `Signature` (signature.py) and the functions of an image. Out: a builtin function (bind.py). entry.py is the whole
call; check_arguments.py, adopt.py, objects.py and scalars.py its parts, over the words of objects that layout.py names;
vectorcall.py the type of callables; locks.py the locks of shared variables; result_memory.py large results used again;
callback.py calls back into Python; launch_python.py the same for source under CPython; guard_pages.py is a stress
mode for tests.
"""
