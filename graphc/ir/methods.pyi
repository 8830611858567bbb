"""The methods of tensors, from `METHODS` and `FUNCTIONS` (node.py).

Written from the tables by `GRAPHC_UPDATE=1 pytest tests/test_stubs.py`, for editors and type checkers alone.
"""

from collections.abc import Mapping
from typing import Any

from graphc.ir.node import Array, Node

class Methods:
    """Methods of tensors."""

    def all(self, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Node:
        """True where all elements along `axis`, of those that `where` marks, are not 0; True of no elements."""

    def any(self, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Node:
        """True where an element along `axis`, of those that `where` marks, is not 0; False of no elements."""

    def arccos(self, /) -> Node:
        """Inverse cosine."""

    def arccosh(self, /) -> Node:
        """Inverse hyperbolic cosine."""

    def arcsin(self, /) -> Node:
        """Inverse sine."""

    def arcsinh(self, /) -> Node:
        """Inverse hyperbolic sine."""

    def arctan(self, /) -> Node:
        """Inverse tangent."""

    def arctanh(self, /) -> Node:
        """Inverse hyperbolic tangent."""

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Node:
        """The int64 position of the first maximum (or first NaN) along `axis`, or in C order over all or several axes."""

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Node:
        """The int64 position of the first minimum (or first NaN) along `axis`, or in C order over all or several axes."""

    def argpartition(self, kth: Any, axis: int | None = -1, kind: str | None = None, order: None = None) -> Node:
        """The indices that `partition` puts in order: `x[argpartition(x, kth)]` is `partition(x, kth)` of a vector."""

    def argsort(self, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
        """The places of the elements along `axis` in rising order, int64; equal elements stay in order, NaN comes last."""

    def astype(self, dtype: Any) -> Node:
        """`x` converted to `dtype` as NumPy's astype does; "floatX" is `options.floatX`."""

    def ceil(self, /) -> Node:
        """Rounded up."""

    def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Node:
        """For each element of the integer array `a` the element of `choices[a]` at that place; all arrays broadcast."""

    def clip(self, min: Any = None, max: Any = None) -> Node:
        """`x` held between `min` and `max`, either of which may be None; `max` wins where they cross. For integers a"""

    def compress(self, condition: Any, axis: int | None = None) -> Node:
        """The slices of `x` along `axis` (elements of the flattened `x`) for which the vector `condition` is not 0."""

    def conj(self) -> Node:
        """The complex conjugate: of real numbers themselves, of bools as int8. Raises GraphTypeError for what is no array"""

    def conjugate(self) -> Node:
        """The complex conjugate: of real numbers themselves, of bools as int8. Raises GraphTypeError for what is no array"""

    def copy(self, name: str | None = None) -> Node:
        """A value equal to `x` that has this name. Without one it is `x` itself, as nodes never change; of an input or a"""

    def cos(self, /) -> Node:
        """Cosine."""

    def cosh(self, /) -> Node:
        """Hyperbolic cosine."""

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The products of the first 1, 2, … elements along `axis`, or of all elements in C order; dtypes as of `cumsum`."""

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Node:
        """The sums of the first 1, 2, … elements along `axis`, or of all elements in C order."""

    def deg2rad(self, /) -> Node:
        """Degrees to radians."""

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
        """The elements x[i, i + offset] of two axes, as the last axis of the result."""

    def dimshuffle(self, *pattern: Any) -> Node:
        """The axes of `x` in the order of `pattern`; 'x' makes a new axis of size 1; an axis left out must have size 1."""

    def dot(self, b: Any) -> Node:
        """NumPy's dot: a product with a scalar, or the sum of products over the last axis of `a`, the last but one of `b`."""

    def eval(self, inputs_to_values: Mapping[Node, Any] | None = None, mode: str | None = None) -> Array:
        """Return the value of a node for values of the inputs it needs: make a function, call it once and drop it."""

    def exp(self, /) -> Node:
        """e**x."""

    def exp2(self, /) -> Node:
        """2**x."""

    def expm1(self, /) -> Node:
        """e**x - 1, exact near 0."""

    def fill(self, value: Any) -> Node:
        """`value` in the shape to which `x` and it broadcast, in the value's dtype (Theano's)."""

    def flatten(self, ndim: Any = 1, *, outdim: int | None = None, order: str = "C") -> Node:
        """`x` with its trailing axes made one, so that `ndim` axes are left (Theano's flatten; `ndim=1` is NumPy's)."""

    def floor(self, /) -> Node:
        """Rounded down."""

    def get_scalar_constant_value(
        self, elemwise: bool = True, only_process_constants: bool = False, max_recur: int = 10
    ) -> Array:
        """The number that a tensor is known to be, or to hold everywhere, as an array of no axes."""

    def inc(
        self, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False, set_instead_of_inc: bool = False
    ) -> Node:
        """The array of which `x` is a part, with `y` added to that part; where indices repeat, all are added."""

    def item(self, *place: Any) -> Node:
        """The only element of `x`, a scalar, and a ShapeError where there are more; with a place, in C order or by an index"""

    def log(self, /) -> Node:
        """Natural logarithm."""

    def log10(self, /) -> Node:
        """Logarithm to base 10."""

    def log1p(self, /) -> Node:
        """log(1 + x), exact near 0."""

    def log2(self, /) -> Node:
        """Logarithm to base 2."""

    def max(self, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
        """The maximum over `axis`, NaN where an element is; of no elements `initial`, or an error at the call."""

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        acc_dtype: Any = None,
        *,
        op: bool = False,
        where: Any = True,
    ) -> Node:
        """The arithmetic mean over `axis` of the elements that `where` marks, NaN where there is nothing."""

    def min(self, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Node:
        """The minimum over `axis`, NaN where an element is. Arguments are those of `max`. Raises the errors of `max`."""

    def nonzero(self, return_matrix: bool = False) -> Any:
        """The positions of the elements that are not 0 in C order, one int64 vector for each axis."""

    def nonzero_values(self) -> Node:
        """The elements of `x` that are not 0, in C order (Theano's)."""

    def norm(self, ord: Any = None, axis: Any = None, keepdims: bool = False, *, L: Any = None) -> Node:
        """The vector norm over `axis`, of all elements by default: the `ord`-th root of the sum of |x|**ord; None is 2."""

    def ones_like(self, dtype: Any = None) -> Node:
        """Ones in the shape, and unless given the dtype, of `x`."""

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        acc_dtype: Any = None,
        *,
        no_zeros_in_input: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The product over `axis`, 1 where there is nothing; times `initial`, of the elements that `where` marks."""

    def ptp(self, axis: Any = None, keepdims: bool = False) -> Node:
        """The maximum less the minimum over `axis`."""

    def rad2deg(self, /) -> Node:
        """Radians to degrees."""

    def ravel(self, order: str = "C") -> Node:
        """`x` as a vector; order: as of `reshape`."""

    def repeat(self, repeats: Any, axis: int | None = None) -> Node:
        """Every element of `x` (slice along `axis`) `repeats` times: a number, a scalar, or a vector with one for each."""

    def reshape(
        self, *sizes: Any, ndim: int | None = None, newshape: Any = None, shape: Any = None, order: str = "C"
    ) -> Node:
        """The elements of `x` as an array of another shape: `reshape(x, (2, 3))` or `x.reshape(2, 3)`."""

    def round(self, decimals: int | str | None = 0, mode: str | None = None) -> Node:
        """`x` to the nearest multiple of 10**-decimals, halves to even; integers stay what they are for decimals >= 0."""

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Node:
        """The places at which the elements of `v` would be put into the sorted vector `x`, int64: before equal elements or,"""

    def set(self, y: Any, inplace: bool = False, tolerate_inplace_aliasing: bool = False) -> Node:
        """The array of which `x` is a part, with that part replaced by `y`: `set_subtensor(a[1:3], y)`."""

    def sigmoid(self, /) -> Node:
        """1 / (1 + e**-x)."""

    def sin(self, /) -> Node:
        """Sine."""

    def sinh(self, /) -> Node:
        """Hyperbolic sine."""

    def sort(self, axis: Any = -1, kind: str | None = None, order: None = None) -> Node:
        """The elements along `axis` in rising order, of all axes where it is None; NaN comes last. `kind` is NumPy's, and"""

    def sqrt(self, /) -> Node:
        """Square root."""

    def squeeze(self, axis: Any = None) -> Node:
        """`x` without axes of size 1: all whose size is known to be 1, or those named, which must be."""

    def std(
        self,
        axis: Any = None,
        ddof: int = 0,
        keepdims: bool = False,
        corrected: bool = False,
        dtype: Any = None,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Node:
        """The square root of `var`, whose arguments and errors are the same."""

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        acc_dtype: Any = None,
        *,
        initial: Any = None,
        where: Any = True,
    ) -> Node:
        """The sum over `axis`, 0 where there is nothing; with `initial` added, of the elements that `where` marks."""

    def swapaxes(self, axis1: int, axis2: int) -> Node:
        """Two axes exchanged."""

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Node:
        """The elements of `x` at integer `indices` along `axis`, or of all its elements where that is None."""

    def tan(self, /) -> Node:
        """Tangent."""

    def tanh(self, /) -> Node:
        """Hyperbolic tangent."""

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
        """The sum of a diagonal, in the dtype of a sum unless `dtype` is given."""

    def transfer(self, target: str) -> Node:
        """`var`: there is one kind of memory (Theano's)."""

    def transpose(self, axes: Any = None, *more: Any) -> Node:
        """The axes of `x` reversed, or in the order of `axes`, a sequence or several numbers."""

    def trunc(self, /) -> Node:
        """Rounded to zero."""

    def var(
        self,
        axis: Any = None,
        ddof: int = 0,
        keepdims: bool = False,
        corrected: bool = False,
        dtype: Any = None,
        *,
        where: Any = True,
        mean: Any = None,
    ) -> Node:
        """The mean squared deviation from the mean over `axis`, of the elements that `where` marks."""

    def zeros_like(self, dtype: Any = None) -> Node:
        """Zeros in the shape, and unless given the dtype, of `x`."""
