"""The line: a kernel's graphs to functions in memory, from the cache or made anew.

In: a `Kernel` (kernel.py). Out: build.py: loaded functions; program.py: the generated source with its signature, all
stages on one screen; compilation.py: what compiles it;
runtime.py: code compiled once for a machine; stages.py: kernels that run one after the other.
"""
