"""The cache on disk: entries by the digest of their graph, checked before they are trusted.

In: a key's parts, files of an entry. Out: store.py: entries found, made and removed; files.py: how files are read and
written safely; sources.py: the digest of this compiler; bundle.py: entries in one archive.
"""
