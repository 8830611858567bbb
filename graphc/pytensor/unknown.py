"""What tells a conversion that an op has to be left to PyTensor.

In: nothing. Out: `Unknown`, raised by the table's rows.
"""

from __future__ import annotations


class Unknown(Exception):
    """An op, or a form of one, that is not in the table; says which."""
