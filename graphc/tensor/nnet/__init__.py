"""Functions of neural networks: Theano's nnet, and the activations that came after it.

In: tensors of scores, probabilities and classes. Out: nodes. `softmax` and `logsoftmax` take a vector for a row, as
Theano's do; those of `graphc.tensor` keep its rank, as SciPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.call_errors import explained
from graphc.startup.hooks import lazily, names_of
from graphc.tensor.creation import one_hot as one_hot
from graphc.tensor.elementary import sigmoid as sigmoid, softplus as softplus
from graphc.tensor.reductions import logsumexp as logsumexp

LAZY = {
    "activations": """
        celu elu gelu glu hard_sigmoid hard_tanh leaky_relu log_sigmoid mish prelu relu relu6 selu sigmoid_inplace
        silu softsign squareplus swish ultra_fast_sigmoid ultra_fast_sigmoid_inplace
    """,
    "abstract_conv": """
        assert_conv_shape assert_shape border_mode_to_pad causal_conv1d check_conv_gradinputs_shape
        conv2d_grad_wrt_inputs conv2d_grad_wrt_weights conv3d conv3d_grad_wrt_inputs conv3d_grad_wrt_weights
        get_conv_gradinputs_shape get_conv_gradinputs_shape_1axis get_conv_gradweights_shape
        get_conv_gradweights_shape_1axis get_conv_output_shape get_conv_shape_1axis separable_conv2d
        separable_conv3d
    """,
    "sliding": """
        bilinear_kernel_1D bilinear_kernel_2D bilinear_upsampling convolution frac_bilinear_upsampling
        transposed_convolution
    """,
    "images": "abstract_conv2d conv2d conv2d_transpose images2neibs neibs2images",
    "losses": """
        binary_crossentropy categorical_crossentropy confusion_matrix crossentropy_categorical_1hot
        crossentropy_categorical_1hot_grad
        prepend_0_to_each_row prepend_1_to_each_row prepend_scalar_to_each_row sigmoid_binary_crossentropy
        to_one_hot
    """,
    "normalization": """
        batch_normalization batch_normalization_test batch_normalization_train drop_connect dropout embedding
        group_norm instance_norm layer_norm local_response_normalization normalize rms_norm
        scaled_dot_product_attention standardize
    """,
    "ctc": "",
    "scores": """
        crossentropy_softmax_1hot crossentropy_softmax_1hot_with_bias crossentropy_softmax_1hot_with_bias_dx
        crossentropy_softmax_argmax_1hot_with_bias crossentropy_softmax_max_and_argmax_1hot
        crossentropy_softmax_max_and_argmax_1hot_with_bias h_softmax softmax_with_bias sparse_block_dot
        sparse_block_gemv sparse_block_outer log_softmax logsoftmax logsoftmax_op softmax softmax_graph softmax_op
    """,
    "conv": "",
    "blocksparse": "",
    "bn": "",
    "nnet": "",
    "sigm": "",
}
"""The modules of this package and the names of each: imported when one is asked for. `blocksparse`, `bn`,
`conv`, `nnet` and `sigm` are Theano's paths of the same functions."""

__all__ = ["logsumexp", "one_hot", "sigmoid", "softplus", *names_of(LAZY)]  # noqa: PLE0604


if TYPE_CHECKING:
    from graphc.tensor.nnet import normalization as bn, scores as blocksparse  # noqa: F401 - Theano's paths of these
    from graphc.tensor.nnet.abstract_conv import *  # noqa: F403 - the same
    from graphc.tensor.nnet.activations import *  # noqa: F403 - it says in its __all__ what it offers
    from graphc.tensor.nnet.images import *  # noqa: F403 - the same
    from graphc.tensor.nnet.losses import *  # noqa: F403 - the same
    from graphc.tensor.nnet.normalization import *  # noqa: F403 - the same
    from graphc.tensor.nnet.scores import *  # noqa: F403 - the same
    from graphc.tensor.nnet.sliding import *  # noqa: F403 - the same
else:
    _OWN = {name: globals().pop(name) for name in ("logsumexp", "one_hot", "sigmoid", "softplus")}
    _find = lazily("graphc.tensor.nnet", LAZY, public=explained)

    def __getattr__(name: str) -> Any:
        if name in _OWN:
            found = globals()[name] = explained(_OWN[name], "graphc.tensor.nnet")
            return found
        return _find(name)


def __dir__() -> list[str]:
    return __all__
