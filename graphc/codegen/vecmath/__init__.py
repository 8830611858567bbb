"""Elementary functions in LLVM IR that vectorise: exp, log, sin, tanh, gamma and the rest.

In: a format (float32 or float64) and LLVM values. Out: table.py: a function's IR by its name, in a loop or out of
line. floats.py lets formulas be written as formulas; one file for each family of functions, with the sources of its
formulas; coefficients.py is generated; variants.py makes functions that branch and yet vectorise.
"""
