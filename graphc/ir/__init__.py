"""The intermediate representations: the graph of tensors and the program of loops, both plain data."""
