"""Elementary functions in LLVM IR that vectorise: exp, log, sin, tanh, gamma and the rest.

In: a format (float32 or float64) and LLVM values. Out: table.py: a function's IR by its name. floats.py lets formulas
be written as formulas, double.py numbers in two floats; one file for each family of functions, with the sources of its
formulas; coefficients.py is generated; abi.py and outofline.py make functions of them that a loop calls.
"""
