"""Theano's path of `OrderedUpdates`, which `scan` returns."""

from __future__ import annotations

from graphc.control.scan import OrderedUpdates

__all__ = ["OrderedUpdates"]
