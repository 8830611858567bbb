"""THE TABLE of passes over loops, and what carries them out.

In: a function of the loop IR as lowering left it, as a `Subject`. Out: the same computation in better loops; for the
verifier and those who watch, each form in between (ir/verify.py).

    subject = Subject("kernel", body, buffers, names)
    subject.run(KERNEL_PASSES)
    subject.body, subject.functions          # the statements, and the functions that they call

A new pass is a module and a row here; its cases are a text in tests/codegen/transform/passes/.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from graphc.codegen.transform.abreast import short_rows_abreast
from graphc.codegen.transform.aligned import fuse_aligned
from graphc.codegen.transform.borders import split_borders
from graphc.codegen.transform.double_buffers import double_buffer
from graphc.codegen.transform.forwarding import elide_copies, forward_stores
from graphc.codegen.transform.independence import mark_independent
from graphc.codegen.transform.merge_rows import merge_rows
from graphc.codegen.transform.outline import Outlined, outline
from graphc.codegen.transform.recurrences import functions_before_recurrences, shorten_recurrences
from graphc.codegen.transform.safepoints import place_safepoints, request_safepoints
from graphc.codegen.transform.simplify import STEPS, drop_unused
from graphc.codegen.transform.split_rows import split_rows
from graphc.codegen.transform.sums import Narrowed, add_where_chosen, narrow_sums
from graphc.codegen.transform.unroll import keep_in_registers, unroll_and_jam, unroll_rows, unroll_steps
from graphc.ir.verify import Step, passed, watched
from graphc.loopir import ir
from graphc.loopir.syntax import Names
from graphc.startup.record import record, replace

Body: TypeAlias = tuple[ir.Stmt, ...]
Externals: TypeAlias = Mapping[str, Sequence[str]]
"""The kinds of the parameters of external functions, by their names."""


class Subject:
    """A function on its way through the passes.

    What passes change: `body`, the `functions` that it calls, its `buffers`. `scalars` are its other parameters. What
    passes are told: `names` that are free,
    the variables of loops over `steps`, the buffers that stay as they were where a call is left (`kept`), whether there
    are `branches` or steps, and how parts become functions (`outlining`). `results` are the buffers that hold nothing
    when the function begins, besides temporaries; `externals` tells what external functions take. `after`: the
    statements that each pass left when it last ran.
    """

    def __init__(
        self,
        name: str,
        body: Iterable[ir.Stmt],
        buffers: Iterable[ir.Buffer],
        names: Names,
        *,
        scalars: Sequence[ir.Var] = (),
        externals: Callable[[], Externals] = dict,
        results: Container[str] = (),
        steps: Collection[ir.Var] = (),
        kept: Container[str] = (),
        branches: bool = True,
        outlining: str = "auto",
    ) -> None:
        self.name, self.body, self.buffers, self.names = name, tuple(body), [*dict.fromkeys(buffers)], names
        self.scalars, self.externals, self.results = scalars, externals, results
        self.steps, self.kept, self.branches, self.outlining = steps, kept, branches, outlining
        self.functions: tuple[ir.Function, ...] = ()
        self.narrowed = Narrowed(self.body)
        self.outlined = Outlined(self.body, (), {})
        self.after: dict[str, Body] = {}
        self._latest: tuple[ir.Function, ...] = ()

    def run(self, passes: Iterable[Pass]) -> None:
        """Carry out passes, one after the other."""
        for each in passes:
            if not each.when(self):
                continue
            before = self.body
            self.functions = tuple([replace(one, body=each.change(one.body, self)) for one in self.functions])
            self.body = self.after[each.name] = each.change(before, self)
            self.tell(each.name)
            if each.then and self.body != before:
                self.run(each.then)

    def tell(self, name: str) -> None:
        """A pass has made this of the function: it is verified, and shown to those who watch."""
        if watched():
            self.tell_of(name, (*self.functions, ir.Function(self.name, (*self.buffers, *self.scalars), self.body, "")))

    def tell_of(self, name: str, functions: tuple[ir.Function, ...]) -> None:
        """A pass has made these functions."""
        if not watched() or functions == self._latest:
            return

        def verify() -> None:
            # Imported here: nobody needs it who does not ask for it.
            verifier = import_module("graphc.loopir.verify")
            unwritten = [each.name for each in self.buffers if each.is_temporary or each.name in self.results]
            verifier.verify_functions(functions, self.externals(), unwritten)

        before, self._latest = self._latest, functions
        passed(Step(name, before, functions), verify)


def always(subject: Subject) -> bool:
    return True


@record(eq=False)
class Pass:
    """A row: the statements that the pass makes of those of a function, and the passes to run where it has changed
    something; it runs where `when` says so.

    `needs`, `gives` and `ends` are what must be true of loops before, what is afterwards, and what no longer is:

        marked      loops say in which buffers their iterations conflict
        safe        no loop has to ask any more whether the call must end: where it asks is written out
        outlined    parts are functions of their own, and loops are shared by threads
    """

    name: str
    change: Callable[[Body, Subject], Body]
    then: tuple[Pass, ...] = ()
    when: Callable[[Subject], bool] = always
    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    ends: tuple[str, ...] = ("marked",)


def _plain(change: Callable[[Body], Body]) -> Callable[[Body, Subject], Body]:
    """A pass that has to know the statements alone."""
    return lambda body, subject: change(body)


def _naming(change: Callable[[Body, Callable[[str], str]], Body]) -> Callable[[Body, Subject], Body]:
    """A pass that gives names."""
    return lambda body, subject: change(body, subject.names.fresh)


def _narrow(body: Body, subject: Subject) -> Body:
    subject.narrowed = result = narrow_sums(body, subject.names.fresh)
    subject.buffers = [*(result.changed.get(buffer, buffer) for buffer in subject.buffers), *result.narrow]
    return result.body


def _outline(body: Body, subject: Subject) -> Body:
    subject.outlined = result = outline(body, subject.names, subject.outlining)
    subject.buffers += [*result.scalars, *result.copies]
    subject.functions = result.functions
    return result.body


SIMPLIFY = tuple(Pass(name, _plain(step)) for name, step in STEPS)
FORWARD = Pass("forward_stores", _naming(forward_stores))

KERNEL_PASSES: tuple[Pass, ...] = (
    *SIMPLIFY,
    Pass("merge_rows", _plain(merge_rows), then=(FORWARD, *SIMPLIFY)),
    Pass("double_buffer", _naming(double_buffer), then=SIMPLIFY),
    Pass("elide_copies", _plain(elide_copies)),
    Pass(
        "unroll_steps",
        lambda body, subject: unroll_steps(body, subject.steps, subject.names.fresh),
        then=(FORWARD, *SIMPLIFY),
    ),
    Pass(
        "unroll_rows",
        lambda body, subject: unroll_rows(body, subject.steps, subject.names.fresh),
        then=(FORWARD, *SIMPLIFY),
    ),
    Pass("keep_in_registers", _naming(keep_in_registers)),
    Pass("shorten_recurrences", _plain(shorten_recurrences)),
    Pass("narrow_sums", _narrow),
    Pass("fuse_aligned", _naming(fuse_aligned)),
    Pass("mark_independent", _plain(mark_independent), gives=("marked",), ends=()),
    Pass("split_borders", _naming(split_borders), needs=("marked",), ends=()),
    Pass("request_safepoints", lambda body, subject: request_safepoints(body, subject.kept), ends=("safe",)),
    Pass("place_safepoints", _naming(place_safepoints), needs=("marked",), gives=("safe",), ends=()),
    Pass("drop_unused", _plain(drop_unused), when=lambda subject: subject.branches, ends=()),
    Pass("outline", _outline, needs=("marked", "safe"), gives=("outlined",), ends=()),
    Pass("unroll_and_jam", _naming(unroll_and_jam), needs=("marked", "safe"), ends=()),
    Pass("short_rows_abreast", _plain(short_rows_abreast), needs=("marked", "safe"), ends=()),
    Pass("split_rows", _naming(split_rows), needs=("marked", "safe"), ends=()),
    Pass("add_where_chosen", _plain(add_where_chosen), needs=("marked", "safe"), ends=()),
    Pass("functions_before_recurrences", _naming(functions_before_recurrences), needs=("marked", "safe"), ends=()),
)
"""The passes over a kernel, in order; those over the function that computes sizes are SIMPLIFY."""
