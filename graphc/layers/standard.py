"""`Layer`, the base class; dense layers, embeddings, activations, dropout, normalisation; convolution and pooling;
recurrent layers.

In: (batch, …, n_in). Out: (batch, …, n_out) of `Dense` and `Embedding`; the same shape of activations, dropout and
normalisation; other sizes of (batch, channels, …), or with `channels_last` (batch, …, channels), of `Conv` and `Pool`;
of (batch, time, n_in) (batch, time, n_out), or the last state, of recurrent layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphc.control.scan import scan
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError, RankError, ShapeError
from graphc.ir.node import Node, describe
from graphc.layers import initial
from graphc.layers.initial import Initialiser
from graphc.random.streams import RandomStreams
from graphc.shared import SharedVariable, shared
from graphc.tensor import nnet
from graphc.tensor.creation import zeros
from graphc.tensor.elementary import cast, sigmoid, softplus, tanh
from graphc.tensor.indexing import take
from graphc.tensor.nnet.activations import prelu
from graphc.tensor.nnet.normalization import batch_normalization_test, group_norm, instance_norm, layer_norm, normalize
from graphc.tensor.nnet.sliding import convolution
from graphc.tensor.products import dot
from graphc.tensor.shaping import expand_dims, flatten, normalise_axes, squeeze
from graphc.tensor.signal.pool import global_pool, pool
from graphc.tensor.variables import as_tensor


class Source:
    """The random numbers of a network: `rng` draws initial parameters, `streams` the masks of each call."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.streams = RandomStreams(seed)


