"""JAX's `lax`: loops, branches, and functions of arrays under its names: `from graphc import lax`.

In: arrays, tensors, numbers, trees of them, and functions. Out: tensors, where an argument is one or a function is
traced; else arrays. `control/functional.py` has loops and branches, slices.py parts of arrays, arrays.py shapes, sums,
orders and products, elements.py functions of single elements, windows.py convolutions, solving.py derivatives of
solutions. All but the first are imported when they are first asked for.

    lax.scan(lambda total, x: (total + x, total), 0.0, np.ones(3))     (np.float64(3.0), array([0., 1., 2.]))
    lax.scan(step, 0.0, T.dvector("xs"))                               tensors
    lax.cummax(np.array([1, 3, 2]))                                    array([1, 3, 3])

A loop or branch of arrays is compiled once for the types of its arguments and for what its functions compute; a new
size, and another function that computes the same, compile nothing. The others are
interpreted, node by node, in NumPy: a single function of this kind is called too seldom to pay for compilation.

Operands broadcast and are promoted as in NumPy, where JAX's `lax` refuses them. What is not here says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any

from graphc.control import functional
from graphc.functions.function import function as compile_function
from graphc.ir.at_once import at_once
from graphc.ir.call_errors import explained
from graphc.ir.node import INPUT, SHARED, Node
from graphc.ir.walk import node_set
from graphc.startup.hooks import lazy_package
from graphc.trees import leaves, map_leaves

if TYPE_CHECKING:
    from graphc.control.functional import *  # noqa: F403
    from graphc.lax.arrays import *  # noqa: F403
    from graphc.lax.elements import *  # noqa: F403
    from graphc.lax.slices import *  # noqa: F403
    from graphc.lax.solving import *  # noqa: F403
    from graphc.lax.windows import *  # noqa: F403
    from graphc.scipy.special.composed import zeta as zeta
    from graphc.tracing import stop_gradient as stop_gradient

LAZY = {
    "arrays": """
        DotDimensionNumbers Precision approx_max_k approx_min_k argmax argmin associative_scan broadcast
        broadcast_in_dim broadcast_shapes broadcast_to_rank broadcasted_iota collapse concatenate
        convert_element_type cumlogsumexp cummax cummin cumprod cumsum dot dot_general empty expand_dims full
        full_like iota optimization_barrier reduce reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum
        reduce_xor reshape rev sort sort_key_val split squeeze stack tile top_k
        transpose unstack
    """,
    "elements": """
        RoundingMethod abs acos acosh add asin asinh atan atan2 atanh batch_matmul bessel_i0e bessel_i1e betainc
        bitwise_and bitwise_not bitwise_or bitwise_xor cbrt ceil clamp clz complex conj cos cosh digamma div eq erf
        erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag integer_pow is_finite le lgamma log log1p logistic
        lt max min mul ne neg nextafter polygamma population_count pow real reciprocal rem round rsqrt select select_n
        shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh
    """,
    "slices": """
        GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers dynamic_index_in_dim dynamic_slice
        dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim gather
        index_in_dim index_take pad scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub
        slice slice_in_dim
    """,
    "solving": "custom_linear_solve custom_root",
    "graphc.scipy.special.composed": "zeta",
    "graphc.tracing": "stop_gradient",
    "windows": """
        ConvDimensionNumbers conv conv_dimension_numbers conv_general_dilated conv_transpose
        conv_with_general_padding reduce_window
    """,
}
"""The modules of functions of arrays, and the names of each."""

DEVICES = "graphc computes on the processor of one machine, and has no axes of devices"
RANDOM = "graphc.random has generators and distributions"
INSTEAD = {
    **dict.fromkeys(
        "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute precv psend "
        "pshuffle psum psum_scatter pswapaxes pvary ragged_all_to_all with_sharding_constraint".split(),
        f"{DEVICES}; graphc.vmap has axes of elements, which are summed with jnp.sum outside of it",
    ),
    **dict.fromkeys("after_all create_token infeed outfeed platform_dependent".split(), DEVICES),
    **dict.fromkeys(("random_gamma_grad", "rng_bit_generator", "rng_uniform"), RANDOM),
    "bitcast_convert_type": "graphc has no op that reads the bits of one dtype as another",
    "composite": "call the function itself: graphc has no ops that backends may replace",
    "conv_general_dilated_local": "graphc.tensor.nnet.conv2d(..., unshared=True) has filters for each place",
    "conv_general_dilated_patches": "graphc.tensor.nnet.images2neibs has the patches of images",
    "fft": "graphc.numpy.fft has the transforms of numpy.fft",
    "igamma_grad_a": "graphc.grad of lax.igamma by its first argument is this derivative",
    "linalg": "graphc.tensor.linalg and graphc.numpy.linalg have factorisations and solvers",
    **dict.fromkeys(("ragged_dot", "ragged_dot_general"), "lax.scan over the groups of rows computes it"),
    **dict.fromkeys(
        "AccuracyMode DotAlgorithm DotAlgorithmPreset PrecisionLike Tolerance".split(),
        "graphc computes in the dtype of the operands, and has no settings of accuracy",
    ),
    "broadcast_like": "jnp.broadcast_to(x, y.shape) does the same",
    **dict.fromkeys(
        "ConvGeneralDilatedDimensionNumbers conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
        "conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple shape_as_value".split(),
        "it infers shapes for JAX itself: graphc.eval_shape gives the shape of a result",
    ),
    **dict.fromkeys(("dce_sink", "stage"), "it serves JAX's own compiler, of which graphc has no counterpart"),
    "dtype": "x.dtype is the dtype of x",
    "FftType": "graphc.numpy.fft has the transforms of numpy.fft",
    "mulhi": "graphc has no integers of 128 bits; lax.mul gives the lower 64",
    "RandomAlgorithm": RANDOM,
    **dict.fromkeys(
        ("RaggedDotDimensionNumbers", "scaled_dot"), "jnp.einsum and lax.dot_general have products of parts and scales"
    ),
    "reduce_precision": "graphc has no op that rounds to fewer bits; cast to float32 and back",
}
"""Functions of `jax.lax` that do not exist here, with the reason and what to use instead."""


def _missing(name: str) -> str:
    """Return the reason why there is no such name, where it is known."""
    if name.endswith("_p"):
        return "primitives are parts of JAX's compiler: graphc.op makes an op of a Python function"
    return INSTEAD.get(
        name, "dir(lax) lists what it has; graphc.numpy and graphc.tensor have other functions of arrays"
    )


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with values in place of tensors in its results; where these depend on variables, which
    functions among the arguments may use, as it is. Results without axes are NumPy's scalars."""

    @wraps(function)
    def compute(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        nodes = [leaf for leaf in leaves(made) if isinstance(leaf, Node)]
        if not nodes or any(node.op in (INPUT, SHARED) for node in node_set(nodes)):
            return made
        values = iter(compile_function([], nodes, mode="interpreted")())
        return map_leaves(lambda leaf: next(values)[()] if isinstance(leaf, Node) else leaf, made)

    return compute


def as_public(found: Any, package: str) -> Any:
    """Return a function as programs call it: of arrays it computes at once."""
    if not isinstance(found, FunctionType):
        return explained(found, package)
    own = vars(found)["__wrapped__"] if "explained" in vars(found) else found
    return explained(at_once(own, _interpreted(own)), package)


UNUSED = ("unroll", "_split_transpose", "batch_size")
"""Arguments of JAX's loops that say how they are carried out, which graphc decides."""
JAXS = {"body_fun": "body", "cond_fun": "cond", "init_val": "init"}
"""Parameters of JAX's loops, with graphc's names for them."""


def _compiled(name: str) -> Any:
    """Return a loop or a branch, which is compiled where it is of arrays, with JAX's arguments."""
    function = at_once(vars(getattr(functional, name))["__wrapped__"])

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {JAXS.get(key, key): value for key, value in kwargs.items() if key not in UNUSED}
            if "operand" in kwargs:
                args = (*args, kwargs.pop("operand"))
                first = ("pred", "true_fun", "false_fun") if name == "cond" else ("index", "branches")
                args = (*[kwargs.pop(each) for each in first if each in kwargs], *args)
        return function(*args, **kwargs)

    return explained(call, __name__)


if not TYPE_CHECKING:  # which know the names
    globals().update({name: _compiled(name) for name in functional.__all__})
    __getattr__, __dir__ = lazy_package(__name__, LAZY, _missing, functional.__all__, as_public)
