"""Arrays without graphs: dtypes, numerical functions that NumPy lacks, conversion of user values.

In: dtype names, numbers, lists, arrays. Out: the same in the form that
graphs and kernels take. No node is known here.
"""