class Layer:
    """A part of a network. `layer(x)` is its output for prediction, `layer(x, train=True)` that for training.

    name: the prefix of the parameters' names, by default that of the class. dtype: of the parameters. seed: of initial
    values and random masks. A subclass defines `build(x)`, which makes parameters with `self.param`, and
    `output(x, train)`:

        class Scale(Layer):
            def build(self, x):
                self.factor = self.param("factor", x.type.shape[-1:], initial.constant(1))

            def output(self, x, train):
                return x * self.factor

    A layer without `output` raises NotImplementedError when it is called. A parameter of a size that is not known
    raises GraphTypeError.
    """

    def __init__(self, name: str | None = None, dtype: str = "float32", seed: int = 0) -> None:
        self.name = name or type(self).__name__.lower()
        self.dtype = dtype
        self.source = Source(seed)
        self.params: list[SharedVariable] = []
        """The parameters that an optimiser updates."""
        self.state: list[SharedVariable] = []
        """Shared variables that training updates without gradients (running averages)."""
        self.updates: dict[SharedVariable, Node] = {}
        """The new values of `state`, in the graph of the last output for training."""
        self.built = False
        self.static = True
        """True: parameters have static sizes, which compiled code is specialised to."""

    def __call__(self, x: Any, train: bool = False) -> Node:
        node = as_tensor(x)
        if not self.built:
            self.build(node)
            self.built = True
        return self.output(node, train)

    def build(self, x: Node) -> None:
        """Make the parameters for inputs like `x`."""

    def output(self, x: Node, train: bool) -> Node:
        """Return the output for `x`, from parameters that `build` has made."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its output is")

    def param(self, what: str, shape: Sequence[Any], initial: Initialiser, moved: bool = True) -> SharedVariable:
        """Make a shared variable named `<layer>.<what>`, and append it to `params`; to `state` where `moved` is False.
        Raises GraphTypeError for a size that is not static."""
        sizes = [size for size in shape if isinstance(size, int | np.integer)]
        if len(sizes) != len(shape):
            raise GraphTypeError(f"{self.name}: {what} needs sizes that are known before there is data, not {shape!r}")
        value = np.asarray(initial([int(size) for size in sizes], self.source.rng), self.dtype)
        variable = shared(value, f"{self.name}.{what}", borrow=True, shape=value.shape if self.static else None)
        (self.params if moved else self.state).append(variable)
        return variable

    def holds(self, part: Layer) -> None:
        """Make a layer a part of this one, which shares its dtype, random numbers and lists of parameters."""
        part.name, part.dtype = f"{self.name}.{part.name}", self.dtype
        part.source, part.static = self.source, self.static
        part.params, part.state, part.updates = self.params, self.state, self.updates

    def features(self, x: Node, axis: int = -1, given: int | None = None) -> int:
        """Return the size of `x` along an axis: the static one, or `given`. Raises GraphTypeError where there is
        neither, ShapeError where they differ, AxisError for an axis that `x` does not have."""
        size = x.type.shape[normalise_axes(axis, x.ndim, f"{self.name} of {describe(x)}")[0]] if x.ndim else None
        if given is not None and isinstance(size, int) and size != given:
            raise ShapeError(f"{self.name} takes {given} numbers; {describe(x)} of type {x.type} has {size}")
        if given is None and not isinstance(size, int):
            raise GraphTypeError(
                f"{self.name}: how many numbers {describe(x)} of type {x.type} has is not known; give n_in, or the "
                "input a shape"
            )
        return given if given is not None else int(size)  # type: ignore[arg-type]


__all__ = [
    "GRU", "LSTM", "Activation", "BatchNorm", "Conv", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm",
    "InstanceNorm", "Layer", "LayerNorm", "PReLU", "Pool", "Recurrent",
]  # fmt: skip

Function: TypeAlias = "Callable[[Any], Node]"


def _same(x: Any) -> Node:
    return x


ACTIVATIONS: dict[str, Function] = {
    "linear": _same,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "softplus": softplus,
    "softmax": nnet.softmax,
    **{name: getattr(nnet, name) for name in ("relu", "leaky_relu", "elu", "selu", "gelu", "silu", "softsign")},
}
"""{name: function}."""


LEARNT = ("prelu",)
"""The names of activations with parameters, which are layers of their own."""


def activation_of(what: str | Function | None) -> Function:
    """Return an activation by its name, or a function as it is. Raises GraphValueError for an unknown name."""
    if what is None:
        return ACTIVATIONS["linear"]
    if callable(what):
        return what
    if what not in ACTIVATIONS:
        known = ", ".join((*ACTIVATIONS, *LEARNT))
        raise GraphValueError(f"activation {what!r}: must be a function, or one of {known}")
    return ACTIVATIONS[what]


def initial_of(activation: str | Function | None) -> Initialiser:
    """Return the default initialiser of weights before an activation: He for rectifiers, Glorot for others."""
    rectifies = activation in ("relu", "leaky_relu", "prelu", "elu", "gelu", "silu", nnet.relu)
    return initial.he_normal() if rectifies else initial.glorot_uniform()


class Activation(Layer):
    """A function of each element: a name of `ACTIVATIONS`, or any function of tensors. Raises GraphValueError for
    another name."""

    def __init__(self, function: str | Function, **common: Any) -> None:
        super().__init__(**common)
        activation_of(function)
        self.function = function  # by its name, where it has one: so it can be pickled

    def output(self, x: Node, train: bool) -> Node:
        return activation_of(self.function)(x)


class PReLU(Layer):
    """x where x >= 0, slope * x elsewhere, with learnt slopes. He, Zhang, Ren and Sun, ICCV 2015.

    axes: each index along these axes has its own slope; their sizes must be static. 1 is that of features or channels,
    -1 that of channels last; None is one slope for all. Raises GraphTypeError for a size that is not static,
    GraphValueError for an axis that does not exist, or that of the batch.

        >>> net = layers.Sequential(input_shape=(3,)).add(layers.PReLU())
        >>> net(np.full((2, 3), -1.0, "float32")).eval()[0]
        array([-0.25, -0.25, -0.25], dtype=float32)
    """

    def __init__(self, slope: float | Initialiser = 0.25, axes: int | Sequence[int] | None = 1, **common: Any) -> None:
        super().__init__(**common)
        self.initial_slope: Initialiser = slope if callable(slope) else initial.constant(slope)
        self.axes = axes if axes is None or isinstance(axes, int) else tuple(axes)

    def build(self, x: Node) -> None:
        self.own = () if self.axes is None else normalise_axes(self.axes, x.ndim, f"{self.name} of {describe(x)}")
        if 0 in self.own:
            raise GraphValueError(
                f"{self.name}: examples have no slopes of their own, as axis 0 of {describe(x)} would"
            )
        self.slope = self.param("slope", [x.type.shape[axis] for axis in self.own], self.initial_slope)

    def output(self, x: Node, train: bool) -> Node:
        order = [self.own.index(axis) if axis in self.own else "x" for axis in range(x.ndim)]
        return prelu(x, self.slope.dimshuffle(*order))


def activation_layer(what: str | Function, axes: int) -> Layer:
    """Return the layer of an activation. axes: those of the slopes of "prelu"."""
    return PReLU(axes=axes) if what == "prelu" else Activation(what)


class Flatten(Layer):
    """Join all axes after that of the batch: (batch, a, b) to (batch, a * b). Raises GraphValueError for an input of
    less than two axes."""

    def output(self, x: Node, train: bool) -> Node:
        return flatten(x, 2)


class Dropout(Layer):
    """Dropout: in training each element is 0 with probability `p`, and others are divided by 1 - p; in prediction
    nothing changes. scale=False: others stay in training, and prediction multiplies by 1 - p. Srivastava et al., JMLR
    15 (2014). Raises GraphValueError for p outside [0, 1)."""

    def __init__(self, p: float = 0.5, scale: bool = True, **common: Any) -> None:
        super().__init__(**common)
        if not 0 <= p < 1:
            raise GraphValueError(f"dropout: the chance {p} is not at least 0 and below 1")
        self.p, self.scale = p, scale

    def output(self, x: Node, train: bool) -> Node:
        return self.dropped(x, train)

    def dropped(self, x: Node, train: bool) -> Node:
        """Apply the dropout to `x`."""
        if not self.p:
            return x
        if not train:
            return x if self.scale else x * (1 - self.p)
        kept = x * cast(self.source.streams.binomial(x.shape, p=1 - self.p), x.type.dtype)
        return kept / (1 - self.p) if self.scale else kept


class Dense(Layer):
    """A dense layer: activation(dot(x, w) + b), from (batch, …, n_in) to (batch, …, n_out).

    activation: a name of `ACTIVATIONS`, "prelu", or a function. n_in: needed where the input's last size is not static.
    w, bias: initialisers; bias=None leaves out b. dropconnect: the probability of each weight to be 0 in training (Wan
    et al., ICML 2013). Raises GraphValueError for an activation that is not there.
    """

    def __init__(
        self,
        n_out: int,
        activation: str | Function | None = None,
        n_in: int | None = None,
        w: Initialiser | None = None,
        bias: Initialiser | None = initial.zeros,
        dropconnect: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.n_out, self.n_in, self.initial_w, self.initial_b = n_out, n_in, w, bias
        self.activation = activation_layer(activation or "linear", axes=-1)
        self.drop = Dropout(dropconnect, name=self.name)
        self.default = initial_of(activation)

    def build(self, x: Node) -> None:
        n_in = self.features(x, given=self.n_in)
        self.w = self.param("w", (n_in, self.n_out), self.initial_w or self.default)
        self.b = None if self.initial_b is None else self.param("b", (self.n_out,), self.initial_b)
        self.holds(self.activation)

    def output(self, x: Node, train: bool) -> Node:
        self.drop.source = self.source
        w = self.drop.dropped(self.w, train)
        scores = dot(x, w)
        return self.activation(scores if self.b is None else scores + self.b)


class Embedding(Layer):
    """A table of vectors: maps each integer to a row, (batch, …) to (batch, …, n_out). Raises GraphTypeError for
    floats."""

    def __init__(self, n_rows: int, n_out: int, w: Initialiser | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.n_rows, self.n_out = n_rows, n_out
        self.initial_w = w or initial.normal(n_out**-0.5)

    def build(self, x: Node) -> None:
        self.w = self.param("w", (self.n_rows, self.n_out), self.initial_w)

    def output(self, x: Node, train: bool) -> Node:
        if x.type.dtype.startswith("float"):
            raise GraphTypeError(f"{self.name} takes whole numbers, not {describe(x)} of type {x.type}")
        return take(self.w, x, axis=0)


# --- normalisation ----------------------------------------------------------------------------------------------------


class _Norm(Layer):
    """The base of normalisations: a scale `gamma` and a shift `beta` for each feature along `axis`."""

    def __init__(self, axis: int, epsilon: float, n_in: int | None, common: dict[str, Any]) -> None:
        super().__init__(**common)
        self.axis, self.epsilon, self.n_in = axis, epsilon, n_in

    def build(self, x: Node) -> None:
        self.shape = (self.features(x, self.axis, self.n_in),)
        self.gamma = self.param("gamma", self.shape, initial.constant(1))
        self.beta = self.param("beta", self.shape, initial.zeros)


class BatchNorm(_Norm):
    """Batch normalisation: (x - mean) / sqrt(variance + epsilon) * gamma + beta, for each feature along `axis`. Raises
    GraphTypeError where the size of that axis is not known and `n_in` is not given; AxisError for an input without
    that axis.

    In training, mean and variance are taken over all other axes of the batch. The running averages, which prediction
    uses, move towards them by the part `momentum`; the variance's towards n / (n - 1) times that of the batch. Ioffe
    and Szegedy, ICML 2015."""

    def __init__(
        self, axis: int = 1, epsilon: float = 1e-5, momentum: float = 0.1, n_in: int | None = None, **common: Any
    ) -> None:
        super().__init__(axis, epsilon, n_in, common)
        self.momentum = momentum

    def build(self, x: Node) -> None:
        super().build(x)
        self.mean = self.param("mean", self.shape, initial.zeros, moved=False)
        self.variance = self.param("variance", self.shape, initial.constant(1), moved=False)

    def output(self, x: Node, train: bool) -> Node:
        others = [axis for axis in range(x.ndim) if axis != self.axis % x.ndim]
        scales = self.gamma, self.beta
        if not train:
            return batch_normalization_test(x, *scales, self.mean, self.variance, others, self.epsilon)
        result, *moments = normalize(x, others, self.epsilon, *(expand_dims(each, others) for each in scales))
        mean, variance = (squeeze(each, others) for each in moments)
        count = (x.size // self.mean.size).astype(x.type.dtype)
        sample = variance * (count / (count - 1).clip(1, count))  # of one example it stays 0
        self.updates = {
            self.mean: self.mean + self.momentum * (mean - self.mean),
            self.variance: self.variance + self.momentum * (sample - self.variance),
        }
        return result


class LayerNorm(_Norm):
    """Layer normalisation of each example over its last axis, in training and prediction alike. Ba et al., 2016. Raises
    GraphTypeError where the size of the last axis is not known."""

    def __init__(self, epsilon: float = 1e-5, **common: Any) -> None:
        super().__init__(-1, epsilon, None, common)

    def output(self, x: Node, train: bool) -> Node:
        return layer_norm(x, self.gamma, self.beta, epsilon=self.epsilon)


class InstanceNorm(_Norm):
    """Instance normalisation of each channel of each image, (batch, channels, …). Ulyanov et al., 2016. Raises
    RankError for an input without axes after the channels, GraphTypeError where the number of channels is not known and
    `n_in` is not given."""

    def __init__(self, epsilon: float = 1e-5, n_in: int | None = None, **common: Any) -> None:
        super().__init__(1, epsilon, n_in, common)

    def output(self, x: Node, train: bool) -> Node:
        return instance_norm(x, self.gamma, self.beta, self.epsilon)


class GroupNorm(_Norm):
    """Group normalisation of `groups` equal groups of channels of each image, (batch, channels, …). Wu and He, 2018.
    Raises ArgumentError where the channels are no multiple of the groups."""

    def __init__(self, groups: int, epsilon: float = 1e-5, n_in: int | None = None, **common: Any) -> None:
        super().__init__(1, epsilon, n_in, common)
        self.groups = groups

    def build(self, x: Node) -> None:
        super().build(x)
        if self.groups < 1 or self.shape[0] % self.groups:
            raise ArgumentError(f"{self.name}: {self.shape[0]} channels are no multiple of {self.groups} groups")

    def output(self, x: Node, train: bool) -> Node:
        return group_norm(x, self.groups, self.gamma, self.beta, self.epsilon)


# --- convolution and pooling ------------------------------------------------------------------------------------------


def _several(value: int | Sequence[int], rank: int, name: str) -> tuple[int, ...]:
    """Return one number for each of `rank` axes."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) != rank:
        raise GraphValueError(f"{name} {value!r}: there are {rank} axes")
    return numbers


