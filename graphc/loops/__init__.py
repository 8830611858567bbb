"""The loop IR: typed expressions over flat buffers, and statements that nest; a kernel between plan and source.

In: records that lowering makes (ir.py, build.py, names.py). Out: Python source (printer.py), and for tests and those
who debug a text that reads back (text.py). visit.py tells what statements read and write, operators.py what dtype an
expression has, verify.py whether a program is one. Read ir.py first.
"""
