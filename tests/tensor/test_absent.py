"""Every name of Theano's tensor modules and of NumPy is in graphc, or is told of with a reason.

`theano_names.txt` holds the names that Theano 1.0.5 and NumPy 2.4 have, module by module.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import graphc.tensor as T
from graphc.startup.lazy import names_of
from graphc.tensor import nnet
from graphc.tensor.absent import GROUPS, why

NAMES = {
    head: body.split()
    for head, body in re.findall(
        r"^\[(.*?)\]\n(.*?)(?=^\[|\Z)",
        Path(__file__).with_name("theano_names.txt").read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
}
PACKAGE = Path(T.__file__ or "").parent


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there_or_has_a_reason(module: str) -> None:
    ours = T if module == "numpy" else import_module(f"graphc.{module}")
    missing = [name for name in NAMES[module] if not hasattr(ours, name) and not hasattr(T, name)]
    assert [name for name in missing if not why(name) and name not in ("tensor", "scalar")] == []


def test_a_reason_is_given_for_what_is_missing_only() -> None:
    listed = [name for _, names in GROUPS for name in names.split()]
    assert len(listed) == len(set(listed))
    assert set(listed) <= {name for names in NAMES.values() for name in names} | {"inplace"}
    assert [name for name in listed if name in T.__all__] == []


def test_a_missing_name_says_why() -> None:
    with pytest.raises(AttributeError, match="zmatrix.*no complex dtypes"):
        _ = T.zmatrix  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'nothing_like_it'$"):
        _ = T.nothing_like_it  # type: ignore[attr-defined]


LAZY = {**T.LAZY, **{f"nnet.{name}": names for name, names in nnet.LAZY.items()}}


@pytest.mark.parametrize("module", [name for name, names in LAZY.items() if names])
def test_the_table_of_lazy_names_is_what_modules_offer(module: str) -> None:
    text = (PACKAGE / f"{module.replace('.', '/')}.py").read_text("utf-8")
    (offered,) = re.findall(r"^__all__ = (\[.*?\])", text, re.DOTALL | re.MULTILINE)
    assert set(LAZY[module].split()) == set(ast.literal_eval(offered))


def test_names_are_given_by_one_module_each() -> None:
    assert len(T.__all__) == len(set(T.__all__)) and set(names_of(T.LAZY)) < set(T.__all__)
