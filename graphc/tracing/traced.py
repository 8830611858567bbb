"""`jit`: functions that are compiled at the first call with arguments of new dtypes and ranks, for all sizes.

In: a Python function of arrays. Out: a `Jitted`, whose call looks up the compiled function for its arguments, or traces
and compiles one.

    @graphc.jit
    def norm(x):
        return (x**2).sum() ** 0.5

    norm(np.ones(4))        traces and compiles for (float64, rank 1); np.float64(2.0)
    norm(np.ones(9))        the same code; np.float64(3.0)
    norm(np.ones((2, 2)))   compiles again, for rank 2
    norm(T.dvector("x"))    no compilation: a graph, so that transformed functions can be transformed again
    len(norm.functions)     2

The key of a compiled function has no sizes. What the program asks of them (`if x.shape[0] == 3`) is answered by those
of the call, and the answer becomes a guard of this *variant* of the function: a call with other answers traces another
one (variants.py). An axis of one element broadcasts in NumPy. So where a call fails since sizes disagree,
and an argument has such an axis, the function is traced again with 1 as the static size of that axis (`broadcasting`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, update_wrapper
from importlib import import_module
from os.path import basename
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, overload

from graphc.arrays.array import OWN
from graphc.codegen.call.bind import Direct, attach, detach, vectorcall_type
from graphc.codegen.call.recipes import REFUSED, Outside
from graphc.control.loop import title
from graphc.errors import ArgumentError, GraphcError, GraphTypeError, IndexOutOfBounds, MissingInputError, ShapeError
from graphc.functions.callables import Function
from graphc.functions.convention import In
from graphc.functions.function import function as compile_function
from graphc.ir.node import Node, describe
from graphc.ir.pairs import leaves_of, tree_of
from graphc.ir.source_lines import LEFT, PACKAGE, TRACE, error_line, traced_hint
from graphc.ir.text import graph_key_text
from graphc.ir.walk import Graph
from graphc.ops.elementwise import as_node
from graphc.ops.identity import Frame, attached
from graphc.ops.questions import Note, agreeing, sizes_at_hand
from graphc.startup.hooks import HOOKS, once
from graphc.startup.process import temporarily
from graphc.startup.record import record
from graphc.tensor import boundary
from graphc.tracing.answers import answering, corrections
from graphc.tracing.arguments import (
    NOTHING_UNCHANGED,
    NUMBERS,
    Argument,
    Parts,
    Settings,
    Static,
    Unchanged,
    axes_of_one,
    is_no_array,
    keywords_in_order,
    kinds_of,
    like_arguments,
    listed,
    names_of,
    parameters_of,
    sizes_of,
    variables_for,
    with_parts,
    writable,
)
from graphc.tracing.interface import OUT, Interface, P, R, remembered
from graphc.tracing.loop_plans import Plan, Restart, with_loops
from graphc.tracing.outside import (
    Reach,
    changed_places,
    check_unchanged,
    others_in,
    replace_within_reach,
    sources,
    undo,
    within_reach,
)
from graphc.tracing.shared_matrices import with_calls
from graphc.tracing.variants import (
    Axes,
    Variant,
    choose,
    form_of,
    guarded,
    guards_of,
    log_retrace,
    notes_of,
    plain_arrays,
    short_axes,
    tell_of_retrace,
    tell_of_values,
    types_of,
    without_elements,
)
from graphc.tracing.watched import watched
from graphc.trees import LEAF, flatten, leaves, like, paths, structure

Q = ParamSpec("Q")

MOST_RECENT = 4
"""The variants that a call tries before the table."""
PLAIN = OWN | NUMBERS
"""The types of arguments that are leaves without a look at the tree: most calls have no others."""


class Jitted(Direct, Interface[P, R]):
    """A function of arrays that is compiled when it is called. `jit`, `grad`, `vmap` and their kin return one.

    functions: the compiled functions, one for each combination of types, or several where the function asks for sizes
    (`variants()` says by what guards); these have `source`, `text`, `explain()` and the rest. function_for(*args): the
    compiled function for these arguments, made where there is none yet. A call takes `out=`, an array or a tree of
    arrays for the results, where the function has no parameter of that name.

        double = graphc.jit(lambda x: 2 * x)
        double(np.ones(3))                         # array([2., 2., 2.])
        double(np.ones(3), out=np.empty(3))        # the same, in the array that is given
        print(double.source(np.ones(3)))           # the generated code
    """

    def __new__(cls, *args: Any) -> Jitted[P, R]:
        made: Any = object.__new__(_direct() if cls is Jitted else cls)
        found: Jitted[P, R] = made
        return found

    def __init__(
        self,
        function: Callable[P, R],
        build: Callable[..., Any],
        static: Static,
        settings: Settings,
        name: str,
        unchanged: Unchanged = NOTHING_UNCHANGED,
    ) -> None:
        update_wrapper(self, function, updated=())
        self.build = build
        self.static = static
        self.has_static = bool(static)
        self.settings = settings
        self.unchanged = unchanged
        self.entries: dict[Any, list[Variant]] = {}
        self.recent: tuple[Callable[..., Any], ...] = ()
        self.by_class = False
        self.retraces = False
        self.retraced: Jitted[P, R] | None = None
        self.answers = False
        self.loops: dict[Any, Plan] = {}
        self.questions: dict[str, Function] = {}
        self.asked_at = ""
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<compiled on call: {self.title}>"

    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> Bound[Q, P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Jitted[P, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @overload
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, /, *args: Any, out: Any, **kwargs: Any) -> R: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.again(args, kwargs)

    def again(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the variant for these arguments by its shortcut, if it was called lately, or by the table."""
        for call in self.recent:
            results = call(*args, **kwargs)
            if results is not REFUSED:
                return results
        results = self.dispatch(args, kwargs)
        return results if OUT in kwargs or TRACE.depth else like_arguments(results, (args, kwargs))

    @property
    def title(self) -> str:
        """The name of the innermost function in messages, with its line."""
        function: Any = self
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        return title(function)

    @property
    def functions(self) -> list[Function]:
        """The compiled functions, in the order of their first calls."""
        return [each.function for each in self.variants() if each.function is not None]

    def variants(self) -> list[Variant]:
        """Return what the function was compiled to: each variant has the `types` of the arguments, and the `guards`
        that sizes must meet, with the lines that asked; printed, it says both.

            f = graphc.jit(lambda x: x[:100] if x.shape[0] > 100 else x)
            f(np.ones(300))
            f.variants()         # [x: float64[x.0] where x.shape[0] > 100 (model.py:1)]
        """
        return [variant for each in self.entries.values() for variant in each]

    def function_for(self, /, *args: Any, **kwargs: Any) -> Function:
        """Return the compiled function that a call with these arguments runs. Its inputs are the leaves of the
        arguments that are not static, in order. Raises GraphTypeError where there is none: an argument is a tensor, or
        the function returns nothing."""
        variant, *_ = self.find(*with_parts(args, kwargs, self.static))
        if type(variant) is not Variant or variant.function is None:
            raise GraphTypeError(f"{self.title}: there is no compiled function for these arguments")
        return variant.function

    def known_for(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Function | None:
        """The compiled function for these arguments; None where none is compiled yet."""
        key, given = self.keyed(*with_parts(args, kwargs, self.static))
        variant = choose(self.entries.get(key, []), given)
        return None if variant is None else variant.function

    def dispatch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the compiled function for these arguments, from the table `entries` or made now. A derivative of a
        function that draws random numbers, or asks for values, is traced at every call from then on (by_text.py)."""
        args, kwargs = with_parts(args, kwargs, self.static)
        if self.retraced is None:
            try:
                return self.found_call(args, kwargs)
            except GraphTypeError as error:
                if not ((error.drew or error.asked) and self.retraces) or TRACE.depth:
                    raise
            self.retraced = HOOKS.retraced(self)
            self.use(None)
        return self.retraced.dispatch(args, kwargs)

    def found_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the compiled function for these arguments."""
        out = None
        if OUT in kwargs and not self.has_out:
            out, kwargs = kwargs[OUT], {name: value for name, value in kwargs.items() if name != OUT}
        variant, given, variants = self.find(args, kwargs, fixes=self.settings.short_axes)
        if out is not None and getattr(variant, "function", None) is None:
            raise ArgumentError(f"{self.title}: out= takes results of compiled functions, and here is none")
        if type(variant) is not Variant:
            return variant.value
        given = plain_arrays(given)
        try:
            results = variant.run(given, out)
        except (ShapeError, IndexOutOfBounds) as error:
            variant, results = self.again_for(error, variant, variants, args, kwargs, given, out)
        self.use(variant)
        return results

    def use(self, variant: Variant | None) -> None:
        """Let the next calls go to a variant first: without Python where it has a native entry point. None forgets all
        that were called lately."""
        is_direct = isinstance(self, _direct())  # others have no place for the address of an entry point
        if variant is None:
            self.recent = ()
            if is_direct:
                detach(self)
            return
        if variant.shortcut is not None:
            others = (each for each in self.recent if each is not variant.shortcut)
            self.recent = (variant.shortcut, *others)[:MOST_RECENT]
        entry: Any = variant.fast
        if entry is not None and is_direct:
            attach(self, entry.__self__)

    def keyed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Sequence[Any]]:
        """Return the key of arguments in `entries`, and their leaves that are not static."""
        static: Any = None
        left, named = args, kwargs
        if self.has_static:
            parts = self.static.split(args, kwargs)
            static, left, named = parts.key(self), parts.left, parts.named
        given: Sequence[Any] = left
        shape: Any = None
        if named:
            given, shape = flatten((left, named))
            shape = "by name", shape
        elif not PLAIN.issuperset(map(type, left)):
            given, shape = flatten(left)
        return (kinds_of(given, self.by_class), shape, static), given

    def find(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], fixes: bool = False
    ) -> tuple[Any, Sequence[Any], list[Variant]]:
        """Return the variant for arguments, their leaves that are not static, and all variants for their types. A
        `Symbolic` in place of the variant where an argument is a tensor. fixes: a variant that is made now may have
        fixed short axes, unless there is one for others."""
        key, given = self.keyed(args, kwargs)
        variants = self.entries.get(key, [])
        variant = choose(variants, given)
        if variant is None:
            if any(isinstance(leaf, Node) for leaf in given):
                return Symbolic(self.graph(args, kwargs)), given, variants
            if variants:
                tell_of_retrace(self.title, variants, given, self.settings.max_variants)
            short = short_axes(given) if fixes else frozenset()
            if not all(each.short <= short for each in variants):
                short = frozenset()
            variant, asked = self.trace_unless_asked(args, kwargs, given, short)
            if asked:
                self.fix(asked)
                return self.find(args, kwargs, fixes)
            if TRACE.has_asked_class and not self.by_class:
                self.by_class = True
                key = self.keyed(args, kwargs)[0]
            if type(variant) is Variant:
                variants.append(variant)
                self.entries[key] = variants
                if self.has_static and len(variants) == 1:
                    alike = sum(each[:2] == key[:2] for each in self.entries)
                    tell_of_values(self.title, self.static.names, self.asked_at, alike, self.settings.max_variants)
        return variant, given, variants

    def trace_unless_asked(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: Sequence[Any], short: Axes
    ) -> tuple[Any, list[Argument]]:
        """Trace the function, and return the arguments that must be static before it can be. These are given on
        unchanged, and are no arrays, or numbers whose value the function asks for."""
        unchanged = self.unchanged.among(self, self.static, args, kwargs)
        others = [each for each in unchanged if is_no_array(each.value)]
        if others:
            return None, others
        TRACE.asked_of, TRACE.has_asked_class = frozenset(), False
        try:
            return self.trace_or_broadcast(args, kwargs, given, short), []
        except GraphTypeError as error:
            numbers = {
                f"{each.name}, an argument of {self.title}": each for each in unchanged if type(each.value) in NUMBERS
            }
            if not TRACE.asked_of or not TRACE.asked_of <= numbers.keys():
                raise
            file, line = error_line(error, PACKAGE) or ("", 0)
            self.asked_at = f"{basename(file)}:{line}"
            return None, [numbers[each] for each in TRACE.asked_of]

    def trace_or_broadcast(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: Sequence[Any], short: Axes
    ) -> Any:
        """`trace`, again with the axes of one element known to broadcast where sizes disagree while it is traced."""
        try:
            return self.trace(args, kwargs, given, ((),) * len(given), short)
        except ShapeError:
            made = self.trace_with_ones(args, kwargs, given, short)
            if made is None:
                raise
            return made

    def trace_with_ones(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: Sequence[Any], short: Axes = frozenset()
    ) -> Any:
        """`trace` with the axes of one element known to broadcast; None where no axis has one element, and where the
        sizes disagree all the same."""
        ones = axes_of_one(given)
        try:
            return self.trace(args, kwargs, given, ones, short) if any(ones) else None
        except ShapeError:
            return None

    def fix(self, found: Sequence[Argument]) -> None:
        """Make arguments static."""
        known = parameters_of(self)
        places = [known.index(each.name) if each.place is None and each.name in known else each.place for each in found]
        numbers = (place for place in places if place is not None)
        self.static = Static((*self.static.numbers, *numbers), (*self.static.names, *(each.name for each in found)))
        self.has_static = True
        self.use(None)

    def broadcasting(
        self,
        variant: Variant,
        variants: list[Variant],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: Sequence[Any],
    ) -> Variant | None:
        """Make a variant in which the axes of one element are known to have size 1, so that they broadcast, and put it
        before the others. None where no axis has one element, and where the sizes disagree all the same."""
        made = None if variant.ones == axes_of_one(given) else self.trace_with_ones(args, kwargs, given)
        if not isinstance(made, Variant):
            return None
        for each in variants:
            if not any(each.ones):
                # or a call would find out by an error that axes of one element are to broadcast
                each.make_slow()
        variants.insert(0, made)
        log_retrace(self.title, given, "axes of one element broadcast")
        self.use(None)
        return made

    def again_for(
        self,
        error: GraphcError,
        variant: Variant,
        variants: list[Variant],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: Sequence[Any],
        out: Any,
    ) -> tuple[Variant, Any]:
        """Trace and run the function for sizes that a variant refuses, where axes broadcast or the program has an
        `except` for the error. Returns the variant and its results, or raises the error."""
        told = error
        if isinstance(error, ShapeError):
            wide = self.broadcasting(variant, variants, args, kwargs, given)
            if wide is not None:
                try:
                    return wide, wide.run(given, out)
                except ShapeError as another:
                    told = another
        other = self.excepting(variants, args, kwargs, given)
        if other is None:
            raise told
        return other, other.run(given, out)

    def excepting(
        self,
        variants: list[Variant],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: Sequence[Any],
    ) -> Variant | None:
        """Make a variant for sizes that disagree, where the program has an `except` for that, and put it before the
        others. None where it has none; another error that the program raises there is raised."""
        met: list[Node] = []

        def strict(node: Node) -> Node:
            try:
                return agreeing(node)
            except GraphcError:
                met.append(node)
                raise

        parts, (static, _) = self.static.split(args, kwargs), self.static.places(len(args))
        ones = axes_of_one(given)
        names = names_of(self, parts.left, parts.named, static)
        variables = variables_for(self.title, given, names, ones)
        try:
            with temporarily(TRACE, strict=strict):
                with answering(self, variables, args, kwargs, given):
                    self.run_with(variables, self.donated(args, static, parts), parts, static, given)
                if not met:
                    return None
                made = self.trace(args, kwargs, given, ones)
        except GraphcError:
            return None
        if not isinstance(made, Variant):
            return None
        variants.insert(0, made)
        log_retrace(self.title, given, "sizes that disagree are no error of the program")
        self.use(None)
        return made

    def trace(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: Sequence[Any],
        ones: Sequence[Sequence[int]],
        short: Axes = frozenset(),
    ) -> Any:
        """Trace and compile the function for arguments like these. ones: for each leaf, the axes of static size 1.
        short: the axes whose sizes are fixed although nothing asked. Returns a `Variant`; a `Symbolic` where the
        function uses tensors from outside, which have no values here. Loops of the program that ask for values become
        nodes, where they can."""
        once = partial(self.trace_once, args, kwargs, given, ones, short)
        if TRACE.depth or not self.answers:
            return once()
        parts = self.static.split(args, kwargs)
        plan = self.loops.setdefault(self.keyed(args, kwargs)[0], Plan(Jitted.run.__code__))
        return with_loops(plan, once, lambda: self.reach(parts).functions, _flow)

    def trace_once(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        given: Sequence[Any],
        ones: Sequence[Sequence[int]],
        short: Axes = frozenset(),
        answers: Sequence[Any] = (),
    ) -> Any:
        """`trace`, with the loops that are known to become nodes. answers: to the first questions about values."""
        parts, (static, _) = self.static.split(args, kwargs), self.static.places(len(args))
        names = names_of(self, parts.left, parts.named, static)
        variables = variables_for(self.title, given, names, ones)
        donated = self.donated(args, static, parts)
        reach = None if TRACE.depth else self.reach(parts)
        outside = [] if reach is None else sources(reach)
        before = [] if reach is None else [place.read() for place in reach.places]
        try:
            with answering(self, variables, args, kwargs, given, answers) as values:
                made, results, notes = self.run_with(variables, donated, parts, static, given)
            check_unchanged(self.title, outside)
        except (GraphTypeError, Restart) as error:
            if isinstance(error, Restart) or error.drew or error.asked:
                undo(outside, reach if isinstance(error, Restart) else None, before)
            raise
        watched: Sequence[Outside] = ()
        if reach is not None:
            text = graph_key_text(Graph(tuple(variables), tuple(results)))

            def again() -> str:
                others = variables_for(self.title, given, names, ones)
                with answering(self, others, args, kwargs, given, answers):
                    results = self.run_with(others, donated, parts, static, given)[1]
                return graph_key_text(Graph(tuple(others), tuple(results)))

            changed = changed_places(self.title, reach.places, before, text, again)
            watched = self.watched(parts, reach, changed)
        others = self.others(results, variables)
        for leaf in others:
            if leaf in LEFT:
                raise MissingInputError(f"{self.title} uses {describe(leaf)} of type {leaf.type}{traced_hint(leaf)}")
        if others:
            return Symbolic(self.graph(args, kwargs))
        guards = guards_of([*notes, *notes_of(short, variables)], variables, ones)
        types = types_of(self, variables, parts, static)
        questions = () if values is None else values.compiled(variables, self.questions, self.settings, self.__name__)
        corrected = corrections(questions, plain_arrays(given))
        if len(corrected) > len(answers):  # the interpreter rounds in another way
            return self.trace_once(args, kwargs, given, ones, short, corrected)
        if not results:
            return Variant(types, None, lambda *given: made, made, (), guards, ones, watched, questions)
        results, inputs = guarded(results, variables, guards)
        function, call = self.compiled(made, results, inputs, donated)
        variant = Variant(types, function, call, made, results, guards, ones, watched, questions)
        variant.form = form_of(parts.kept(), kinds_of(given, by_class=True))
        if short:
            variant.short, variant.example = short, [without_elements(leaf) for leaf in given]
        if call is function and parts.is_fixed() and not questions:
            known = keywords_in_order(self.build, parts) if self.build is self.__wrapped__ else ()
            variant.make_fast((args, kwargs, static, self.static.names), given, known, self.again, self.has_out)
        return variant

    def run_with(
        self,
        variables: Sequence[Node],
        donated: Sequence[bool],
        parts: Parts,
        static: Sequence[int],
        given: Sequence[Any],
    ) -> tuple[Any, list[Node], Sequence[Note]]:
        """Run the function on variables in place of the leaves of arguments. Returns what it returned, the results in
        it, and its questions."""
        placed, keywords = like((parts.left, dict(parts.named)), variables)
        written = {id(leaf) for leaf, is_written in zip(variables, donated, strict=True) if is_written}
        whole = list(placed)
        for place, value in zip(static, parts.values, strict=True):
            whole.insert(place, value)
        try:
            with sizes_at_hand(sizes_of(variables, given)) as notes:
                made = self.run(whole, {**keywords, **dict(parts.fixed)}, written)
                pairs = zip(leaves(made), paths(made, "result"), strict=True)
                results = with_calls([self.as_result(leaf, path) for leaf, path in pairs])
        finally:
            LEFT.update(variables)
        return made, results, notes

    def reach(self, parts: Parts) -> Reach:
        """All that the function can reach."""
        return within_reach(self.__wrapped__, (*parts.values, *dict(parts.fixed).values()))

    def watched(self, parts: Parts, reach: Reach, changed: Collection[tuple[int, Any]]) -> Sequence[Outside]:
        """The values from outside that calls compare with those of the trace."""
        return watched(self.__wrapped__, (*parts.values, *dict(parts.fixed).values()), reach, changed)

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], written: Collection[int] = ()) -> Any:
        """Run the function on tensors. written: the ids of those that it may write to. An error of graphc that NumPy
        has replaced by its own ("setting an array element with a sequence") is raised in its place."""
        try:
            with TRACE, Frame() as found:
                replace_within_reach(self, (*args, *kwargs.values()))
                if written:
                    whole = [*args], dict(kwargs)
                    args, kwargs = tree_of(whole, [writable(leaf, written) for leaf in leaves_of(whole)])
                made = self.build(*args, **kwargs)
            return attached(made, found)
        except (TypeError, ValueError) as error:
            dropped, line = TRACE.refused
            if isinstance(error, GraphcError) or dropped is None or error_line(error) != (line.file, line.line):
                raise
            raise dropped from None
        finally:
            TRACE.refused = None, None

    def graph(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The results for tensors. A traced program that calls the function may write to them."""
        made = boundary.nodes(self.run(*boundary.nodes((args, kwargs))))
        return boundary.owned(made) if TRACE.depth else made

    def as_result(self, leaf: Any, path: str) -> Node:
        if isinstance(leaf, Node):
            return as_node(leaf)
        try:
            return as_node(leaf)
        except GraphTypeError as error:
            raise GraphTypeError(f"{self.title}: {path} that it returns is no array ({error})") from None

    def donated(self, args: Sequence[Any], static: Sequence[int], parts: Parts) -> list[bool]:
        """Return for each leaf True where a call may overwrite its array."""
        numbers, names = self.settings.donated.numbers, self.settings.donated.names
        chosen = {number % len(args) for number in numbers if -len(args) <= number < len(args)}
        others = [(place in chosen, value) for place, value in enumerate(args) if place not in static]
        named = [(name in names, parts.named[name]) for name in sorted(parts.named)]
        return [is_chosen for is_chosen, value in (*others, *named) for _ in leaves(value)]

    def others(self, results: Sequence[Node], variables: Sequence[Node]) -> list[Node]:
        """The variables from outside that make the results a graph."""
        return others_in(results, variables)

    def compiled(
        self, made: Any, results: list[Node], variables: list[Node], donated: list[bool]
    ) -> tuple[Function, Callable[..., Any]]:
        """Return the compiled function, and a function of the leaves of the arguments that calls it."""
        inputs = [
            In(leaf, mutable=True) if written and leaf.ndim else leaf
            for leaf, written in zip(variables, donated, strict=True)
        ]
        function = compile_function(
            inputs,
            results[0] if structure(made) == LEAF else results,
            mode=self.settings.mode,
            threads=self.settings.threads,
            name=self.__name__,
            profile=self.settings.profile,
            on_unused_input="ignore",
        )
        return function, function


if TYPE_CHECKING:

    class Bound(Jitted[Q, R], Generic[Q, P, R]):
        """A jitted function that is an attribute of a class or an object, for type checkers: a method, or a function
        that `classmethod` or `staticmethod` gives on. They cannot tell, so it takes the arguments of both."""

        @overload
        def __call__(self, /, *args: Q.args, **kwargs: Q.kwargs) -> R: ...
        @overload
        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, /, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


def _flow() -> Any:
    """What rewritten code calls. Imported here: only loops that become nodes need it."""
    return import_module("graphc.tracing.control_flow").FLOW


@once
def _direct() -> Any:
    return vectorcall_type(Jitted)


@record(eq=False)
class Symbolic:
    """The result of a function of tensors: a graph, which is returned uncompiled."""

    value: Any


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate: int | str | Sequence[int | str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    mode: str | None = None,
    threads: int | str | None = None,
    max_variants: int = 16,
    short_axes: bool = False,
    profile: bool | None = None,
) -> Jitted[P, R]: ...


@overload
def jit(
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate: int | str | Sequence[int | str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    mode: str | None = None,
    threads: int | str | None = None,
    max_variants: int = 16,
    short_axes: bool = False,
    profile: bool | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


@remembered
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate: int | str | Sequence[int | str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    mode: str | None = None,
    threads: int | str | None = None,
    max_variants: int = 16,
    short_axes: bool = False,
    profile: bool | None = None,
) -> Any:
    """Return `fun` as a function that is compiled at the first call for each combination of dtypes and ranks.

    fun: a function of arrays and numbers, in dicts, tuples, lists, named tuples and dataclasses, that computes with the
    functions of `graphc.numpy`, `graphc.tensor` or NumPy, and returns arrays in such a structure. It is called once for
    each combination of types, with tensors in place of arrays; Python's own control flow and side effects happen in
    that call alone. Where it asks for sizes (`if x.shape[0] > 100`, `for row in x`), it is called once more for each
    other answer; past `max_variants` such variants for the same types, a warning names the line that asks. The same
    holds for the truth or the whole number of a value (`if x.sum() > 0`), where more answers are an error.
    static_argnums, static_argnames: arguments that are passed on as they are, so that `if` and `range` may depend on
    them; they must be hashable, and each new value (compared by type and value) compiles again. donate: arguments, by
    position or name, whose arrays may be written to, and overwritten by results; donate_argnums and donate_argnames are
    the same for either. short_axes: the axes of 2 to 16 elements of the first call are compiled as numbers where
    another axis has 64 or more, which makes loops over rows faster; another number compiles once more, for all sizes.
    mode, threads, profile: as for `function`. Without `fun`, returns a decorator.

    Results are arrays, those without axes NumPy's scalars. The function keeps its name, signature and docstring, and
    can be pickled if `fun` can.

    A Python number has a kind and no dtype, as in NumPy: with it float32 stays float32. A call raises GraphTypeError
    where an argument is no array, and where Python or a NumPy array needs a value that the call cannot tell.

        >>> @graphc.jit
        ... def loss(params, x):
        ...     return ((x @ params["w"] + params["b"]) ** 2).mean()
        >>> loss({"w": np.ones(2), "b": 1.0}, np.eye(2))
        np.float64(4.0)
    """
    if fun is None:
        return lambda function: jit(
            function,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate=donate,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            mode=mode,
            threads=threads,
            max_variants=max_variants,
            short_axes=short_axes,
            profile=profile,
        )
    chosen = [] if donate is None else [*donate] if isinstance(donate, list | tuple | set) else [donate]
    numbers = [*listed(donate_argnums, int, "donate_argnums"), *(each for each in chosen if isinstance(each, int))]
    by_name = [
        *listed(donate_argnames, str, "donate_argnames"),
        *(each for each in chosen if not isinstance(each, int)),
    ]
    donated = Static.of(fun, numbers, by_name, "donate")
    settings = Settings(mode, threads, donated, max_variants, profile, short_axes)
    made = transformed(fun, builder_of(fun), static_argnums, static_argnames, settings)
    made.answers = True
    return made


def builder_of(function: Any) -> Callable[..., Any]:
    """The function of tensors behind a function: that which a `Jitted` traces, any other itself."""
    if isinstance(function, Jitted):
        return function.build
    if not callable(function):
        raise GraphTypeError(f"a function is to be transformed, not {function!r}")
    build: Callable[..., Any] = function
    return build


def transformed(
    function: Callable[P, Any],
    build: Callable[..., Any],
    static_argnums: Any = None,
    static_argnames: Any = None,
    settings: Settings | None = None,
    prefix: str = "",
    unchanged: Unchanged = NOTHING_UNCHANGED,
) -> Jitted[P, Any]:
    """Return `build` as a `Jitted` named after `function`. Static arguments and settings of a `Jitted` function are
    kept. unchanged: the arguments that `build` gives on to `function` as they are."""
    static = Static.of(function, static_argnums, static_argnames)
    if isinstance(function, Jitted):
        own = function.static
        static = Static((*own.numbers, *static.numbers), (*own.names, *static.names))
        settings = settings or function.settings
    name = prefix + getattr(function, "__name__", type(function).__name__)
    return Jitted(function, build, static, settings or Settings(), name, unchanged)


__all__ = ["Jitted", "jit", "transformed"]
