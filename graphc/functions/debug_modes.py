"""NanGuardMode and DebugMode: functions that check every value.

In: a kernel. Out: a `Function` that runs the rewritten graph (with its stable formulas) node by node. It raises at the
first bad value, with the user's line and the arguments of the node.

    f = graphc.function([x], graphc.tensor.log(x), mode=graphc.NanGuardMode())
    f([-1.0])     NanGuardError: function (a.py:3): NaN in log(x) (a.py:3) = float64[1] [nan], forward; ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.arrays.dtypes import is_float
from graphc.codegen.pipeline.build import generation
from graphc.codegen.pipeline.kernel import Kernel, Report
from graphc.errors import DebugModeError, GraphcError, GraphValueError, NanGuardError
from graphc.functions.callables import Function
from graphc.functions.convention import Convention, In
from graphc.functions.factory import class_of_mode, make_function, restored  # noqa: F401 - pickles name it
from graphc.ir.call_errors import explain_all
from graphc.ir.interpret import Steps, check_guards, interpret, plan_steps, run_steps, watched
from graphc.ir.node import CONSTANT, INPUT, LEAVES, PARAM, SHARED, Array, Node, describe, make, variable
from graphc.ir.source_lines import warn_user
from graphc.ir.walk import Graph, dependents, node_set, nodes_of
from graphc.options import options
from graphc.startup.hooks import HOOKS
from graphc.startup.record import replace

BIG = 1e10
"""Larger magnitudes count as big, as in Theano."""
TOLERANCES = {"float64": 1e-5, "float32": 1e-4}
"""Relative tolerance of two ways to compute a value, by dtype, as in Theano."""
SHOWN = 8
"""The number of elements of a value above which a message abbreviates it."""


# --- modes ----------------------------------------------------------------------------------------------------------


class NanGuardMode:
    """`function(..., mode=NanGuardMode(nan_is_error=True, inf_is_error=True, big_is_error=True))`: each call raises
    NanGuardError (an AssertionError) at the first value, of an input or of a node, that is NaN, infinite, or larger
    than 1e10. `x.tag.nan_guard_mode_check = False` exempts a value. What is None is as the settings
    `config.NanGuardMode.nan_is_error` and kin say; `config.NanGuardMode.action = "warn"` warns of each such value in
    place of the error. optimizer, linker: Theano's, they change nothing.

        >>> x = T.dvector("x")
        >>> f = graphc.function([x], T.log(x), mode=NanGuardMode(nan_is_error=True))
        >>> f([1.0])
        array([0.])
    """

    name = "NanGuardMode"
    action = "raise"

    def __init__(
        self,
        nan_is_error: bool | None = None,
        inf_is_error: bool | None = None,
        big_is_error: bool | None = None,
        optimizer: Any = "default",
        linker: Any = None,
    ) -> None:
        self.nan_is_error = _told_or_set(nan_is_error, "nan_is_error")
        self.inf_is_error = _told_or_set(inf_is_error, "inf_is_error")
        self.big_is_error = _told_or_set(big_is_error, "big_is_error")
        self.action = HOOKS.get_setting("NanGuardMode.action")
        if self.action not in ("raise", "warn"):
            raise GraphValueError(f"NanGuardMode: the action is 'raise' or 'warn', not {self.action!r}")
        if not (self.nan_is_error or self.inf_is_error or self.big_is_error):
            raise GraphValueError("NanGuardMode: one of nan_is_error, inf_is_error, big_is_error must be true")

    def make_function(self, kernel: Kernel, call: Convention, profile: bool) -> Function:
        """The function of a graph in this mode."""
        return Guarding(kernel, call, profile, self)

    def report(self, message: str) -> None:
        """Raise NanGuardError, or warn."""
        if self.action == "raise":
            raise NanGuardError(message)
        warn_user(message)

    def fault(self, value: Array) -> str:
        """Return "NaN", "Inf" or "a big value" for a bad value, "" for a good one."""
        if value.dtype.kind not in "fc" or not value.size:
            return "a big value" if self.big_is_error and value.size and np.abs(value).max() > BIG else ""
        if self.nan_is_error and np.isnan(value).any():
            return "NaN"
        if self.inf_is_error and np.isinf(value).any():
            return "Inf"
        with np.errstate(all="ignore"):
            return "a big value" if self.big_is_error and (np.abs(value) > BIG).any() else ""

    def __repr__(self) -> str:
        given = f"{self.nan_is_error}, {self.inf_is_error}, {self.big_is_error}"
        return f"NanGuardMode({given})"


def _told_or_set(flag: bool | None, name: str) -> bool:
    return bool(HOOKS.get_setting(f"NanGuardMode.{name}") if flag is None else flag)


class DebugMode:
    """`function(..., mode=DebugMode())`: each call computes its results three ways: by the graph as it was written, by
    the rewritten graph, and by compiled code. It raises DebugModeError where they differ, naming the rule or the first
    node at fault; where compiled code has changed an argument; and, with `check_isfinite` (the default), at the first
    value that is not finite. Other arguments are Theano's and change nothing.
    """

    name = "DebugMode"

    def __init__(
        self,
        optimizer: Any = None,
        stability_patience: int | None = None,
        check_c_code: bool | None = None,
        check_py_code: bool | None = None,
        check_isfinite: bool | None = None,
        check_preallocated_output: Any = None,
        require_matching_strides: Any = None,
        linker: Any = None,
    ) -> None:
        self.check_isfinite = True if check_isfinite is None else check_isfinite

    def make_function(self, kernel: Kernel, call: Convention, profile: bool) -> Function:
        """The function of a graph in this mode."""
        return Debugging(kernel, call, profile, self)

    def __repr__(self) -> str:
        return "DebugMode()"


MODES: dict[str, Callable[[], Any]] = {"NanGuardMode": NanGuardMode, "NANGUARD_MODE": NanGuardMode}
MODES |= {"DebugMode": DebugMode, "DEBUG_MODE": DebugMode}
"""{name: constructor of the mode}."""


# --- functions ------------------------------------------------------------------------------------------------------


class Checked(Function):
    """The base of functions in a mode that checks values; `checks` is that mode."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool, checks: Any) -> None:
        super().__init__(kernel, call, profile)
        self.mode = checks.name
        self.checks = checks
        self.foreign = any(node.op.version for node in node_set(kernel.results))
        self.report = Report(kernel.name)
        self.rewritten = rewritten(kernel, self.report)
        self.plan: Steps = plan_steps(self.rewritten)
        self.varying = varying(self.rewritten)

    @property
    def kind(self) -> Any:
        return self.again

    def again(self, kernel: Kernel, call: Convention, profile: bool) -> Function:
        """Make a function of another kernel in the same mode."""
        return self.checks.make_function(kernel, call, profile)

    def explain(self) -> str:
        rules = "\n".join(f"  {line}" for line in self.report.fired or ["none"])
        return f"{self!r}\n{self.checks!r}: node by node\nrules that fired:\n{rules}"


