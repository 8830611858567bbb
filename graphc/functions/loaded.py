"""Functions from files: `graphc.load(path)` of what `f.save(path)` wrote (saved.py).

In: a file. Out: the function, with the best code that the file has for this process; without such code it is compiled
from the graph.

    f = graphc.load("model.graphc")
    f(x)                                the graph is not read, and no op, no tensor, no compiler imported
    f.text, graphc.grad(...)            the graph is read from the file
    g = graphc.load("jitted.graphc")    written by tracing/saved_calls.py
    g(np.ones(7), 3.0)                  native code, for arguments of exactly the types and forms in the file
    g([1.0, 2.0], 3.0), g.variants()    anything else makes the jitted function, whose import takes longer than a load

The code for this processor is taken, else the best for a named target that it runs. Every byte is covered by a digest
that is checked before the byte is used. So a damaged file is an error. A file that somebody made on purpose runs what
they want: it holds machine code, as a library does.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import MethodType
from typing import Any

import numpy as np

from graphc.codegen.cache import store
from graphc.codegen.cache.key import Key, chosen_settings, difference, made_fingerprint
from graphc.codegen.call.bind import Direct, attach, vectorcall_type
from graphc.codegen.call.recipes import REFUSED, exact_keywords, refused
from graphc.codegen.llvm.cpu import runnable
from graphc.codegen.pipeline.kernel import Kernel, LazySequence, Report, parts_of
from graphc.codegen.pipeline.restore import Lookup, settings_of_key
from graphc.errors import CacheMissError
from graphc.functions.archive import Damaged, Opened, Place, decoded, open_file, telling
from graphc.functions.callables import Function, Mode
from graphc.functions.convention import REQUIRED, Convention, In, name_positions
from graphc.functions.native import Compiled
from graphc.ir.node import CONSTANT, Array, Node, variable
from graphc.ir.pairs import extra_axes
from graphc.ir.source_lines import Where, Words
from graphc.ir.types import FrozenArray
from graphc.ir.walk import Graph, substitute
from graphc.options import NATIVE, options
from graphc.startup.hooks import HOOKS, once
from graphc.startup.process import PROCESS
from graphc.startup.record import replace
from graphc.trees import leaves, like


def load(path: Place, recompile: bool = True) -> Any:
    """Read a file that `save` wrote. Return a compiled function, a jitted function with all its variants, a trained
    network, an estimator or a trainer, which goes on with the training.

    path: a path, or a file that is open for reading bytes. recompile: compile the function from its graph if no code in
    the file fits this processor and these versions.

    Shared variables are new variables with the saved values. Large constants stay in the file, which is mapped into
    memory. A file contains machine code, and the process runs it: load only files from people whom you trust.

    Raises GraphcError if the file is damaged or is no saved function, or if the file with its values is missing;
    CacheMissError if no code fits and `recompile` is False (the message says what differs); OSError if the file cannot
    be read.

        >>> from tempfile import TemporaryDirectory
        >>> x = T.dvector("x")
        >>> with TemporaryDirectory() as folder:
        ...     graphc.function([x], x * 2).save(f"{folder}/double.graphc")
        ...     double = load(f"{folder}/double.graphc")
        >>> double([1.0, 2.0])
        array([2., 4.])
    """
    opened = open_file(path)
    with telling(opened.path):
        return restored(opened, recompile)


def restored(opened: Opened, recompile: bool) -> Any:
    """Return what a file holds, by its kind."""
    header = opened.header
    made_of = header["kind"]
    if made_of == "function":
        return restored_function(opened, header["function"], recompile)
    if made_of in ("jitted", ASKING):
        functions = [restored_function(opened, row["function"], recompile) for row in header["variants"]]
        asked = [restored_function(opened, row, recompile) for row in header.get("asked", ())]
        made = object.__new__(_direct())
        made.__init__(opened, functions, asked)
        return made
    if made_of in ("network", "estimator"):
        return HOOKS.restored_network(opened, recompile)
    if made_of == "trainer":
        return HOOKS.restored_trainer(opened, recompile)
    raise Damaged(f"{opened.path} is a file of {made_of}, not of a function")


def restored_function(opened: Opened, header: Mapping[str, Any], recompile: bool) -> Function:
    """Return the function of a row of a file."""
    if "whole" in header:
        return restored_wrapper(opened, header, restored_function(opened, header["whole"], recompile))
    kernel = kernel_of(opened, header)
    records = [record_of(opened, node, row) for node, row in zip(kernel.inputs, header["inputs"], strict=True)]
    keys = None if header["keys"] is None else tuple(header["keys"])
    call = Convention(tuple(records), name_positions(records), keys)
    class_ = class_of(header["mode"])
    found = _lookup(opened, header, kernel, recompile) if class_ is Compiled else None
    if found is None:
        made: Function = import_module("graphc.functions.factory").make_function(class_, kernel, call, False)
    else:
        made = Compiled(kernel, call, False, found)
    made.name = header["name"]
    return made


def record_of(opened: Opened, variable: Any, row: Mapping[str, Any]) -> In:
    """Return the input of a row."""
    value = REQUIRED if row["default"] is None else opened.array(row["default"]).copy()
    own = {name: row[name] for name in ("name", "mutable", "strict", "allow_downcast")}
    return In(variable, value=value, **own)


def restored_wrapper(opened: Opened, row: Mapping[str, Any], whole: Function) -> Function:
    """Return the function of trees, or of states, around the function of the row within."""
    others = iter([item.variable for item in whole.call.inputs])
    if "trees" in row:
        decoded_trees = [decoded(tree) for tree in row["trees"]]
        trees = [like(tree, [next(others) for _ in leaves(tree)]) for tree in decoded_trees]
        return import_module("graphc.functions.wrappers").Nested(
            whole,
            trees,
            row["names"],
            decoded(row["form"]),  # of which only the structure is used
        )
    states = {place: opened.variable(number) for place, number in row["states"]}
    records = []
    for place, each in enumerate(row["inputs"]):
        leaf = variable(each["type"][0], each["type"][1], each["variable"]) if place in states else next(others)
        record = record_of(opened, leaf, each)
        value = states[place].container if each["holds"] else record.value
        own = {"autoname": each["autoname"], "implicit": each["implicit"]}
        records.append(replace(record, value=value, update=leaf if each["is_updated"] else None, **own))
    made: Function = import_module("graphc.functions.states").Stateful(whole, tuple(records), states)
    made.name = row["name"]
    return made


def class_of(mode: Mode) -> type[Function]:
    """The class of functions in a mode, which for compiled ones is known without the others."""
    if mode == "compiled" and options.poison != "guard":
        return Compiled
    return import_module("graphc.functions.factory").class_of_mode(mode)


def kernel_of(opened: Opened, header: Mapping[str, Any]) -> Kernel:
    """Return the graph of a row over new leaves and the saved values. It is read when it is first asked for."""
    whole = RestoredGraph(opened, header)
    updated, count = tuple(whole.variables[place] for place in header["updated"]), header["results"]
    return Kernel(
        header["kernel"],
        whole.inputs,
        whole.variables,
        LazySequence(lambda: whole.told(lambda: whole.outputs[:count]), count),  # type: ignore[arg-type] # it stands for a tuple
        LazySequence(
            lambda: whole.told(lambda: zip(updated, whole.outputs[count:], strict=True)), len(updated), updated
        ),  # type: ignore[arg-type]
        header["returns"],
        header["threads"],
        tuple(header["mutable"]),
        header["fast_math"],
    )


class RestoredGraph:
    """The graph of a row, over inputs and shared variables that are made before it is read."""

    def __init__(self, opened: Opened, header: Mapping[str, Any]) -> None:
        self.opened, self.header = opened, header
        self.variables = tuple(opened.variable(number) for number in header["shared"])
        rows = header["inputs"]
        self.inputs: tuple[Node, ...] = ()
        if all(row["type"] for row in rows):
            self.inputs = tuple(variable(row["type"][0], row["type"][1], row["variable"]) for row in rows)
        else:  # a size of one is computed
            self.inputs = self.graph.inputs
            for node, row in zip(self.inputs, rows, strict=True):
                node.name = row["variable"]

    def told(self, made: Callable[[], Iterable[Any]]) -> list[Any]:
        """Return a sequence that is made of the header, whose faults are told by Damaged."""
        with telling(self.opened.path):
            return list(made())

    @cached_property
    def graph(self) -> Graph:
        text = graph_text(self.opened, self.header)
        frozen = {
            digest: FrozenArray(value, (value.dtype.name, value.shape, digest.encode()))
            for digest, value in constants_of(self.opened, self.header).items()
        }
        graph: Graph = import_module("graphc.ir.parse").parse_graph(text, frozen, self.inputs)
        if "lines" in self.header:
            set_lines(graph, *marshal.loads(self.opened.blob(self.header["lines"])))
        return graph

    @cached_property
    def outputs(self) -> list[Node]:
        """The results, then the new values of updated variables."""
        results, leaves, news = parts_of(self.graph, len(self.variables), len(self.header["updated"]))
        variables = dict(zip(leaves, self.variables, strict=True))
        for leaf, own in variables.items():
            own.where = leaf.where
        return substitute([*results, *news], variables)


def set_lines(graph: Graph, files: Sequence[str], rows: Sequence[Any]) -> None:
    """Give the nodes of a graph the names and the program's lines of those that were saved (saved.lines_of)."""
    for node, (name, *place) in zip(import_module("graphc.ir.text").all_in_order(graph), rows, strict=True):
        if node.op is CONSTANT:  # others may have it too
            continue
        node.name, node.where = name, None
        if place:
            file, line, derivative, *words = place
            node.where = Where(files[file], line, Words(*words) if words else None, derivative)


