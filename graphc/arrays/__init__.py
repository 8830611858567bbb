"""Arrays without graphs: dtypes, numerical functions that NumPy lacks, conversion of user values, and pytrees.

In: dtype names, numbers, lists, arrays, and dicts, tuples and dataclasses of these. Out: the same in the form that
graphs and kernels take. No node is known here.
"""
