"""`ravel_pytree` under the name that JAX gives its module: it stands in `graphc.tree`."""

from graphc.tree import ravel_pytree

__all__ = ["ravel_pytree"]
