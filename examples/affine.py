"""An affine transformation (Sabinasz, Deep learning from scratch I) through sessions, as TensorSlow has them."""

import graphc.session as ts

ts.Graph().as_default()

A = ts.Variable([[1, 0], [0, -1]])
b = ts.Variable([1, 1])
x = ts.placeholder()
y = ts.matmul(A, x)
z = ts.add(y, b)

session = ts.Session()
output = session.run(z, {x: [1, 2]})
print(output)
assert str(output) == "[ 2 -1]"

print("y takes", y.input_nodes, "and is taken by", y.consumers)
assert session.run({"y": y, "b": b}, {x: [3, 4]})["y"].tolist() == [3, -4]
