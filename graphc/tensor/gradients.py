"""What Theano's `tensor` has of its `gradient`: checks of derivatives.

In: as in `graphc.gradient`. Out: the same functions.
"""

from graphc.gradient import grad_undefined, numeric_grad, verify_grad

__all__ = ["grad_undefined", "numeric_grad", "verify_grad"]
