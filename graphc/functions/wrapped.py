"""Functions around another function, which does the work.

In: a `Function`. Out: one that tells of it what is asked.
"""

from __future__ import annotations

from typing import Any

from graphc.functions.callables import Function
from graphc.functions.usage import Memory


class Wrapped(Function):
    """Runs `whole`, in its own way."""

    whole: Function

    @property
    def trust_input(self) -> bool:
        """That of the function within, of which copies and pickles are made."""
        return self.whole.trust_input

    @trust_input.setter
    def trust_input(self, trusts: bool) -> None:
        self.whole.trust_input = trusts

    @property
    def kind(self) -> type[Function]:
        return self.whole.kind

    def memory(self, *sizes: Any) -> Memory:
        return self.whole.memory(*sizes)

    def free(self) -> None:
        self.whole.free()

    @property
    def source(self) -> str:
        return self.whole.source

    @property
    def assembly(self) -> str:
        return self.whole.assembly

    def explain(self) -> str:
        return self.whole.explain()
