"""`graphc.cache` for type checkers: the module is `graphc/codegen/cache/store.py`."""

from graphc.codegen.cache.store import *
