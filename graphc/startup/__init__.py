"""Support for a short start, and state of the process, which all rooms may use.

In: nothing of graphc. Out: `record` (cheap record classes), `Digest`, `import_numpy` (with sleeping BLAS threads),
`uncollected` (no garbage collection during imports), `version_of`, `PROCESS`. Read record.py first: most modules use
it.
"""
