"""Theano's place for `pfunc`, another name for `function`, and for the rebuilding of graphs."""

from graphc.compile.io import Param
from graphc.function import function
from graphc.gof.replacing import rebuild_collect_shared
from graphc.ir.call_errors import explain_all

pfunc = function

__all__ = ["Param", "pfunc", "rebuild_collect_shared"]

explain_all(globals())
