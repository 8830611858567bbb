"""`graphc.cache` for type checkers: the module is `graphc/codegen/cache/manage.py`."""

from graphc.codegen.cache.manage import *
