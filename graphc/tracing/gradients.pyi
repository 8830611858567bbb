"""`graphc.grad` and `graphc.value_and_grad` for type checkers: of functions, and of nodes as in Theano."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from graphc.autodiff import Disconnected
from graphc.ir.node import Node
from graphc.tracing.traced import Jitted

P = ParamSpec("P")
R = TypeVar("R")

@overload
def grad(
    cost: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, Any]: ...
@overload
def grad(
    cost: Any,
    wrt: Any = None,
    consider_constant: Iterable[Node] | None = None,
    disconnected_inputs: Disconnected = "raise",
    add_names: bool = True,
    known_grads: Mapping[Node, Any] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any: ...
@overload
def value_and_grad(
    cost: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    mode: str | None = None,
    threads: int | str | None = None,
) -> Jitted[P, tuple[R, Any]]: ...
@overload
def value_and_grad(cost: Any, wrt: Any = None, **arguments: Any) -> Any: ...
