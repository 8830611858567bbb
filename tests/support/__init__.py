"""What tests share: random programs, machines that run a program of loops, bounds of errors, samples and their values.

A test file imports nothing from another test file.
"""
