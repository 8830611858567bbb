"""Calls: the native entry point between Python's call and the kernel, as LLVM IR over Python's and NumPy's objects.

In: a `Signature` (signature.py) and the functions of an image. Out: a builtin function (bind.py). entry.py is the whole
call; arguments.py checks and converts arguments, objects.py handles references and memory, at the offsets that
layout.py names. vectorcall.py has the type of callables, locks.py the locks of shared variables, interrupt.py and
signals.py the safepoints of long loops, result_memory.py the reuse of large results. callback.py and native_op.py call
ops of the user; launch_python.py calls generated source under CPython; guard_pages.py is a stress mode for tests;
pointer.py and pointer_ir.py make C functions for samplers.
"""