def graph_text(opened: Opened, header: Mapping[str, Any]) -> str:
    """The text of the graph of a row, which is that of its key."""
    return bytes(opened.blob(header["graph"])).decode()


def constants_of(opened: Opened, header: Mapping[str, Any]) -> dict[str, Array]:
    """The large constants of a row by their digests, over the bytes of the file."""
    return {digest: opened.array(row) for digest, row in header["constants"].items()}


def _lookup(opened: Opened, header: Mapping[str, Any], kernel: Kernel, recompile: bool) -> Lookup | None:
    """The best code in the file for this process, None where there is none. Which one is known before any is read."""
    settings = chosen_settings(settings_of_key(kernel))
    rows = [row for row in header["codes"] if row["settings"] == settings]
    for fitting in _fingerprints():
        for row in rows:
            if row["fingerprint"] == fitting:
                return _taken(opened, row, Key(graph_text(opened, header), settings, fitting), header)
    if not recompile:
        own, kept = Key("", settings, made_fingerprint()), header["codes"]
        lines = [line for row in kept for line in difference(own, Key("", row["settings"], row["fingerprint"]))]
        why = "\n".join(lines) or "  it was saved without code"
        raise CacheMissError(f"{opened.path} has no code for this process\n{why}")
    return None


def _fingerprints() -> Iterator[str]:
    """The fingerprints of code that this process runs, the best first."""
    yield made_fingerprint()
    if options.target == NATIVE:
        yield from map(made_fingerprint, runnable())


