"""Layers against NumPy's definitions; initialisers; networks as the seed builds them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as T
from graphc import layers, optim, train
from graphc.errors import ArgumentError, GraphTypeError, GraphValueError, ShapeError
from graphc.layers import initial, sequential

RNG = np.random.default_rng(0)


def run(layer: layers.Layer, value: Any, train: bool = False, kind: Any = None) -> Any:
    x = kind or T.TensorType(str(value.dtype), (None, *value.shape[1:]))("x")
    f = graphc.function([x], layer(x, train=train), updates=layer.updates if train else None, mode="interpreted")
    return f(value)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("make", "into", "out", "variance"),
    [
        (initial.glorot_uniform, 1, 1, 2),
        (initial.glorot_normal, 1, 1, 2),
        (initial.he_uniform, 1, 0, 2),
        (initial.he_normal, 1, 0, 2),
        (initial.fan_in, 1, 0, 1),
    ],
)
def test_initialisers_have_their_variance(make: Any, into: int, out: int, variance: float) -> None:
    for shape, n_in, n_out in (((400, 300), 400, 300), ((60, 50, 5, 5), 1250, 1500)):
        values = make(2.0)(shape, np.random.default_rng(1))
        wanted = 4 * variance / (into * n_in + out * n_out)
        assert values.shape == shape and abs(values.mean()) < 4 * (wanted / values.size) ** 0.5
        assert values.var() == pytest.approx(wanted, rel=0.03)


def test_other_initialisers() -> None:
    for shape in ((5, 8), (8, 5), (4, 3, 2, 2)):
        matrix = initial.orthogonal(3.0)(shape, RNG).reshape(shape[0], -1)
        small = matrix @ matrix.T if len(matrix) <= matrix.shape[1] else matrix.T @ matrix
        np.testing.assert_allclose(small, 9 * np.eye(len(small)), atol=1e-12)
    assert initial.constant(2)((3,), RNG).tolist() == [2, 2, 2] and not initial.zeros((2,), RNG).any()
    assert initial.normal(0.5, 3.0)((10000,), RNG).mean() == pytest.approx(3, abs=0.05)
    assert abs(initial.uniform(-1, 1)((1000,), RNG)).max() <= 1
    with pytest.raises(GraphValueError, match="no matrix"):
        initial.orthogonal()((3,), RNG)


def test_dense_and_embedding() -> None:
    x = RNG.normal(size=(6, 4)).astype("float32")
    layer = layers.Dense(3, "relu")
    found = run(layer, x)
    w, b = (param.get_value() for param in layer.params)
    np.testing.assert_allclose(found, np.maximum(x @ w + b, 0), rtol=1e-5)
    assert w.dtype == "float32" and w.shape == (4, 3) and layer.params[0].name == "dense.w"
    np.testing.assert_allclose(run(layers.Dense(2, bias=None), RNG.normal(size=(2, 3, 4))).shape, (2, 3, 2))
    table = layers.Embedding(5, 2)
    assert (run(table, np.array([[1, 4]])) == table.w.get_value()[[[1, 4]]]).all()
    assert run(layers.Flatten(), np.zeros((2, 3, 4))).shape == (2, 12)
    assert run(layers.Activation(T.exp), np.zeros((2, 1))).tolist() == [[1], [1]]


SLOPES: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    (1, (3, 4), (4,)), (1, (2, 3, 5), (3,)), (-1, (2, 3, 5), (5,)), (None, (2, 3, 5), ()), (1, (0, 3), (3,)),
    ((1, 3), (2, 3, 5, 4), (3, 4)), ((3, 1), (2, 3, 5, 4), (4, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "shape", "own"), SLOPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_prelu(axes: Any, shape: tuple[int, ...], own: tuple[int, ...], dtype: str) -> None:
    """A slope for each place along the axes, which are of all examples and have their derivative."""
    layer = layers.PReLU(initial.uniform(-0.5, 0.5), axes, dtype=dtype, seed=3)
    value = RNG.normal(size=shape).astype(dtype)
    found = run(layer, value)
    (slope,) = layer.params
    assert slope is layer.slope and slope.name == "prelu.slope" and slope.get_value().shape == own and not layer.state
    a = slope.get_value()
    order = [] if axes is None else [axis % len(shape) for axis in np.atleast_1d(axes)]
    turned = a.transpose([order.index(axis) for axis in sorted(order)])
    wide = turned.reshape([size if axis in order else 1 for axis, size in enumerate(shape)])
    np.testing.assert_array_equal(found, np.where(value > 0, value, wide * value))
    assert found.dtype == dtype == a.dtype and (run(layer, value, train=True) == found).all()
    x, g = T.TensorType(dtype, (None, *shape[1:]))("x"), RNG.normal(size=shape).astype(dtype)
    by_slope, by_x = graphc.grad((layer(x) * g).sum(), [slope, x])
    got = graphc.function([x], [by_slope, by_x], mode="interpreted")(value)
    rest = tuple(axis for axis in range(len(shape)) if axis not in order)
    summed = np.where(value > 0, 0, value * g).sum(rest).transpose([sorted(order).index(axis) for axis in order])
    np.testing.assert_allclose(got[0], summed, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)
    np.testing.assert_allclose(got[1], np.where(value > 0, g, wide * g), rtol=1e-6)


def test_prelu_in_other_layers() -> None:
    """By its name in layers and words: its slope is among the parameters, of the network's dtype."""
    image, row = np.zeros((2, 3, 6, 6), "float32"), np.zeros((2, 5, 4), "float32")
    for layer, value, own in (
        (layers.Dense(7, "prelu"), row, (7,)),
        (layers.Conv(8, 3, "prelu"), image, (8,)),
        (layers.Conv(8, 3, "prelu", channels_last=True), image.transpose(0, 2, 3, 1), (8,)),
    ):
        run(layer, value)
        assert [param.get_value().shape for param in layer.params[2:]] == [own]
        assert layer.params[-1].name == f"{layer.name}.prelu.slope" and (layer.params[-1].get_value() == 0.25).all()
        assert len(pickle.loads(pickle.dumps(layer)).params) == 3
    net = layers.Sequential(input_shape=(3, 6, 6), dtype="float64")
    net.add_conv(3, 8, 3, "prelu", normalize=True).add_flatten().add_fc(None, 2, "prelu").add(layers.PReLU(0.1, None))
    net.add(layers.Dense(2, "prelu"))
    assert [param.name for param in net.params if "slope" in str(param.name)] == [
        "prelu2.slope", "prelu5.slope", "prelu6.slope", "dense7.prelu.slope",
    ]  # fmt: skip
    assert {param.dtype for param in net.params} == {"float64"}


