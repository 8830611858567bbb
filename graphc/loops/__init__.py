"""The loop IR: typed expressions over flat buffers, and statements that nest; a kernel between plan and source.

In: records that lowering makes (ir.py, build.py, names.py), and the templates of scalar ops (syntax.py). Out: Python
source (printer.py), and for tests and those who debug a text that reads back (text.py). operators.py is the table of
what passes know of an operator, visit.py tells what statements read and write, verify.py whether a program is one. Read
operators.py, then ir.py.
"""
