"""Arrays before any graph knows them: dtypes, functions that NumPy lacks, what users give for arrays, trees of them.

In: dtype names, numbers, lists, arrays, and dicts, tuples and dataclasses of these. Out: the same in the form that
graphs and kernels take. No node is known here.
"""