def test_what_prelu_refuses() -> None:
    x = T.fmatrix("x")
    with pytest.raises(GraphTypeError, match="sizes that are known"):
        layers.PReLU()(x)
    with pytest.raises(GraphValueError, match="examples have no slopes of their own, as axis 0 of x"):
        layers.PReLU(axes=(0, 1))(x)
    with pytest.raises(ValueError, match="axis 2"):
        layers.PReLU(axes=2)(x)
    with pytest.raises(GraphValueError, match="one of linear, .*, prelu"):
        layers.Dense(3, "none such")


@pytest.mark.slow
def test_prelu_learns() -> None:
    """A slope that data were made with is found."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(256, 3)).astype("float32")
    slope = np.array([0.5, -0.3, 0.05], "float32")
    net = layers.Sequential([layers.PReLU()], input_shape=(3,), cost="norm")
    trainer = train.Trainer(net, optim.adam, 0.05, batch_size=64, seed=0)
    trainer.train(x, np.where(x > 0, x, slope * x), epochs=40)
    np.testing.assert_allclose(net.params[0].get_value(), slope, atol=0.02)


def test_dropout() -> None:
    x = np.ones((200, 50), "float32")
    found = run(layers.Dropout(0.25), x, train=True)
    assert set(np.unique(found)) == {0, np.float32(1 / 0.75)} and (found == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert (run(layers.Dropout(0.25), x) == x).all()
    assert set(np.unique(run(layers.Dropout(0.25, scale=False), x, train=True))) == {0, 1}
    assert (run(layers.Dropout(0.25, scale=False), x) == 0.75).all()
    layer = layers.Dense(50, bias=None, w=initial.constant(1), dropconnect=0.5)
    dropped = run(layer, x, train=True)
    assert (dropped[0] == dropped[1]).all() and set(dropped[0]) != {50}  # one mask for all examples
    assert (run(layer, x) == 50).all()
    with pytest.raises(GraphValueError, match="chance"):
        layers.Dropout(1.0)


@pytest.mark.parametrize("shape", [(8, 3), (4, 3, 2, 5)])
def test_batch_norm(shape: tuple[int, ...]) -> None:
    x = RNG.normal(2.0, 3.0, size=shape).astype("float32")
    layer, axes = layers.BatchNorm(), (0, *range(2, len(shape)))
    found = run(layer, x, train=True)
    wide = (1, 3) + (1,) * (len(shape) - 2)
    mean, variance, count = x.mean(axes), x.var(axes), x.size // 3
    np.testing.assert_allclose(found, (x - mean.reshape(wide)) / np.sqrt(variance + 1e-5).reshape(wide), atol=1e-5)
    np.testing.assert_allclose(layer.mean.get_value(), 0.1 * mean, rtol=1e-5)
    np.testing.assert_allclose(layer.variance.get_value(), 0.9 + 0.1 * variance * count / (count - 1), rtol=1e-5)
    layer.gamma.set_value(np.array([2, 3, 4], "float32"))
    layer.beta.set_value(np.array([-1, 0, 1], "float32"))
    running, spread = layer.mean.get_value().reshape(wide), layer.variance.get_value().reshape(wide)
    wanted = (x - running) / np.sqrt(spread + 1e-5) * np.array([2, 3, 4], "float32").reshape(wide)
    np.testing.assert_allclose(
        run(layer, x), wanted + np.array([-1, 0, 1], "float32").reshape(wide), rtol=1e-4, atol=1e-5
    )


def test_layer_norm() -> None:
    x = RNG.normal(size=(5, 7))
    found = run(layers.LayerNorm(dtype="float64"), x)
    np.testing.assert_allclose(found, (x - x.mean(1)[:, None]) / np.sqrt(x.var(1) + 1e-5)[:, None], rtol=1e-10)


def test_instance_and_group_norm() -> None:
    x = RNG.normal(1.0, 2.0, size=(3, 4, 2, 5))
    for layer, parts in ((layers.InstanceNorm(dtype="float64"), 4), (layers.GroupNorm(2, dtype="float64"), 2)):
        layer(T.TensorType("float64", (None, 4, None, None))("x"))
        layer.gamma.set_value(np.arange(1.0, 5))
        layer.beta.set_value(np.arange(4.0))
        each = x.reshape(3, parts, -1)
        wanted = (each - each.mean(2)[..., None]) / np.sqrt(each.var(2) + 1e-5)[..., None]
        wanted = wanted.reshape(x.shape) * np.arange(1.0, 5)[:, None, None] + np.arange(4.0)[:, None, None]
        np.testing.assert_allclose(run(layer, x), wanted, rtol=1e-8)
        assert [param.name for param in layer.params] == [f"{layer.name}.gamma", f"{layer.name}.beta"]


def test_recurrent_layers() -> None:
    x, n = RNG.normal(size=(3, 4, 2)), 5
    for kind in (layers.Recurrent, layers.GRU, layers.LSTM):
        layer, backwards = kind(n, sequences=True, dtype="float64"), kind(n, backwards=True, dtype="float64")
        found = run(layer, x)
        w, u, b = (param.get_value() for param in layer.params)
        np.testing.assert_allclose(u @ u.T, np.eye(n), atol=1e-12)
        state = cell = np.zeros((3, n))
        for step in range(4):
            given = x[:, step] @ w + b
            if kind is layers.Recurrent:
                state = np.tanh(given + state @ u)
            elif kind is layers.GRU:
                kept = state @ u
                z, r = (sigmoid((given + kept)[:, k : k + n]) for k in (0, n))
                state = z * state + (1 - z) * np.tanh(given[:, 2 * n :] + r * kept[:, 2 * n :])
            else:
                i, f, o = (sigmoid((given + state @ u)[:, k : k + n]) for k in (0, n, 2 * n))
                cell = f * cell + i * np.tanh((given + state @ u)[:, 3 * n :])
                state = o * np.tanh(cell)
            np.testing.assert_allclose(found[:, step], state, rtol=1e-10)
        turned = run(backwards, x[:, ::-1])
        np.testing.assert_allclose(turned, state, rtol=1e-10)
        both = run(kind(n, sequences=True, backwards=True, dtype="float64"), x[:, ::-1])
        np.testing.assert_allclose(both[:, ::-1], found, rtol=1e-10)
    assert layers.LSTM(2)(T.TensorType("float32", (None, None, 3))("x")).ndim == 2


@pytest.mark.slow
def test_a_network_as_the_seed_builds_it() -> None:
    net = layers.Sequential(seed=1)
    net.add_fc(784, 1500, "relu", normalize=True, dropout=True, dropout_args={"p": 0.2})
    net.add_fc(1500, 1000, "relu", dropout=0.5, dropout_args={"connect": True}).add_fc(1000, 500, "selu")
    net.add_fc(500, 10).add_cost("softmax")
    shapes = [param.get_value().shape for param in net.params]
    assert shapes[:4] == [(784, 1500), (1500,), (1500,), (1500,)] and shapes[-2:] == [(500, 10), (10,)]
    assert len({param.name for param in net.params}) == len(net.params) and len(net.state) == 2
    x = RNG.normal(size=(3, 784))
    probabilities = net.predict_probabilities(x)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (net.predict(x) == probabilities.argmax(1)).all() and net.predict(x).dtype == "int64"
    again = layers.Sequential(seed=1).add_fc(784, 1500, "relu", True, 0.2).add_fc(1500, 10)
    assert (again.params[0].get_value() == net.params[0].get_value()).all()


def test_costs() -> None:
    scores, classes = RNG.normal(size=(6, 4)), np.arange(6) % 4
    s, c, y = T.dmatrix("s"), T.lvector("c"), T.dmatrix("y")
    true = (RNG.random((6, 4)) < 0.5) * 1.0
    costs = sequential.COSTS
    outputs = [costs["softmax"].cost(s, c), costs["softmax"].score(s, c), costs["bernoulli"].cost(s, y)]
    outputs += [costs["bernoulli"].score(s, y), costs["norm"].cost(s, y), costs["norm"].score(s, y)]
    found = graphc.function([s, c, y], outputs, mode="interpreted")(scores, classes, true)
    p = np.exp(scores) / np.exp(scores).sum(1)[:, None]
    wanted = [-np.log(p[np.arange(6), classes]).mean(), (scores.argmax(1) == classes).mean()]
    wanted += [np.log1p(np.exp((1 - 2 * true) * scores)).mean(), ((scores > 0) == true).mean()]
    wanted += [((scores - true) ** 2).sum() / 12]
    wanted += [1 - ((scores - true) ** 2).sum() / ((true - true.mean(0)) ** 2).sum()]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    stable = graphc.function([s, c], costs["softmax"].cost(s, c), mode="interpreted")
    assert stable([[1000.0, 0.0]], [1]) == 1000


@pytest.mark.slow
def test_networks_are_copied() -> None:
    net = layers.Sequential(dtype="float64").add_fc(2, 3, "tanh", dropout=0.1).add_fc(3, 1).add_cost("norm")
    x = RNG.normal(size=(4, 2))
    wanted = net.predict(x)
    twin, other = pickle.loads(pickle.dumps(net)), copy.deepcopy(net)
    values = net.get_values()
    net.set_values([value * 0 for value in values])
    assert not net.predict(x).any()
    np.testing.assert_array_equal(twin.predict(x), wanted)
    np.testing.assert_array_equal(other.predict(x), wanted)
    with pytest.raises(GraphValueError, match="values are given"):
        net.set_values(values[1:])


def test_what_they_refuse() -> None:
    unknown = T.matrix("x")
    for build, error, message in (
        (lambda: layers.Dense(3)(unknown), GraphTypeError, "give n_in"),
        (lambda: layers.Dense(3, n_in=4)(T.TensorType("float32", (None, 5))("x")), ShapeError, "takes 4 numbers"),
        (lambda: layers.Embedding(3, 2)(unknown), GraphTypeError, "whole numbers"),
        (lambda: layers.GroupNorm(3)(T.TensorType("float32", (None, 4))("x")), ArgumentError, "no multiple of 3"),
        (lambda: layers.GRU(3)(unknown), GraphTypeError, "batch, time, numbers"),
        (lambda: layers.Activation("rulu"), GraphValueError, "one of linear, sigmoid"),
        (lambda: layers.Sequential().add_fc(2, 2, dropout=0.1, dropout_args={"q": 1}), ArgumentError, "not q"),
        (lambda: layers.Sequential().add_cost("l1"), GraphValueError, "one of softmax"),
        (lambda: layers.Sequential().add_fc(2, 2).cost, GraphValueError, "add_cost"),
        (lambda: layers.Sequential([layers.Dense(2)]).params, GraphValueError, "input_shape"),
        (
            lambda: layers.Sequential(cost="norm").add_fc(2, 2).predict_probabilities([[1, 2]]),
            GraphValueError,
            "no prob",
        ),
        (lambda: layers.Layer()(unknown), NotImplementedError, "does not say"),
    ):
        with pytest.raises(error, match=message):
            build()
    used = layers.Sequential(cost="norm").add_fc(2, 2)
    assert len(used.params) == 2
    with pytest.raises(GraphValueError, match="no more layers"):
        used.add_flatten()


def correlated(x: Any, w: Any, pads: int, stride: int) -> Any:
    """The definition, of images (batch, channels, rows, columns)."""
    x = np.pad(x, ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    rows, columns = ((size - k) // stride + 1 for size, k in zip(x.shape[2:], w.shape[2:], strict=True))
    found = np.zeros((len(x), len(w), rows, columns))
    for i in range(rows):
        for j in range(columns):
            part = x[:, :, i * stride :, j * stride :][:, :, : w.shape[2], : w.shape[3]]
            found[:, :, i, j] = np.einsum("bcij,ocij->bo", part, w)
    return found


def test_convolution() -> None:
    x = RNG.normal(size=(2, 4, 7, 6))
    for border, pads, stride in (("valid", 0, 1), ("same", 1, 1), (2, 2, 2)):
        layer = layers.Conv(6, 3, "relu", border, stride, dtype="float64", bias=initial.normal(1.0))
        wanted = correlated(x, np.zeros((6, 4, 3, 3)), pads, stride).shape
        found = run(layer, x)
        w, b = (param.get_value() for param in layer.params)
        assert found.shape == wanted
        expected = np.maximum(correlated(x, w, pads, stride) + b[:, None, None], 0)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        last = layers.Conv(6, 3, "relu", border, stride, channels_last=True, dtype="float64", bias=initial.normal(1.0))
        turned = run(last, x.transpose(0, 2, 3, 1))
        np.testing.assert_allclose(turned.transpose(0, 3, 1, 2), found, rtol=1e-9, atol=1e-12)
    depthwise = layers.Conv(4, 3, groups=4, bias=None, dtype="float64")
    found = run(depthwise, x)
    (w,) = (param.get_value() for param in depthwise.params)
    assert w.shape == (4, 1, 3, 3)
    np.testing.assert_allclose(found[:, 2:3], correlated(x[:, 2:3], w[2:3], 0, 1), rtol=1e-9, atol=1e-12)
    assert run(layers.Conv(2, (3,)), x[:, :, 0]).shape == (2, 2, 4)
    with pytest.raises(GraphTypeError, match="takes 4 axes"):
        layers.Conv(2)(T.tensor3())
    with pytest.raises(GraphValueError, match="3 groups of 4 channels"):
        run(layers.Conv(6, groups=3), x)
    with pytest.raises(IndexError, match="batchnorm of x .*: axis 7 is out of bounds"):
        layers.BatchNorm(axis=7)(T.fmatrix("x"))
    with pytest.raises(GraphValueError, match="there are 2 axes"):
        layers.Conv(6, 3, stride=(1, 2, 3))


def test_pooling() -> None:
    x = RNG.normal(size=(2, 3, 6, 5))
    windows = x[:, :, :, :4].reshape(2, 3, 3, 2, 2, 2)
    np.testing.assert_array_equal(run(layers.Pool(), x), windows.max((3, 5)))
    np.testing.assert_allclose(run(layers.Pool(2, mode="average"), x), windows.mean((3, 5)))
    last = run(layers.Pool(2, channels_last=True), x.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(last.transpose(0, 3, 1, 2), windows.max((3, 5)))
    assert run(layers.Pool(3, stride=1, ignore_border=False), x).shape[2:] == (4, 3)
    np.testing.assert_array_equal(run(layers.Pool(None), x), x.max((2, 3)))
    np.testing.assert_allclose(run(layers.Pool(None, mode="average", channels_last=True), x), x.mean((1, 2)))
    with pytest.raises(GraphTypeError, match="takes 4 axes"):
        run(layers.Pool(), x[0])


def test_a_network_of_convolutions() -> None:
    net = layers.Sequential(input_shape=(8, 8, 1), seed=0)
    net.add_conv(1, 4, 3, "relu", normalize=True, border="same", pool=2, channels_last=True)
    net.add_conv(4, 6, 3, "tanh", dropout=0.1, channels_last=True).add_pool(None, channels_last=True)
    net.add_fc(6, 3).add_cost("softmax")
    shapes = [param.get_value().shape for param in net.params]
    assert shapes == [(4, 1, 3, 3), (4,), (4,), (4,), (6, 4, 3, 3), (6,), (6, 3), (3,)]
    assert net.output.type.shape[1] == 3 and len(net.updates) == 2
    gradients = graphc.grad(net.cost, net.params)
    f = graphc.function([net.input, net.target], [net.cost, *gradients], updates=net.updates, mode="interpreted")
    found = f(RNG.normal(size=(5, 8, 8, 1)).astype("float32"), [0, 1, 2, 0, 1])
    assert np.isfinite(found[0]) and all(np.isfinite(each).all() for each in found[1:])
