"""The compile cache on disk: entries by the digest of their graph, verified before they are used.

key.py computes the key of a graph and the differences between two keys; store.py finds, stores and removes entries, and
files.py reads and writes files safely. Read store.py first.
"""
