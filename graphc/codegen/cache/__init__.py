"""The cache on disk: entries by the digest of their graph, checked before they are trusted.

In: a graph, files of an entry. Out: key.py: the key, and in what two differ; store.py: entries found, made and removed;
files.py: how files are read and written safely; bundle.py: entries in one archive.
"""
