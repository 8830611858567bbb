"""What `function` returns: a graph that can be called.

In: a `Kernel` of graphs (codegen/pipeline/kernel.py). Out: `Function` (callables.py), one class for each mode, which
making.py chooses: interpreted beside it, generated source in lowered.py, native code in native.py. convention.py tells
arguments apart, check_arguments.py checks and converts them, layouts.py and variants.py make kernels of the same graph
for other layouts, staged.py calls several kernels in turn, counted.py counts the steps of loops, states.py has states
and copies. Read callables.py first.
"""
