"""A textbook's network (Koehn, Neural Machine Translation, chapter 3) in Theano's words: only the imports differ."""

# ruff: noqa: ICN001, N816 - the names are the book's

import numpy

import graphc as theano
import graphc.tensor as T

x = T.dmatrix()
W = theano.shared(value=numpy.array([[3.0, 2.0], [4.0, 3.0]]))
b = theano.shared(value=numpy.array([-2.0, -4.0]))
h = T.nnet.sigmoid(T.dot(x, W) + b)
h_function = theano.function([x], h)
print("hidden values of (1, 0):", h_function([[1, 0]]))
numpy.testing.assert_allclose(h_function([[1, 0]]), [[0.73105858, 0.11920292]], rtol=1e-7)

W2 = theano.shared(value=numpy.array([5.0, -5.0]))
b2 = theano.shared(-2.0)
y_pred = T.nnet.sigmoid(T.dot(h, W2) + b2)
predict = theano.function([x], y_pred)
print("prediction for (1, 0):  ", predict([[1, 0]]))
numpy.testing.assert_allclose(predict([[1, 0]]), [0.7425526], rtol=1e-7)

y = T.dvector()
l2 = (y - y_pred) ** 2
cost = l2.mean()
gW, gb, gW2, gb2 = T.grad(cost, [W, b, W2, b2])
train = theano.function(
    inputs=[x, y],
    outputs=[y_pred, cost],
    updates=((W, W - 0.1 * gW), (b, b - 0.1 * gb), (W2, W2 - 0.1 * gW2), (b2, b2 - 0.1 * gb2)),
)
gradients = theano.function([x, y], [gW, gb, gW2, gb2])

DATA_X = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]])
DATA_Y = numpy.array([0, 1, 1, 0])
numpy.testing.assert_allclose(predict(DATA_X), [0.18333462, 0.7425526, 0.7425526, 0.33430961], rtol=1e-7)
found = gradients(DATA_X, DATA_Y)
numpy.testing.assert_allclose(found[0], [[-0.02295449, -0.02365122], [-0.01168182, -0.01237856]], atol=5e-9)
numpy.testing.assert_allclose(found[1], [-0.0286678, -0.00067228], atol=5e-9)
numpy.testing.assert_allclose(found[2], [-0.00107755, 0.01789064], atol=5e-9)
numpy.testing.assert_allclose(found[3], 0.0017086917164515, rtol=1e-13)

for predictions, loss in [
    ([0.18333462, 0.7425526, 0.7425526, 0.33430961], 0.06948320612438118),
    ([0.18353091, 0.74260499, 0.74321824, 0.33324929], 0.06923193686092949),
    ([0.1837272, 0.74266493, 0.74387966, 0.33220987], 0.06898451158189756),
]:
    found = train(DATA_X, DATA_Y)
    print("a training step:        ", *found)
    numpy.testing.assert_allclose(found[0], predictions, atol=5e-9)
    numpy.testing.assert_allclose(found[1], loss, rtol=1e-12)

for _ in range(20000):
    found = train(DATA_X, DATA_Y)
print("after 20,000 more:      ", *found)
assert found[1] < 0.002 and (found[0].round() == DATA_Y).all()
