"""Theano's place for loops: `from theano.scan_module import until`, where graphc is imported as theano."""

from graphc.control import scan as scan_utils
from graphc.control.scan import foldl, foldr, map, reduce, scan, until

__path__ = [""][:0]  # a package, whose modules are in graphc.paths
__all__ = ["foldl", "foldr", "map", "reduce", "scan", "scan_utils", "until"]
