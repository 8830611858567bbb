"""Every name of Theano's tensor modules and of NumPy is in graphc, or is told of with a reason.

`theano_names.txt` holds the names that Theano 1.0.5 and NumPy 2.4 have, module by module.
"""

from __future__ import annotations

import ast
import os
import re
from importlib import import_module
from pathlib import Path

import pytest

import graphc.tensor as T
from graphc.startup.hooks import names_of
from graphc.tensor import nnet
from graphc.theano.paths import GROUPS, why_function as why

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
    assert set(listed) <= {name for names in NAMES.values() for name in names} | {"inplace", "signal", "slinalg"}
    assert [name for name in listed if name in T.__all__] == []


def test_a_missing_name_says_why() -> None:
    with pytest.raises(AttributeError, match="float16.*NumPy's own serves"):
        _ = T.float16  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="tensor.nnet' has no attribute 'ScalarSoftsign': it is a part"):
        _ = nnet.ScalarSoftsign  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'nothing_like_it'$"):
        _ = T.nothing_like_it  # type: ignore[attr-defined]


LAZY = {**T.LAZY, **{f"nnet.{name}": names for name, names in nnet.LAZY.items()}}


@pytest.mark.parametrize("module", [name for name, names in LAZY.items() if names])
def test_the_table_of_lazy_names_is_what_modules_offer(module: str) -> None:
    home = module.removeprefix("graphc.")
    folder = PACKAGE if module == home else PACKAGE.parent
    text = (folder / f"{home.replace('.', '/')}.py").read_text("utf-8")
    (offered,) = re.findall(r"^__all__ = (\[.*?\])", text, re.DOTALL | re.MULTILINE)
    names, all_of_it = set(LAZY[module].split()), set(ast.literal_eval(offered))
    assert names < all_of_it if home == "gradient" else names == all_of_it


def test_names_are_given_by_one_module_each() -> None:
    assert len(T.__all__) == len(set(T.__all__)) and set(names_of(T.LAZY)) < set(T.__all__)


PAGE = PACKAGE.parent.parent / "docs" / "names.md"
TABLE = "| why | names |\n|---|---|\n"
END = "\n## Modules\n"
"""The table of names stands between these lines of the page. The words before it are written by hand."""


def table() -> str:
    rows = []
    for reason, names in GROUPS:
        shown = [f"`{name}`" for name in names.split() if name[0] != "_"]
        rows.append(f"| {reason} | {' '.join(shown)} |")
    return "\n".join(rows) + "\n"


def test_the_page_is_that_of_the_table() -> None:
    head, found, rest = PAGE.read_text("utf-8").partition(TABLE)
    rows, end, modules = rest.partition(END)
    assert found and end
    if os.environ.get("GRAPHC_UPDATE"):
        PAGE.write_text(head + TABLE + table() + END + modules, "utf-8")
    else:
        assert rows == table()


def test_theanos_paths_are_imported() -> None:
    program = (
        "import graphc.tensor.nnet.nnet, graphc.tensor.basic, graphc.tensor.opt\n"
        "from graphc.tensor.basic import as_tensor_variable, choose\n"
        "from graphc.tensor.extra_ops import cumsum, cpu_contiguous, to_one_hot\n"
        "from graphc.tensor.nnet.nnet import softmax\n"
        "from graphc.tensor.nnet.sigm import hard_sigmoid\n"
        "from graphc.tensor.subtensor import set_subtensor\n"
        "assert graphc.tensor.opt.Assert is graphc.tensor.Assert and graphc.tensor.nnet.nnet.softmax is softmax\n"
        "assert isinstance(graphc.tensor.opt.assert_, graphc.tensor.opt.Assert)\n"
    )
    exec(program, {})
