"""Outputs of a loop of which one row is taken, and sequences of which one row is not zero.

In: an open loop, and who takes what in the graph around it. Out: whether it was changed.
"""

from __future__ import annotations

from graphc.arrays.dtypes import is_float
from graphc.ir import sizes
from graphc.ir.body import ITEM
from graphc.ir.node import CONSTANT, Node, literal, variable
from graphc.ir.walk import as_size_node
from graphc.ops.checked import checked
from graphc.ops.elementwise import cast, elementwise
from graphc.ops.index import subtensor
from graphc.ops.shape import drop, expand, filled, zeros
from graphc.rewrite.rules.engine import is_number
from graphc.rewrite.scans.open_loops import OpenLoop, Surroundings, uses_of


def keep_last_row(loop: OpenLoop, around: Surroundings) -> bool:
    """An output of which only the last row is taken, as a state's last value: no rows are stored.

    Of no steps there is no last row. That the guards say, which are those of the graph as it was written.
    """
    changed, varying = False, loop.varying(loop.order())
    for part, stand_in in list(loop.wanted.items()):
        output = loop.rows.get(stand_in)
        users = around.taken[part]
        if output is None or part in around.outputs or not users:
            continue
        if not all(place == 0 and _is_last_row(loop, user) for user, place in users):
            continue
        final = _last_value(loop, output) if output in varying else output
        del loop.wanted[part]
        for user, _ in users:
            _, *numbers = map(sizes.as_size, user.args[1:])
            starts, shape = numbers[: user.ndim - 1], numbers[user.ndim :]
            row = subtensor(expand(final, (0,)), (0, *starts), (1, *shape), user.attrs["steps"])
            loop.wanted[user] = row if loop.condition is None else _after_a_step(loop, row)
        changed = True
    return changed


def _after_a_step(loop: OpenLoop, row: Node) -> Node:
    """The last row of a loop that ends by itself, where there may be a step: it may be all that is left of the loop
    before what the guards say is known to be computed (codegen/pipeline/stages.py)."""
    if isinstance(loop.count, int):
        return row if loop.count > 0 else checked(row, [literal(0, "int64")], NO_STEP, "index")
    some = elementwise("less_equal", literal(1, "int64"), as_size_node(loop.count))
    return checked(row, [cast(some, "int64")], NO_STEP, "index")


NO_STEP = "of no steps there is no last row"


def _last_value(loop: OpenLoop, output: Node) -> Node:
    """What stands for the last value of an output, which is that of a state."""
    state = next((state for state, after in loop.after.items() if after is output), None)
    if state is None:
        state = variable(output.dtype, output.type.shape, output.name)
        loop.states[state] = zeros(output.dtype, output.type.shape)
        loop.after[state] = output
    final = variable(output.dtype, output.type.shape)
    loop.last[final] = state
    return final


def _is_last_row(loop: OpenLoop, user: Node) -> bool:
    """Whether a node takes of the rows of a loop that of the last step alone."""
    if user.op.name != "subtensor" or not sizes.equal(user.type.shape[0], 1):
        return False
    start, *rest = user.args[1:]
    if any(number.serial > loop.node.serial and number.op is not CONSTANT for number in rest):
        return False  # it may depend on the loop
    row = sizes.as_size(start)
    if loop.condition is None:  # where no step is taken of some, their rows are zeros, and the state is as it was
        return loop.limit is None and sizes.equal(row, 0 if loop.reverse else sizes.add(loop.count, -1))
    if loop.reverse:
        return False
    taken = [part for part, stand_in in loop.wanted.items() if stand_in is loop.taken]
    return isinstance(row, Node) and any(_count_before(loop, row) is part for part in taken)


def _count_before(loop: OpenLoop, row: Node) -> Node | None:
    """The number of rows of which a row is the last: less one, within bounds as indexing has written it."""
    if row.op.name != "add" or not is_number(row.args[1], -1):
        return None
    node = row.args[0]
    if node.op.name == "minimum":
        node = next((arg for arg in node.args if not sizes.equal(sizes.as_size(arg), loop.count)), node)
    if node.op.name == "maximum":
        node = next((arg for arg in node.args if not is_number(arg, 0)), node)
    if node.op.name == "where" and node.args[0].op.name == "less" and node.args[0].args[0] is node.args[2]:
        node = node.args[2]  # a negative number would count from the end
    return node


def begin_with_row(loop: OpenLoop, around: Surroundings) -> bool:
    """A sequence of zeros but for the row that the first step adds to a state that is zero: the state begins as that
    row. So no zeros are stored for the gradient of the last of many rows.

    The steps add 0.0 as before, which makes 0.0 of -0.0.
    """
    if loop.condition is not None:
        return False
    uses, changed = uses_of(loop, order := loop.order()), False
    for node in order:
        if node.op.name != "add":
            continue
        for state, element in (node.args, node.args[::-1]):
            row = _only_row(loop, element) if element in loop.elements and state in loop.states else None
            if row is None or uses[state] != 1 or uses[element] != 1 or not is_number(loop.states[state], 0.0):
                continue
            loop.states[state] = row
            loop.replace({element: filled(literal(0, element.dtype), element.type.shape)})
            del loop.elements[element]
            changed = True
            break
    return changed


def _only_row(loop: OpenLoop, element: Node) -> Node | None:
    """The row that the first step takes of a sequence that is 0.0 everywhere else."""
    sequence, only = loop.elements[element], None
    if not sizes.equal(sequence.type.shape[0], loop.count):
        return None  # there may be no step for a row that is there
    while only is None and sequence.op.name in ("inc_subtensor", "set_subtensor") and is_float(sequence.dtype):
        x, rows, start, *rest = sequence.args
        whole = all(is_number(each, 0) for each in rest)
        whole = whole and all(map(sizes.equal, rows.type.shape[1:], x.type.shape[1:]))
        if not whole or not is_number(x, 0.0):
            break
        if sizes.equal(rows.type.shape[0], 1) and _is_first_row(loop, start):
            only = drop(rows, (0,))
        elif is_number(start, 0):
            sequence = rows  # zeros come after
        else:
            break
    return only


def _is_first_row(loop: OpenLoop, start: Node) -> bool:
    """Whether a number is that of the row which the first step takes."""
    if not loop.reverse:
        return is_number(start, 0)
    if loop.limit is not None:
        taken = loop.limit.op is ITEM  # how many steps another loop took: not negative, and not more than there are
        return taken and _count_before(loop, start) is loop.limit
    return sizes.equal(sizes.as_size(start), sizes.add(loop.count, -1))
