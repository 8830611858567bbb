"""Values of tensors that a traced program asks for: `if x.sum() > 0`, `range(int(n))`.

    f = graphc.jit(lambda x: x if x.sum() > 0 else -x)
    f(np.ones(3))       traced with these arguments at hand: the question is True, the results x
    f(-np.ones(3))      the question, compiled by itself, is False now: another variant
    f(np.ones(5))       True again: the first variant

In: the variables of a trace, the arguments of the call. Out: the answers, which the interpreter computes; and, of a
function of `jit`, the questions, which are compiled one by one and answered before each call chooses a variant. Equal
questions are one function, whatever variants ask them: which variant a call takes follows from its arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from graphc.errors import GraphcError, MissingInputError
from graphc.functions.function import function as compile_function
from graphc.ir.interpret import bindings, extend
from graphc.ir.node import Node, describe, plain
from graphc.ir.source_lines import TRACE, Where, program_line
from graphc.ir.text import graph_key_text
from graphc.ir.walk import Graph, nodes_of, substitute
from graphc.ops.elementwise import elementwise
from graphc.startup.process import temporarily
from graphc.startup.record import record
from graphc.tracing.arguments import Settings

MOST = 32
"""The questions that one trace may ask."""
REFUSED = object()
"""The answer where computing it is an error."""


class Values:
    """The values of tensors in the trace of one call. stand_ins: variables, with the nodes that they stand for.
    is_once: the trace serves this call alone, so that any value may be told."""

    is_once = True
    is_full = False

    def __init__(self, variables: Sequence[Node], given: Sequence[Any]) -> None:
        self.given = variables, given
        self.stand_ins: dict[Node, Node] = {}

    @cached_property
    def known(self) -> Any:
        """The values that are computed so far."""
        pairs = zip(*self.given, strict=True)
        return bindings({own: np.asarray(leaf, own.type.dtype) for own, leaf in pairs})

    def of(self, node: Any) -> Any:
        """The value of a tensor, an array; None where it follows from more than the arguments, as in the body of a
        loop."""
        try:
            return extend(self.known, plain(node), self.stand_ins)
        except MissingInputError:
            return None

    def truth(self, node: Any) -> bool | None:
        """The truth of a tensor. Raises ValueError as NumPy for several elements."""
        value = self.of(node)
        return None if value is None else bool(value)

    def whole(self, node: Any) -> Any:
        """The value of a tensor that is to be a whole number or an index."""
        return self.of(node)


class Answers(Values):
    """The answers of a trace whose results serve other calls too. most: the questions that it may ask. found: bools and
    whole numbers without axes that were asked, with the answers and lines. answers: the first ones, where they are
    known. is_full: there were too many."""

    is_once = False

    def __init__(
        self, variables: Sequence[Node], given: Sequence[Any], may_ask: bool, answers: Sequence[Any] = ()
    ) -> None:
        super().__init__(variables, given)
        self.most = MOST if may_ask else 0
        self.answers = answers
        self.found: dict[Node, tuple[Any, Where | None]] = {}

    def of(self, node: Any) -> Any:
        """Nothing: a question has no axes."""
        return None

    def truth(self, node: Any) -> bool | None:
        node = plain(node)
        if node.type.shape:
            return None
        return self.answer(node if node.type.dtype == "bool" else elementwise("not_equal", node, 0))

    def whole(self, node: Any) -> Any:
        node = plain(node)
        answer = None if node.type.shape or node.type.dtype[0] not in "iub" else self.answer(node)
        return None if answer is None else np.asarray(answer, node.type.dtype)

    def answer(self, node: Node) -> Any:
        """The answer to a question, which is kept; None where it follows from more than the arguments."""
        if node in self.found:
            return self.found[node][0]
        if TRACE.loops is not None:
            TRACE.loops.ask()
        if len(self.found) < len(self.answers):
            answer = self.answers[len(self.found)]
        elif (value := super().of(node)) is None:
            return None
        elif len(self.found) >= self.most:
            self.is_full = True
            return None
        else:
            answer = value.item()
        self.found[node] = answer, program_line()
        return answer

    def compiled(
        self, variables: Sequence[Node], known: MutableMapping[str, Any], settings: Settings, name: str
    ) -> tuple[Question, ...]:
        """The questions, as functions of the variables, which have no others behind them. known: those of other traces,
        by their text. name: of the function."""
        found = []
        for node, (answer, where) in self.found.items():
            root = node
            while not self.stand_ins.keys().isdisjoint(nodes_of([root])):
                (root,) = substitute([root], self.stand_ins)
            text = graph_key_text(Graph(tuple(variables), (root,)))
            if text not in known:
                known[text] = compile_function(
                    variables, root, mode=settings.mode, threads=settings.threads, name=name, on_unused_input="ignore"
                )
            found.append(Question(known[text], answer, text_of(node, answer, where)))
        return tuple(found)


@contextmanager
def answering(
    function: Any, variables: Sequence[Node], args: Any, kwargs: Any, given: Sequence[Any], answers: Sequence[Any] = ()
) -> Iterator[Answers | None]:
    """While the block runs, which traces a `Jitted`, answer its questions about values for arguments and their leaves
    `given`. Gives None for a function whose questions are not answered, and within another trace."""
    if not function.answers or TRACE.depth:
        yield None
        return
    variants = function.entries.get(function.keyed(args, kwargs)[0], [])
    room = function.settings.max_variants - sum(bool(each.questions) for each in variants)
    values = Answers(variables, given, room > 0, answers)
    with temporarily(TRACE, values=values):
        yield values


@record(eq=False)
class Question:
    """A value that a variant was told. ask: a compiled function of the leaves of the arguments. text: for people, with
    the line that asked."""

    ask: Callable[..., Any]
    answer: Any
    text: str

    def __str__(self) -> str:
        return self.text

    def holds(self, given: Sequence[Any], known: MutableMapping[Any, Any]) -> bool:
        """True if these arguments give the answer. known: the answers for them so far."""
        if self.ask not in known:
            try:
                known[self.ask] = self.ask(*given).item()
            except GraphcError:
                known[self.ask] = REFUSED
        return bool(known[self.ask] == self.answer)


def text_of(node: Node, answer: Any, where: Where | None) -> str:
    """A question with its answer, for people."""
    told = describe(node).partition(" (")[0]
    told = told if answer is True else f"{told} is False" if answer is False else f"{told} == {answer}"
    return f"{told} ({where})" if where else told


def corrections(questions: Sequence[Question], given: Sequence[Any]) -> list[Any]:
    """The answers up to the first one that the compiled function gives in another way, as that gives it; none where
    all agree."""
    known: dict[Any, Any] = {}
    for place, each in enumerate(questions):
        if not each.holds(given, known):
            found = known[each.ask]
            return [] if found is REFUSED else [*(before.answer for before in questions[:place]), found]
    return []


def failing(questions: Sequence[Question], given: Sequence[Any]) -> Question | None:
    """The first question that these arguments answer in another way; None without one."""
    known: dict[Any, Any] = {}
    return next((each for each in questions if not each.holds(given, known)), None)
