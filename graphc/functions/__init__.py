"""What `function` returns: a graph that can be called.

In: a `Kernel` of graphs (codegen/pipeline/kernel.py). Out: `Function`, one class for each mode (callables.py).
convention.py tells its arguments apart, check_arguments.py checks and converts them, layouts.py and variants.py make
kernels of the same graph for other layouts, staged.py calls several kernels in turn,
counted.py counts the steps of loops. Read callables.py first.
"""
