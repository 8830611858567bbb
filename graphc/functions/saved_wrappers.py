"""Functions of trees and of states as rows of files (saved.py).

In: a `Nested` or a `Stateful`. Out: a row with that of the function within it, "whole", and the trees or the states;
from such a row the function.

    f = graphc.function([{"a": x, "b": y}], [x + y])      {"trees": [["dict", ["a", ["leaf"]], ["b", ["leaf"]]]], ...}
    n = graphc.function([graphc.In(i, value=0, update=i + 1)], i)      {"states": [[0, 0]], ...}: input, variable
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphc.errors import GraphcError
from graphc.functions.archive import Blobs, Opened, decoded, encoded
from graphc.functions.callables import Function
from graphc.functions.convention import REQUIRED, In
from graphc.functions.saved_rows import input_row, record_of
from graphc.functions.states import Stateful
from graphc.functions.wrappers import Nested
from graphc.ir.node import variable
from graphc.startup.record import replace
from graphc.trees import leaves, like


def row_of(function: Any, blobs: Blobs, function_row: Callable[[Function, Blobs], Any]) -> dict[str, Any]:
    """Return what a header says of a function that delegates to another, whose row `function_row` makes."""
    if isinstance(function, Nested):
        what = function.label
        return {
            "whole": function_row(function.whole, blobs),
            "trees": [encoded(tree, f"{what}, its arguments") for tree in function.trees],
            "names": list(function.names),
            "form": encoded(function.form, f"{what}, its results"),
        }
    if isinstance(function, Stateful):
        numbers = {place: blobs.add_variable(leaf) for place, leaf in function.states.items()}
        return {
            "whole": function_row(function.whole, blobs),
            "name": function.name,
            "inputs": [_input(item, place in numbers, blobs) for place, item in enumerate(function.call.inputs)],
            "states": list(numbers.items()),
        }
    raise GraphcError(f"{function.label}: a function with a profile of its loops cannot be saved; make it without")


def _input(item: In, is_state: bool, blobs: Blobs) -> dict[str, Any]:
    """Return what the header says of an input of a function with states. A container that other functions share becomes
    one of the loaded function alone."""
    holds = hasattr(item.value, "storage")
    row = input_row(replace(item, value=REQUIRED) if holds else item, blobs)
    kind = item.variable.type
    return {
        **row,
        "autoname": item.autoname,
        "implicit": item.implicit,
        "is_updated": item.update is not None,
        "holds": holds,
        "type": [kind.dtype, [size if isinstance(size, int) else None for size in kind.shape]] if is_state else None,
    }


def restored(opened: Opened, row: Mapping[str, Any], restored_function: Callable[[Any], Function]) -> Function:
    """Return the function of a row of a file. restored_function: makes that of the row within it."""
    whole = restored_function(row["whole"])
    if "trees" in row:
        variables = iter([item.variable for item in whole.call.inputs])
        trees = [_filled(tree, variables) for tree in row["trees"]]
        return Nested(whole, trees, row["names"], decoded(row["form"]))  # of which only the structure is used
    states = {place: opened.variable(number) for place, number in row["states"]}
    others = iter([item.variable for item in whole.call.inputs])
    records = []
    for place, each in enumerate(row["inputs"]):
        if place in states:
            dtype, sizes = each["type"]
            leaf = variable(dtype, sizes, each["variable"])
        else:
            leaf = next(others)
        record = record_of(opened, leaf, each)
        value = states[place].container if each["holds"] else record.value
        update = leaf if each["is_updated"] else None
        records.append(
            replace(record, value=value, update=update, autoname=each["autoname"], implicit=each["implicit"])
        )
    made = Stateful(whole, tuple(records), states)
    made.name = row["name"]
    return made


def _filled(row: Any, variables: Any) -> Any:
    tree = decoded(row)
    return like(tree, [next(variables) for _ in leaves(tree)])
