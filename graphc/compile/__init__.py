"""Theano's package of modes, with the modules that its programs name."""

from __future__ import annotations

from graphc.compile.debugmode import DebugMode as DebugMode
from graphc.compile.nanguardmode import NanGuardMode as NanGuardMode
