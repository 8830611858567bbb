"""What of generated source reaches numba's front end."""

from __future__ import annotations

import pytest

from graphc.codegen.frontend.lowering import _without_last_digits


@pytest.mark.parametrize("names", ["a, a1, n", "a1, a1_, a1__", "a1, a2, a1_", "a, b", "a1_, a10, a10_"])
def test_variables_do_not_end_in_digits_and_stay_apart(names: str) -> None:
    """numba calls what is loaded from `a` at 1106 `$a1106`, as what is loaded from `a1` at 106."""
    scope: dict[str, object] = {}
    exec(f"def f({names}):\n    c9 = [{names}]\n    return c9", scope)
    code = _without_last_digits(scope["f"].__code__)  # type: ignore[attr-defined]
    assert len({*code.co_varnames}) == len(code.co_varnames)
    assert all(name.isidentifier() and not name[-1].isdigit() for name in code.co_varnames)
    scope["f"].__code__ = code  # type: ignore[attr-defined]
    values = list(range(names.count(",") + 1))
    assert scope["f"](*values) == values  # type: ignore[operator]
