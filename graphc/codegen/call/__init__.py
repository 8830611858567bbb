"""Calls: the native entry point between Python's call and the kernel, as LLVM IR over Python's and NumPy's objects.

In: a `Signature` (signature.py) and the functions of an image. Out: a builtin function (bind.py, which also reuses the
memory of large results). entry.py is the whole call; arguments.py checks and converts arguments, objects.py handles
references and memory, at the offsets that layout.py names. locks.py has the locks of shared variables. callback.py
calls ops of the user and says what safepoints of long loops are, exits.py has their functions. launch_python.py calls
generated source under CPython, and native code between guard pages; c_interface.py and pointer_ir.py make C functions
for samplers.
"""