def rewritten(kernel: Kernel, report: Report) -> Graph:
    """The graph of a kernel after rewriting; `report` gets the rules that fired."""
    done: Kernel = generation().rewrite_kernel(kernel, report)
    return Graph(done.inputs, done.results)


class Guarding(Checked):
    """A function in NanGuardMode: raises at the first NaN, infinity or big value."""

    def compute(self, arrays: list[Array]) -> list[Array]:
        values = self.values(arrays)
        check_guards(self.graph, values)
        for leaf, value in values.items():
            fault = self.checks.fault(np.asarray(value))
            if fault and not exempt(leaf):
                self.checks.report(f"{self.label}: {fault} in the input {describe(leaf)} = {shown(value)}")

        def look(node: Node, args: Sequence[Array], value: Any) -> None:
            for each in value if isinstance(value, tuple) else (value,):
                fault = self.checks.fault(each)
                if fault and (node in self.varying or PARAM in leaf_ops(node)) and not exempt(node):
                    self.checks.report(f"{self.label}: {fault} in {description(node, args, each)}")

        with watched(look):
            return run_steps(self.plan, values)


class Debugging(Checked):
    """A function in DebugMode: computes its results three ways."""

    def __init__(self, kernel: Kernel, call: Convention, profile: bool, checks: DebugMode) -> None:
        super().__init__(kernel, call, profile, checks)
        bare = replace(kernel, outputs=kernel.results, updates=(), returns="list", mutable=())
        inputs = tuple(In(leaf) for leaf in kernel.inputs)
        self.bare, self.plain = bare, Convention(inputs, {}, None)
        self.compiled = make_function(class_of_mode("compiled"), bare, self.plain, False)

    def compute(self, arrays: list[Array]) -> list[Array]:
        values = self.values(arrays)
        written = interpret(self.graph, values)
        seen: dict[Node, tuple[list[Array], Any]] = {}

        def look(node: Node, args: Sequence[Array], value: Any) -> None:
            seen[node] = (list(args), value)
            for each in value if isinstance(value, tuple) else (value,):
                infinite = self.checks.check_isfinite and each.dtype.kind == "f" and not np.isfinite(each).all()
                if infinite and (node in self.varying or PARAM in leaf_ops(node)):
                    raise DebugModeError(f"{self.label}: a value that is not finite: {description(node, args, each)}")

        with watched(look):
            results = run_steps(self.plan, values)
        for number, (before, after) in enumerate(zip(written, results, strict=True)):
            if not alike(before, after):
                self.blame_rules(number, before, after, values)
        kept = [array.copy() for array in arrays]
        native = self.compiled.run_values(arrays, [None] * len(results))
        for leaf, array, before in zip(self.kernel.inputs, arrays, kept, strict=True):
            if not np.array_equal(array, before, equal_nan=array.dtype.kind == "f"):
                raise DebugModeError(f"{self.label}: the compiled code has changed its argument {describe(leaf)}")
        for number, (before, after) in enumerate(zip(results, native, strict=True)):
            if not alike(before, after):
                self.blame_node(number, before, after, seen)
        return native

    def name_result(self, number: int) -> str:
        """The name of a result in messages."""
        return describe(self.kernel.results[number])

    def blame_rules(self, number: int, before: Array, after: Array, values: Any) -> None:
        """Raise for a result that rewriting changes, naming the rule without which it stays the same."""
        rules = list(dict.fromkeys(line.partition(" ")[0].rstrip(":") for line in self.report.fired))
        guilty = []
        for rule in rules:
            try:
                with options.change(excluding=(*options.excluding, rule)):
                    graph = rewritten(self.kernel, Report(self.kernel.name))
                if alike(before, interpret(graph, values)[number]):
                    guilty.append(rule)
            except GraphcError:
                continue
        why = f"the rewrite rule {guilty[-1]} changes it" if guilty else f"rewriting by {', '.join(rules)} changes it"
        values_of = f"{self.name_result(number)} is {shown(before)} as written, {shown(after)} as rewritten"
        raise DebugModeError(f"{self.label}: {values_of}: {why}")

    def blame_node(self, number: int, before: Array, after: Array, seen: dict[Node, tuple[list[Array], Any]]) -> None:
        """Raise for a result that compiled code changes, naming the first node that differs when compiled alone."""
        for node in nodes_of(self.rewritten.outputs):
            if node not in seen or node.is_tuple:
                continue
            args, value = seen[node]
            alone = compiled_alone(node, args)
            if alone is not None and not alike(value, alone):
                where = description(node, args, value)
                raise DebugModeError(f"{self.label}: compiled code gives {shown(alone)}, the interpreter {where}")
        raise DebugModeError(
            f"{self.label}: {self.name_result(number)} is {shown(before)} interpreted, {shown(after)} compiled, though "
            "each node alone is right"
        )


