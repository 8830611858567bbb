"""The peers: which Python runs each, where it keeps what it has compiled, and the words its builders use.

In: a peer's name. Out: a `Peer`, and `load`, which imports the peer's library in the process that measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.workload import Array

# --- peers ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """kind: whose builders it uses. module: what is imported. own: it runs in graphc's environment, not the peers'.

    environment: variables of its process; `{cache}` stands for the folder of its persistent cache.
    """

    name: str
    kind: str
    module: str
    own: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("graphc", "symbolic", "graphc", True, {"GRAPHC_CACHE_DIR": "{cache}"}),
        Peer("interpreted", "symbolic", "graphc", True, {"GRAPHC_CACHE_DIR": "{cache}"}),
        Peer("numpy", "numpy", "numpy", True),
        Peer("numba", "numba", "numba", True, {"NUMBA_CACHE_DIR": "{cache}"}),
        Peer(
            "jax",
            "jax",
            "jax",
            environment={
                "JAX_PLATFORMS": "cpu",
                "JAX_ENABLE_X64": "1",
                "JAX_COMPILATION_CACHE_DIR": "{cache}",
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            },
        ),
        Peer(
            "pytensor",
            "symbolic",
            "pytensor",
            environment={"PYTENSOR_FLAGS": "base_compiledir={cache}", "NUMBA_CACHE_DIR": "{cache}"},
        ),
        Peer("torch", "torch", "torch"),
        Peer("torch-compiled", "torch", "torch", environment={"TORCHINDUCTOR_CACHE_DIR": "{cache}"}),
    )
}


def load(peer: Peer) -> Any:
    """The library of a peer, as its builders see it."""
    return LOADERS[peer.module](peer)


# --- graphc and PyTensor ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbolic:
    """Theano's words. `function` takes inputs, outputs and updates; `scan` gives outputs only. `last_of` takes a step,
    a first state, what else the step is given, and how many there are; for the gradient of the last state it keeps the
    square root of them."""

    tensor: Any
    function: Callable[..., Any]
    shared: Callable[..., Any]
    grad: Callable[..., Any]
    softmax: Callable[..., Any]
    log_softmax: Callable[..., Any]
    conv2d: Callable[..., Any]
    """Of images and kernels of so many taps along each axis, within a border; kernels are not flipped."""
    scan: Callable[..., Any]
    last_of: Callable[..., Any]
    max_pool: Callable[..., Any]
    """Of windows of 3 x 3, 2 apart, within a border of 1."""
    random: Any = None
    """Functions of keys."""
    jit: Any = None
    """Of functions of arrays, as `numpy` and `lax`, which have functions of NumPy and loops."""
    numpy: Any = None
    lax: Any = None

    def parameters(self, arrays: tuple[Array, ...]) -> list[Any]:
        """Shared variables with these values."""
        return [self.shared(array, name=f"p{number}") for number, array in enumerate(arrays)]

    def convert(self, array: Array) -> Array:
        return array


def load_graphc(peer: Peer) -> Symbolic:
    """graphc, compiled or interpreted."""
    graphc = import_module("graphc")
    nnet, function = graphc.nnet, graphc.function
    if peer.name == "interpreted":
        function = partial(function, mode="interpreted")

    def scan(*args: Any, **more: Any) -> Any:
        return graphc.scan(*args, **more)[0]

    def last_of(step: Any, first: Any, others: Any, steps: Any) -> Any:
        def one(state: Any, _: Any) -> Any:
            return step(state, *others), None

        return graphc.lax.scan(one, first, length=steps, checkpoint="sqrt")[0]

    pool = import_module("graphc.tensor.signal.pool").pool_2d
    pooled = partial(pool, ws=(3, 3), ignore_border=True, stride=(2, 2), pad=(1, 1))

    def conv2d(x: Any, w: Any, taps: int, around: int = 0) -> Any:
        return nnet.conv2d(x, w, border_mode=around, filter_flip=False)

    words = nnet.softmax, nnet.log_softmax, conv2d, scan, last_of, pooled
    jit = partial(graphc.jit, mode="interpreted") if peer.name == "interpreted" else graphc.jit
    of_arrays = jit, import_module("graphc.numpy"), graphc.lax
    return Symbolic(graphc.tensor, function, graphc.shared, graphc.grad, *words, graphc.random, *of_arrays)


def load_pytensor(peer: Peer) -> Symbolic:
    """PyTensor in its default mode, which trusts the arguments to have their types."""
    pytensor = import_module("pytensor")
    special = import_module("pytensor.tensor.special")

    def function(inputs: Any, outputs: Any, updates: Any = None) -> Any:
        return pytensor.function(inputs, outputs, updates=updates, trust_input=True)

    def last_of(step: Any, first: Any, others: Any, steps: Any) -> Any:
        kept = import_module("pytensor.scan.checkpoints").scan_checkpoints
        more = {"outputs_info": [first], "non_sequences": others, "n_steps": steps, "return_updates": False}
        return kept(step, save_every_N=100, **more)[-1]

    tensor, scan = import_module("pytensor.tensor"), partial(pytensor.scan, return_updates=False)

    def conv2d(x: Any, w: Any, taps: int, around: int = 0) -> Any:
        """A product of what lies under kernels, of slices, as it has none of images with channels."""
        wide = tensor.pad(x, ((0, 0), (0, 0), (around, around), (around, around))) if around else x
        rows, columns = (wide.shape[axis] - (taps - 1) for axis in (2, 3))
        parts = [wide[:, :, i : i + rows, j : j + columns] for i in range(taps) for j in range(taps)]
        under = tensor.stack(parts, axis=2).dimshuffle(0, 3, 4, 1, 2).reshape((x.shape[0] * rows * columns, -1))
        found = tensor.dot(under, w.reshape((w.shape[0], -1)).T)
        return found.reshape((x.shape[0], rows, columns, w.shape[0])).dimshuffle(0, 3, 1, 2)

    def pooled(x: Any) -> Any:
        """Of slices, as it has no pooling."""
        around = ((0, 0), (0, 0), (1, 1), (1, 1))
        wide = tensor.pad(x, around, mode="constant", constant_values=-np.inf)
        count = [(size - 1) // 2 * 2 + 1 for size in (x.shape[2], x.shape[3])]
        parts = (wide[:, :, i : i + count[0] : 2, j : j + count[1] : 2] for i in range(3) for j in range(3))
        return reduce(tensor.maximum, parts)

    words = special.softmax, special.log_softmax, conv2d, scan, last_of, pooled
    return Symbolic(tensor, function, pytensor.shared, pytensor.grad, *words)


# --- the others -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumPy:
    """NumPy, and SciPy's normal distribution for the one workload that needs it."""

    def convert(self, array: Array) -> Array:
        return array

    def normal(self, x: Array) -> Array:
        """The distribution function of the standard normal."""
        values: Array = import_module("scipy.special").ndtr(x)
        return values


