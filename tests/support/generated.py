"""Generated source as tests look at it: without the lines of theirs that it shows."""

from __future__ import annotations

import re

REMARKS = re.compile(r'(?m)^ *(#|""").*\n')


def code(source: str) -> str:
    """The functions of a program, with no docstrings and no comments."""
    return REMARKS.sub("", source)