def compiled_alone(node: Node, args: Sequence[Array]) -> Array | None:
    """Return the value of one node by compiled code for these arguments; None where it cannot be compiled alone."""
    try:
        leaves = [
            arg
            if arg.op is CONSTANT
            else variable(arg.type.dtype, [1 if size == 1 else None for size in np.shape(value)])
            for arg, value in zip(node.args, args, strict=True)
        ]
        inputs = [leaf for leaf in leaves if leaf.op is INPUT]
        alone = make(node.op, leaves, node.attrs)
        kernel = Kernel("alone", tuple(inputs), (), (alone,), (), "list")
        call = Convention(tuple(In(leaf) for leaf in inputs), {}, None)
        function = make_function(class_of_mode("compiled"), kernel, call, False)
        given = [value for leaf, value in zip(leaves, args, strict=True) if leaf.op is INPUT]
        return function.run_values(given, [None])[0]
    except GraphcError:
        return None


# --- values ---------------------------------------------------------------------------------------------------------


def varying(graph: Graph) -> set[Node]:
    """The nodes that depend on inputs or shared variables: others are constants."""
    order = nodes_of(graph.outputs)
    return dependents(order, [node for node in order if node.op in (INPUT, SHARED)])


def leaf_ops(node: Node) -> Iterator[Any]:
    """The ops of the leaves among a node's ancestors. PARAM among them: the node belongs to the body of a loop."""
    return (leaf.op for leaf in node_set([node]) if leaf.op in LEAVES)


def exempt(node: Node) -> bool:
    """True where the user switched the check off (`x.tag.nan_guard_mode_check = False`)."""
    tag = node.__dict__.get("tag")
    return tag is not None and not getattr(tag, "nan_guard_mode_check", True)


def alike(left: Any, right: Any) -> bool:
    """True where two values agree in shape, dtype and elements, floats within TOLERANCES."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not is_float(left.dtype.name):
        return bool(np.array_equal(left, right))
    near = TOLERANCES[left.dtype.name]
    with np.errstate(all="ignore"):
        return bool(np.allclose(left, right, rtol=near, atol=near * 1e-3, equal_nan=True))


def shown(value: Any) -> str:
    """A value for messages: its dtype and shape, and a few elements."""
    array = np.asarray(value)
    text = " ".join(np.array2string(array, threshold=SHOWN, edgeitems=2, precision=6).split())
    return f"{array.dtype}{list(array.shape)} {text}" if array.ndim else f"{array.dtype} {text}"


def description(node: Node, args: Sequence[Array], value: Any) -> str:
    """A node for messages: its line, its value, its arguments, and whether it belongs to a derivative."""
    way = "backward, in the derivative taken there" if node.where is not None and node.where.derivative else "forward"
    went_in = "; ".join(
        f"{describe(arg)} = {shown(each)}"
        for arg, each in zip(node.args, args, strict=True)
        if arg.op is not CONSTANT and not isinstance(each, tuple) and not (arg.type.dtype == "int64" and not arg.ndim)
    )
    return f"{describe(node)} = {shown(value)}, {way}" + (f"; what went in: {went_in}" if went_in else "")


explain_all(globals())
