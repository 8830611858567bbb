"""PyMC models compiled by graphc: functions of one flat vector, C functions, and models for nutpie.

    compiled = graphc.pymc.compile(model)
    trace = nutpie.sample(graphc.pymc.nutpie(model))

Read model.py, then sampler.py, which is imported when nutpie is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

if find_spec("pymc") is None:
    raise ImportError("graphc.pymc needs PyMC: pip install 'graphc-compiler[pymc]', or '.[pymc]' in a checkout")

from graphc.errors import ArgumentError
from graphc.pymc.model import Bound, Model, Parameter, compile

__all__ = ["Bound", "Model", "Parameter", "compile", "nutpie"]


def nutpie(
    model: Any,
    *,
    initial_points: Mapping[Any, Any] | None = None,
    jitter_rvs: Any = None,
    default_initialization_strategy: str = "support_point",
    var_names: Sequence[str] | None = None,
) -> Any:
    """Return a model for `nutpie.sample`: its log-density and its variables as C functions, without Python in the loop.

        >>> trace = nutpie.sample(graphc.pymc.nutpie(model), draws=1000)

    The arguments are those of `nutpie.compile_pymc_model`, and mean the same; `with_data` of the result gives the same
    model over other data. Raises what `compile` does, and ArgumentError where nutpie is not installed.
    """
    if find_spec("nutpie") is None:
        raise ArgumentError("nutpie is missing: pip install 'graphc-compiler[pymc]', or '.[pymc]' in a checkout")
    sampler = import_module("graphc.pymc.sampler")
    return sampler.nutpie_model(model, initial_points, jitter_rvs, default_initialization_strategy, var_names)
