"""LLVM: its binding, the processor that code is made for, and IR by pieces.

In: IR as text or as llvmlite's values. Out: objects and assembly (target.py), modules of a part of a text (split.py).
module.py is what stages hand over, cpu.py what is known of the processor without LLVM, binding.py imports llvmlite's
binding; builder.py, values.py and integers.py write IR.
"""