def _taken(opened: Opened, row: Mapping[str, Any], key: Key, header: Mapping[str, Any]) -> Lookup:
    """The code of a row, as if the cache had it."""
    for name, blob in row["parts"].items():
        PROCESS.parts.setdefault(name, bytes(opened.blob(blob)))
    metadata = marshal.loads(opened.blob(row["metadata"]))
    entry = store.Loaded("", metadata, bytes(opened.blob(row["object"])), {}, None)
    report = Report(key.settings["name"])
    report.key = key.digest
    return Lookup(key, report, entry, constants_of(opened, header))


# --- jitted functions -------------------------------------------------------------------------------------------------


ASKING = "jitted, asking for values"
"""The kind of a file whose function asks for values: earlier versions, which read no questions, refuse it."""
NUMBERS = {kind.__name__: kind for kind in (bool, int, float)}
"""The classes of Python's numbers by their names."""


class LoadedCalls(Direct):
    """A jitted function of a file, which is made when anything is asked for but a call of a form that the file has."""

    def __init__(self, opened: Opened, functions: Sequence[Function], asked: Sequence[Function]) -> None:
        self.__name__, self.__doc__ = opened.header["name"], opened.header["doc"]
        self._made: Any = None
        self._source = opened, functions, asked
        self._entries: list[tuple[Any, Any]] = []
        self._is_attached = False
        for row, function in zip(opened.header["variants"], functions, strict=True):
            if not row.get("questions"):
                self._add(opened.header, row, function)

    def _add(self, header: Mapping[str, Any], row: Mapping[str, Any], function: Function) -> None:
        """Make the native entry points for the calls of a variant, where it has any."""
        args, kwargs, static, given = arguments_of(header, row)
        if has_complex(row["arguments"]):
            taken = HOOKS.pairs.taken
            args = [value if place in static else taken(value) for place, value in enumerate(args)]
            kwargs = {name: taken(value) for name, value in kwargs.items()}
        results, kernel = decoded(row["results"]), function.kernel
        if len(given) != len(kernel.inputs) or len(leaves(results)) != len(kernel.outputs):
            raise ValueError(f"the trees of {row['types']} are not those of its function")
        if not isinstance(function, Compiled) or not function.has_exact_entry:
            return
        names = () if static or row["fixed"] else _names(header["parameters"], len(args), sorted(kwargs))
        call = args, kwargs, static, header["static"][1]
        keywords = exact_keywords(call, given, names, results)
        if keywords is not None:
            self._entries.append((function.exact_entry(refused, keywords), function.exact_entry(self._again, keywords)))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._again(*args, **kwargs)

    def _again(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the first variant that takes these arguments, and let the next calls go to it first."""
        for entry, fast in self._entries:
            results = entry(*args, **kwargs)
            if results is not REFUSED:
                if not self._is_attached:
                    self._is_attached = True
                    attach(self, fast.__self__)
                return results
        return self._whole(*args, **kwargs)

    @property
    def _whole(self) -> Any:
        """The jitted function."""
        if self._made is None:
            with telling(self._source[0].path):
                self._made = HOOKS.restored_jitted(*self._source)
        return self._made

    @property  # type: ignore[misc] # `isinstance` takes it
    def __class__(self) -> Any:
        return type(self._whole)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __dir__(self) -> list[str]:
        return dir(self._whole)

    def __repr__(self) -> str:
        return repr(self._whole)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._whole.__reduce_ex__(protocol)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)


@once
def _direct() -> Any:
    return vectorcall_type(LoadedCalls)


def has_complex(row: Any) -> bool:
    """True if there is a complex tensor in a tree of a header."""
    return isinstance(row, list) and (row == ["complex"] or any(map(has_complex, row)))


def arguments_of(
    header: Mapping[str, Any], row: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any], tuple[int, ...], list[Any]]:
    """Return arguments of the form of a variant, by position and by name, the static positions, and other leaves."""
    count = len(row["leaves"]) // 2
    form = decoded(row["arguments"])
    rows = zip(row["leaves"][:count], row["leaves"][count:], extra_axes(form), strict=True)
    given = [_example(*each) for each in rows]
    placed, named = like(form, given)
    args = list(placed)
    total = len(args) + len(row["static"])
    static = tuple(sorted({number % total for number in header["static"][0] if -total <= number < total}))
    for place, value in zip(static, row["static"], strict=True):
        args.insert(place, value)
    return args, {**named, **dict(row["fixed"])}, static, given


def _example(of: Any, is_scalar: bool, extra: int) -> Any:
    """An argument of a kind. is_scalar: a number of NumPy's. extra: 1 for the parts of complex numbers."""
    if isinstance(of, str):
        return NUMBERS[of](0)
    array = np.zeros((*(0,) * (of[1] - extra), *(2,) * extra), of[0])
    return array[()] if is_scalar else array


def _names(parameters: Sequence[Sequence[Any]], by_position: int, by_name: Sequence[str]) -> tuple[str, ...]:
    """The names of the parameters in the order of leaves, where each may be given by position and by name; else ()."""
    found = parameters[: by_position + len(by_name)]
    names = tuple(name for name, _, _ in found)
    is_free = all(kind == "POSITIONAL_OR_KEYWORD" for _, kind, _ in found)
    return names if is_free and names == (*names[:by_position], *by_name) else ()