@dataclass(frozen=True)
class Numba:
    """Hand-written kernels: they are ready-made functions of `benchmarks.by_hand`."""

    def convert(self, array: Array) -> Array:
        return array


@dataclass(frozen=True)
class Jax:
    jax: Any
    numpy: Any

    def convert(self, array: Array) -> Any:
        return self.jax.block_until_ready(self.numpy.array(array))

    def jit(self, function: Callable[..., Any], donate: tuple[int, ...] = ()) -> Callable[..., Any]:
        """The function, compiled, which has finished when it returns."""
        compiled, wait = self.jax.jit(function, donate_argnums=donate), self.jax.block_until_ready
        return lambda *arguments: wait(compiled(*arguments))


@dataclass(frozen=True)
class Torch:
    """`compile` is the identity for the eager peer."""

    torch: Any
    compile: Callable[[Callable[..., Any]], Callable[..., Any]]

    def convert(self, array: Array) -> Any:
        return self.torch.from_numpy(np.array(array))

    def checkpoint(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function, carried out again for its gradient."""
        return import_module("torch.utils.checkpoint").checkpoint(function, *arguments, use_reentrant=False)


def load_numpy(peer: Peer) -> NumPy:
    return NumPy()


def load_numba(peer: Peer) -> Numba:
    import_module("numba")
    return Numba()


def load_jax(peer: Peer) -> Jax:
    return Jax(import_module("jax"), import_module("jax.numpy"))


def load_torch(peer: Peer) -> Torch:
    torch = import_module("torch")
    return Torch(torch, torch.compile if peer.name == "torch-compiled" else lambda function: function)


LOADERS: dict[str, Callable[[Peer], Any]] = {
    "graphc": load_graphc,
    "pytensor": load_pytensor,
    "numpy": load_numpy,
    "numba": load_numba,
    "jax": load_jax,
    "torch": load_torch,
}
