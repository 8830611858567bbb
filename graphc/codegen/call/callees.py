"""The functions that every entry point calls, of which some are compiled once for a machine, not with each entry point.

In: the definitions of objects.py and arguments.py. Out: those for an entry point, and those that are apart, as text.
"""

from __future__ import annotations

import re

from graphc.codegen.call.arguments import ARGUMENTS
from graphc.codegen.call.objects import OBJECTS

CALLEES = OBJECTS + ARGUMENTS

APART = frozenset("overlap place make grow arrange elements adopt discard suit cover enter depart".split())
"""Those that are long, or rarely called. Of the latter some are `optnone`: LLVM takes less time for them, and a first
start waits for it."""

_DEFINITION = re.compile(r"^define internal (?P<head>.*? @(?P<name>\w+)\(.*?) \{\n.*?^\}\n", re.DOTALL | re.MULTILINE)


def apart_ir() -> str:
    """A module that exports the functions of `APART`."""

    def export(definition: re.Match[str]) -> str:
        return definition[0].replace("internal ", "", 1) if definition["name"] in APART else definition[0]

    return _DEFINITION.sub(export, CALLEES) + "!0 = !{}\n"


def callees_beside_apart() -> str:
    """The functions for an entry point: those of `APART` are declared only."""

    def declare(definition: re.Match[str]) -> str:
        return f"declare {definition['head']}\n" if definition["name"] in APART else definition[0]

    return _DEFINITION.sub(declare, CALLEES)
