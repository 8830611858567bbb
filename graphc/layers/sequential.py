"""`Sequential`: a network as a chain of layers, with a cost and predictions.

In: layers, added as objects or by `add_fc`, `add_conv` and their kin; a cost, by name or as a function. Out: the nodes
of training and of prediction over one set of parameters; `predict`, compiled at its first call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Literal

import numpy as np

from graphc.errors import ArgumentError, GraphValueError
from graphc.functions.callables import Function as Compiled
from graphc.functions.function import function
from graphc.ir.node import Node
from graphc.layers.initial import Initialiser
from graphc.layers.standard import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Function,
    Layer,
    Pool,
    Source,
    activation_layer,
    initial_of,
)
from graphc.shared import Parameters, SharedVariable
from graphc.startup.record import record
from graphc.tensor import nnet
from graphc.tensor.elementary import cast, eq, gt, sigmoid, softplus, sqr
from graphc.tensor.reductions import argmax, mean, sum
from graphc.tensor.variables import tensor


@record()
class Cost:
    """The objective of a network, as functions of its `output` and a target.

    cost(output, target): the scalar to minimise. predict(output): the prediction. score(output, target): a scalar to
    report, larger for better. dtype: of the target; None for that of the network. fewer: the number of axes that the
    target has less than the output. probabilities(output): of the classes, or None.
    """

    cost: Callable[[Any, Any], Node]
    predict: Callable[[Any], Node]
    score: Callable[[Any, Any], Node]
    dtype: str | None = None
    fewer: int = 0
    probabilities: Callable[[Any], Node] | None = None


def _rightly(choose: Callable[[Any], Node], output: Any, target: Any) -> Node:
    """The accuracy: the part of the examples with a right prediction."""
    return mean(cast(eq(choose(output), target), "float32"))


def _softmax(output: Any) -> Node:
    return nnet.softmax(output, -1)


def _crossentropy(output: Any, target: Any) -> Node:
    return mean(nnet.categorical_crossentropy(_softmax(output), target))


def _class(output: Any) -> Node:
    return argmax(output, -1)


def _bernoulli(output: Any, target: Any) -> Node:
    return mean(softplus((1 - 2 * target) * output))


def _is_true(output: Any) -> Node:
    return gt(output, 0)


def _norm(output: Any, target: Any) -> Node:
    return sum(sqr(output - target)) / (2 * cast(target.shape[0], output.dtype))


def _explained(output: Any, target: Any) -> Node:
    """The coefficient of determination: the part of the target's variance that is explained."""
    return 1 - sum(sqr(output - target)) / sum(sqr(target - mean(target, 0)))


def _itself(output: Any) -> Node:
    return output


def _less(cost: Callable[[Any, Any], Node], output: Any, target: Any) -> Node:
    return -cost(output, target)


COSTS: Mapping[str, Cost] = {
    "softmax": Cost(_crossentropy, _class, partial(_rightly, _class), "int64", 1, _softmax),
    "bernoulli": Cost(_bernoulli, _is_true, partial(_rightly, _is_true), None, 0, sigmoid),
    "norm": Cost(_norm, _itself, _explained),
}
"""{name: Cost}. softmax: cross-entropy of logits (n, classes) with classes (n). bernoulli: cross-entropy of logits with
targets 0 or 1. norm: half the sum of squared errors, divided by the number of examples."""