class Conv(Layer):
    """Convolution: activation(cross-correlation of x with filters + b), over as many axes as `size` has numbers.

    n_out: the number of filters. size: of a filter; one number means 2 axes. border: "valid", "same" (results of size
    ceil(n / stride)), "full", "half", or paddings. groups: the number of parts into which channels and filters are
    divided; as many as channels is a depthwise convolution. n_in: the number of channels, where it is not static.
    Filters are (n_out, channels of a group, …) in either layout. Raises RankError and GraphValueError for an input that
    does not fit.

        Conv(16, 3, "relu", border="same")      (batch, 8, 32, 32) to (batch, 16, 32, 32)
    """

    def __init__(
        self,
        n_out: int,
        size: int | Sequence[int] = 3,
        activation: str | Function | None = None,
        border: Any = "valid",
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        n_in: int | None = None,
        channels_last: bool = False,
        w: Initialiser | None = None,
        bias: Initialiser | None = initial.zeros,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.rank = 2 if isinstance(size, int) else len(size)
        self.size = _several(size, self.rank, "size")
        self.stride, self.dilation = (_several(each, self.rank, "stride or dilation") for each in (stride, dilation))
        self.n_out, self.n_in, self.border, self.groups = n_out, n_in, border, groups
        self.channels_last = channels_last
        self.activation = activation_layer(activation or "linear", -1 if channels_last else 1)
        self.initial_w, self.initial_b = w or initial_of(activation), bias

    def build(self, x: Node) -> None:
        if x.ndim != self.rank + 2:
            raise RankError(f"{self.name} takes {self.rank + 2} axes; {describe(x)} of type {x.type} has {x.ndim}")
        n_in = self.features(x, -1 if self.channels_last else 1, self.n_in)
        if n_in % self.groups or self.n_out % self.groups:
            raise GraphValueError(f"{self.name}: {self.groups} groups of {n_in} channels and {self.n_out} results")
        self.w = self.param("w", (self.n_out, n_in // self.groups, *self.size), self.initial_w)
        self.b = None if self.initial_b is None else self.param("b", (self.n_out,), self.initial_b)
        self.holds(self.activation)

    def output(self, x: Node, train: bool) -> Node:
        # With channels last a kernel is (axes..., channels, results).
        w = self.w.dimshuffle(*range(2, 2 + self.rank), 1, 0) if self.channels_last else self.w
        how = self.stride, self.border, self.dilation, self.groups
        result = convolution(x, w, *how, channels_last=self.channels_last)
        if self.b is not None:
            result = result + (self.b if self.channels_last else expand_dims(self.b, tuple(range(1, 1 + self.rank))))
        return self.activation(result)


class Pool(Layer):
    """Pooling: the maximum of each window; mode="average" takes the mean, "sum" the sum.

    size: of a window, over as many axes as it has numbers; one number means 2 axes; None pools all of each channel, to
    (batch, channels). stride: `size` where None. ignore_border: leave out windows that reach beyond the border. Raises
    RankError for an input of another rank.
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = 2,
        stride: int | Sequence[int] | None = None,
        mode: str = "max",
        ignore_border: bool = True,
        channels_last: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.size = size if size is None else _several(size, 2 if isinstance(size, int) else len(size), "size")
        self.stride, self.mode = stride, {"average": "average_exc_pad"}.get(mode, mode)
        self.ignore_border, self.channels_last = ignore_border, channels_last

    def output(self, x: Node, train: bool) -> Node:
        rank = x.ndim - 2
        if self.size is not None and len(self.size) != rank:
            raise RankError(f"{self.name} takes {len(self.size) + 2} axes; {describe(x)} has {x.ndim}")
        if self.channels_last:
            x = x.dimshuffle(0, x.ndim - 1, *range(1, x.ndim - 1))
        if self.size is None:
            return global_pool(x, self.mode, rank).flatten(2)
        stride = None if self.stride is None else _several(self.stride, rank, "stride")
        result = pool(x, self.size, self.ignore_border, stride, None, self.mode)
        return result.dimshuffle(0, *range(2, x.ndim), 1) if self.channels_last else result


# --- recurrent layers -------------------------------------------------------------------------------------------------
# The input's part of all gates is one product for all steps, before the loop; the state's part is one product a step.


class Recurrent(Layer):
    """A simple recurrent layer: h' = tanh(x w + h u + b), from h = 0.

    n_out: the size of the state. sequences: True returns the states of all steps, (batch, time, n_out), False the last
    one, (batch, n_out). backwards: go from the last step to the first; each state stands at the place of its input.
    n_in: the size of the input, where it is not static. w, u: initialisers. Raises RankError for an input that is not
    of rank 3.
    """

    gates = 1

    def __init__(
        self,
        n_out: int,
        sequences: bool = False,
        backwards: bool = False,
        n_in: int | None = None,
        w: Initialiser | None = None,
        u: Initialiser | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.n_out, self.n_in, self.sequences, self.backwards = n_out, n_in, sequences, backwards
        self.initial_w, self.initial_u = w or initial.glorot_uniform(), u or initial.orthogonal()

    def build(self, x: Node) -> None:
        if x.ndim != 3:
            raise RankError(f"{self.name} takes (batch, time, numbers), not {describe(x)} of type {x.type}")
        n_in, wide = self.features(x, given=self.n_in), self.gates * self.n_out
        self.w = self.param("w", (n_in, wide), self.initial_w)
        self.u = self.param("u", (self.n_out, wide), self.initial_u)
        self.b = self.param("b", (wide,), self.initial_b)

    def initial_b(self, shape: Any, rng: Any) -> Any:
        """The initialiser of the biases."""
        return initial.zeros(shape, rng)

    def output(self, x: Node, train: bool) -> Node:
        scores = dot(x, self.w) + self.b
        begin = [zeros((scores.type.shape[0], self.n_out), x.type.dtype) for _ in range(self.states)]
        results, _ = scan(self.step, scores.dimshuffle(1, 0, 2), begin, go_backwards=self.backwards, return_list=True)
        states: Node = results[0]
        if not self.sequences:
            return states[-1]
        return (states[::-1] if self.backwards else states).dimshuffle(1, 0, 2)

    states = 1
    """The number of states of a step; the first is the output."""

    def step(self, given: Node, state: Node) -> Any:
        """Return the next states. given: x w + b of this step."""
        return tanh(given + dot(state, self.u))

    def part(self, x: Node, gate: int, gates: int = 1) -> Node:
        """Return the columns of `gates` gates, from number `gate` on."""
        return x[:, gate * self.n_out : (gate + gates) * self.n_out]


class GRU(Recurrent):
    """A gated recurrent unit: z, r = sigmoid(x w + h u + b); h' = z h + (1 - z) tanh(x w + r (h u) + b). Cho et al.,
    2014, with the product before the gate, as cuDNN has it. Raises RankError for an input that has not three axes:
    batch, time and numbers."""

    gates = 3

    def step(self, given: Node, state: Node) -> Any:
        kept = dot(state, self.u)
        gates = sigmoid(self.part(given, 0, 2) + self.part(kept, 0, 2))
        update, reset = self.part(gates, 0), self.part(gates, 1)
        return update * state + (1 - update) * tanh(self.part(given, 2) + reset * self.part(kept, 2))


class LSTM(Recurrent):
    """Long short-term memory: i, f, o = sigmoid(x w + h u + b); c' = f c + i tanh(x w + h u + b); h' = o tanh(c').
    Hochreiter and Schmidhuber, 1997, with Gers' forget gate, whose bias begins at `forget`. Raises RankError for
    an input that has not three axes: batch, time and numbers."""

    gates = 4
    states = 2

    def __init__(self, n_out: int, sequences: bool = False, forget: float = 1.0, **common: Any) -> None:
        super().__init__(n_out, sequences, **common)
        self.forget = forget

    def initial_b(self, shape: Any, rng: Any) -> Any:
        """Zeros, but for the forget gate."""
        values = initial.zeros(shape, rng)
        values[self.n_out : 2 * self.n_out] = self.forget
        return values

    def step(self, given: Node, state: Node, cell: Node) -> Any:  # type: ignore[override]
        scores = given + dot(state, self.u)
        into, keep, out = (self.part(sigmoid(self.part(scores, 0, 3)), gate) for gate in range(3))
        cell = keep * cell + into * tanh(self.part(scores, 3))
        return [out * tanh(cell), cell]
