"""Callable objects over compiled graphs: the results of `function`.

In: a `Kernel` (codegen/pipeline/kernel.py), a `Convention` (convention.py: inputs, names, defaults) and a mode. Out: a
`Function`. Read callables.py first: it has the base class and the interpreted mode. factory.py chooses the class of a
mode, and finds compiled functions by a text: native.py (machine code; generated source, under CPython), debug_modes.py
(NanGuardMode, DebugMode). variants.py compiles further kernels for arguments that are not contiguous. wrappers.py has
functions that delegate to others: trees of arguments, several kernels in turn, counted iterations. states.py has the
rare requests: states, `f.value`, copies, pickles. saved.py and loaded.py are for files. Callers: pointer.py makes C
functions of a declaration, numba_calls.py functions for numba, ufuncs.py ufuncs.
"""
