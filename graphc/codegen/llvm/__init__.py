"""LLVM: its binding, the processor that code is made for, and how IR is written.

In: IR as text or as llvmlite's values. Out: objects and assembly (target.py). module.py is what stages hand over,
cpu.py what is known of the processor without LLVM.

Code that is the same for every graph is written as programs over typed values: typed.py, builder.py and functions.py,
in this order. Kernels' own code is made with llvmlite: values.py, which also has what llvmlite
has no function for.
"""