class Sequential(Parameters):
    """A chain of layers with a cost.

    layers: the first layers. input_shape: the sizes of one example, needed unless `add_fc` comes first. cost: as
    `add_cost`. dtype: of parameters and inputs; input_dtype: of inputs, where another ("int64" before an Embedding).
    seed: of initial parameters and dropout. static: compile code for the sizes of the parameters (True) or for any.

    Raises GraphValueError for a name of a cost that is not there.

        net = Sequential(input_shape=(64,))
        net.add_fc(64, 128, activation="relu", dropout=0.2)
        net.add_fc(128, 10)
        net.add_cost("softmax")
        Trainer(net).train(x, y, epochs=10)
        net.predict(x)
    """

    def __init__(
        self,
        layers: Sequence[Layer] = (),
        input_shape: Sequence[int | None] | None = None,
        cost: str | Cost | Callable[[Any, Any], Node] | None = None,
        dtype: str = "float32",
        input_dtype: str | None = None,
        seed: int = 0,
        static: bool = True,
    ) -> None:
        self.layers: list[Layer] = []
        self.input_shape = None if input_shape is None else tuple(input_shape)
        self.dtype, self.input_dtype, self.static = dtype, input_dtype or dtype, static
        self.source = Source(seed)
        self.objective: Cost | None = None
        for layer in layers:
            self.add(layer)
        if cost is not None:
            self.add_cost(cost)

    # Building -----------------------------------------------------------------------------------------------------

    def add(self, layer: Layer) -> Sequential:
        """Append a layer; it takes the dtype and the random numbers of the network. Returns the network. Raises
        GraphValueError once the network has been used."""
        if "output" in vars(self):
            raise GraphValueError("a network that has been used takes no more layers")
        name = layer.name
        names = {other.name for other in self.layers}
        number = len(self.layers)
        layer.name = f"{name}{number}" if name in names or not name[-1:].isdigit() else name
        layer.dtype, layer.source, layer.static = self.dtype, self.source, self.static
        self.layers.append(layer)
        return self

    def add_fc(
        self,
        n_in: int | None,
        n_out: int,
        activation: str | Function | None = None,
        normalize: bool = False,
        dropout: bool | float = False,
        dropout_args: Mapping[str, Any] | None = None,
        w: Initialiser | None = None,
    ) -> Sequential:
        """Append a dense layer, then batch normalisation, the activation and dropout, where asked for.

        dropout: the probability, or True for `p` of `dropout_args` (0.5 by default). dropout_args: also `scale` as in
        Dropout, and `connect`: True drops weights in place of outputs.
        """
        p, args = _dropout(dropout, dropout_args)
        if not self.layers and self.input_shape is None and n_in is not None:
            self.input_shape = (n_in,)
        connect = bool(args.pop("connect", False))
        self.add(Dense(n_out, None, n_in, w or initial_of(activation), dropconnect=p if connect else 0.0))
        return self._after(normalize and BatchNorm(n_in=n_out), activation, -1, 0.0 if connect else p, args)

    def add_conv(
        self,
        n_in: int | None,
        n_out: int,
        size: int | Sequence[int] = 3,
        activation: str | Function | None = None,
        normalize: bool = False,
        dropout: bool | float = False,
        dropout_args: Mapping[str, Any] | None = None,
        pool: int | Sequence[int] | None = None,
        w: Initialiser | None = None,
        **how: Any,
    ) -> Sequential:
        """Append a convolution, then batch normalisation, the activation, pooling by windows of `pool`, and dropout,
        where asked for. how: further arguments of `Conv` (border, stride, channels_last, …)."""
        p, args = _dropout(dropout, dropout_args)
        conv = Conv(n_out, size, None, n_in=n_in, w=w or initial_of(activation), **how)
        axis = -1 if conv.channels_last else 1
        self.add(conv)._after(normalize and BatchNorm(axis, n_in=n_out), activation, axis, 0.0, {})
        if pool is not None:
            self.add_pool(pool, channels_last=conv.channels_last)
        return self.add(Dropout(p, **args)) if p else self

    def add_pool(self, size: int | Sequence[int] | None = 2, **how: Any) -> Sequential:
        """Append a pooling layer. how: further arguments of `Pool`."""
        return self.add(Pool(size, **how))

    def add_flatten(self) -> Sequential:
        """Append a layer that joins all axes after that of the batch."""
        return self.add(Flatten())

    def add_dropout(self, p: float = 0.5, scale: bool = True) -> Sequential:
        """Append a `Dropout` layer."""
        return self.add(Dropout(p, scale))

    def _after(self, normalize: Layer | Literal[False], activation: Any, axis: int, p: float, args: Any) -> Sequential:
        if normalize:
            self.add(normalize)
        if activation is not None:
            self.add(activation_layer(activation, axis))
        return self.add(Dropout(p, **args)) if p else self

    def add_cost(self, cost: str | Cost | Callable[[Any, Any], Node]) -> Sequential:
        """Set the objective: "softmax", "bernoulli", "norm", a `Cost`, or a function of output and target, with the
        output as the prediction. Returns the network. Raises GraphValueError for an unknown name."""
        if isinstance(cost, str):
            if cost not in COSTS:
                raise GraphValueError(f"cost {cost!r}: must be a function, or one of {', '.join(COSTS)}")
            self.objective = COSTS[cost]
        elif isinstance(cost, Cost):
            self.objective = cost
        else:
            self.objective = Cost(cost, _itself, partial(_less, cost))
        return self

    # Nodes --------------------------------------------------------------------------------------------------------

    def __call__(self, x: Any, train: bool = False) -> Node:
        """Return the output for a tensor."""
        for layer in self.layers:
            x = layer(x, train)
        return x

    @cached_property
    def input(self) -> Node:
        """The input variable of a batch of examples."""
        if self.input_shape is None:
            raise GraphValueError("the sizes of an example are not known: give input_shape, or begin with add_fc")
        sizes = self.input_shape if self.static else (None,) * len(self.input_shape)
        return tensor(self.input_dtype, (None, *sizes), "x")

    @cached_property
    def output(self) -> Node:
        """The output for prediction."""
        return self(self.input)

    @cached_property
    def trained_output(self) -> Node:
        """The output in training."""
        _ = self.output  # makes the parameters
        return self(self.input, train=True)

    @cached_property
    def target(self) -> Node:
        """The variable of the targets of a batch."""
        objective, output = self._objective(), self.output
        rank = output.ndim - objective.fewer
        sizes = [size if isinstance(size, int) else None for size in output.type.shape[:rank]]
        return tensor(objective.dtype or self.dtype, sizes, "y")

    def _objective(self) -> Cost:
        if self.objective is None:
            raise GraphValueError("the network has no cost: say what it is trained for by add_cost")
        return self.objective

    @property
    def cost(self) -> Node:
        """The cost in training."""
        return self._objective().cost(self.trained_output, self.target)

    @property
    def params(self) -> list[SharedVariable]:
        """The parameters that an optimiser updates, in the order of the layers."""
        return [param for layer in self._built() for param in layer.params]

    @property
    def state(self) -> list[SharedVariable]:
        """The shared variables that training updates without gradients."""
        return [variable for layer in self._built() for variable in layer.state]

    @property
    def updates(self) -> dict[SharedVariable, Node]:
        """The updates of `state`, in the graph of `trained_output`."""
        _ = self.trained_output
        return {variable: new for layer in self.layers for variable, new in layer.updates.items()}

    def _built(self) -> list[Layer]:
        _ = self.output
        return self.layers

    # Functions of arrays ------------------------------------------------------------------------------------------

    @cached_property
    def _predict(self) -> Compiled:
        return function([self.input], self._objective().predict(self.output), name="predict")

    @cached_property
    def _probabilities(self) -> Compiled:
        wanted = self._objective().probabilities
        if wanted is None:
            raise GraphValueError("a network with this cost has no probabilities")
        return function([self.input], wanted(self.output), name="predict_probabilities")

    def as_input(self, x: Any) -> Any:
        """Convert examples to an array of the input's dtype."""
        return np.asarray(x, self.input.type.dtype)

    def predict(self, x: Any) -> Any:
        """Return the predictions for examples, by the cost: classes (softmax), booleans (bernoulli), or the output."""
        return self._predict(self.as_input(x))

    def predict_probabilities(self, x: Any) -> Any:
        """Return the probabilities of the classes. Raises GraphValueError for a cost without probabilities."""
        return self._probabilities(self.as_input(x))

    def save(self, path: Any, values: str = "inside", targets: Sequence[str] = ()) -> None:
        """Write the network to a file: `graphc.load(path)` has `predict` and `predict_probabilities`, in any process,
        without this network's layers, and a `Trainer` trains it on. values, targets: as `Function.save`. Raises
        GraphValueError for a network without a cost, which says what is predicted.

            net.save("net.graphc")
            graphc.load("net.graphc").predict(x)
        """
        import_module("graphc.functions.saved_networks").save(self, path, values, targets)

    def export(
        self,
        path: Any,
        language: str = "c",
        part: str = "predict",
        target: str | None = None,
        blas: bool = False,
        strided: Any = (),
    ) -> list[str]:
        """Write what predicts as a C library, or as a Python module, and return the paths of the files. part: "predict"
        or "probabilities", as the methods of a loaded network. The other arguments, and errors, are those of
        `Function.export`. Raises GraphcError for another part, GraphValueError for a network without a cost.

            net.export("lib/net")                                lib/net.h, lib/libnet.so and others
            net.export("lib/net", language="python")             net.py in lib
        """
        export = import_module("graphc.functions.saved_networks").export
        written: list[str] = export(self, path, part, (language, target, blas, strided))
        return written


def _dropout(dropout: bool | float, args: Mapping[str, Any] | None) -> tuple[float, dict[str, Any]]:
    """Return the probability of a dropout, and its other arguments."""
    options = dict(args or {})
    p = float(options.pop("p", 0.5))
    unknown = options.keys() - {"scale", "connect"}
    if unknown:
        raise ArgumentError(f"dropout_args has p, scale and connect, not {', '.join(sorted(unknown))}")
    return (p if dropout is True else float(dropout)), options
