"""Theano's package of graphs: `graph` walks them."""

from __future__ import annotations

from graphc.gof import graph as graph
from graphc.gof.graph import Apply as Apply
from graphc.gof.graph import Constant as Constant
from graphc.gof.graph import Variable as Variable
