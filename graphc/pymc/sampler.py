"""PyMC models for nutpie.

In: a model. Out: nutpie's record of a compiled model, with functions of graphc's. nutpie calls these by their
addresses, in threads without Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from nutpie.compile_pymc import CompiledPyMCModel
from pymc.initial_point import make_initial_point_fn

from graphc.errors import ArgumentError
from graphc.functions.pointer import Pointer
from graphc.ir.node import Array
from graphc.pymc.model import Bound, Model


@dataclass(frozen=True)
class NutpieModel(CompiledPyMCModel):  # type: ignore[misc]
    """A compiled model for nutpie. source: the `Model` of graphc."""

    source: Any = None

    def with_data(self, **updates: Any) -> NutpieModel:
        """Return the model over other data: by the names of `pm.Data`, of the same dtypes and ranks."""
        known = dict(self.shared_data)
        for name, value in updates.items():
            if name not in known:
                raise KeyError(f"there are no data {name!r} in the model; there are {', '.join(known) or 'none'}")
            made = np.array(value, known[name].dtype, order="C")
            if made.ndim != known[name].ndim:
                raise ValueError(f"data {name} have {known[name].ndim} axes, not {made.ndim}")
            known[name] = made
        logp, expand = pointers(self.logp_func, self.expand_func, known)
        changed: dict[str, Any] = {"shared_data": known, "compiled_logp_func": logp, "compiled_expand_func": expand}
        return replace(self, **changed)


def pointers(density: Bound, values: Bound, data: Mapping[str, Array]) -> list[Pointer]:
    """Return the C functions of the log-density and of the variables, over these data."""
    first, second = ([data[variable.name] for variable in bound.data] for bound in (density, values))
    return [Pointer("density", density.function, first), Pointer("vector", values.function, second)]


def nutpie_model(
    model: Any,
    initial_points: Mapping[Any, Any] | None,
    jitter_rvs: Any,
    strategy: str,
    var_names: Sequence[str] | None,
) -> NutpieModel:
    compiled = Model(model, threads=1)  # chains are threads
    if strategy == "support_point" and jitter_rvs is None:
        jitter_rvs = set(model.free_RVs)
    first = make_initial_point_fn(
        model=model,
        overrides=None if initial_points is None else dict(initial_points),
        default_strategy=strategy,
        jitter_rvs=jitter_rvs,
        return_transformed=True,
    )
    own = [part.name for part in compiled.parameters]
    others = [variable.name for variable in model.unobserved_value_vars if variable.name not in own]
    if var_names is not None:
        others = [name for name in others if name in set(var_names)]
    density, values = compiled.logp_dlogp, compiled.flat_values(others)
    used = {variable.name: variable for bound in (density, values) for variable in bound.data}
    if len(used) < len({variable for bound in (density, values) for variable in bound.data}):
        raise ArgumentError("data of a model must have different names")
    data = {name: np.array(variable.get_value(borrow=True), order="C") for name, variable in used.items()}
    logp, expand = pointers(density, values, data)
    shapes = [*(part.shape for part in compiled.parameters), *compiled.shapes(others)]
    ends = np.cumsum([prod(shape) for shape in shapes], dtype=int)
    slices = [slice(int(end) - prod(shape), int(end)) for end, shape in zip(ends, shapes, strict=True)]
    names = [*own, *others]
    return NutpieModel(
        _n_dim=compiled.dimension,
        dims=model.named_vars_to_dims,
        _coords=coordinates(model, compiled),
        _shapes=dict(zip(names, shapes, strict=True)),
        compiled_logp_func=logp,
        compiled_expand_func=expand,
        initial_point_func=flat_points(compiled, first),
        shared_data=data,
        user_data=np.zeros(1, np.uintp),
        n_expanded=int(ends[-1]) if len(ends) else 0,
        shape_info=(names, slices, shapes),
        logp_func=density,
        expand_func=values,
        source=compiled,
    )


def flat_points(compiled: Model, first: Any) -> Any:
    """Return a function from a seed to an initial vector. A lock guards PyMC's own, which is not safe with threads."""
    lock = Lock()

    def point(seed: Any = None) -> Array:
        with lock:
            return compiled.flat(first(seed))

    return point


def coordinates(model: Any, compiled: Model) -> dict[str, Any]:
    """Return the coordinates of the model's dimensions, and of the elements of the vector."""
    made = {
        name: pd.RangeIndex(int(model.dim_lengths[name].eval())) if labels is None else pd.Index(labels)
        for name, labels in model.coords.items()
    }
    if "unconstrained_parameter" in made:
        raise ArgumentError("unconstrained_parameter: no dimension may have this name in a model for nutpie")
    labels = [
        f"{part.name}_{'.'.join(map(str, place))}" if place else part.name
        for part in compiled.parameters
        for place in product(*map(range, part.shape))
    ]
    return {**made, "unconstrained_parameter": pd.Index(labels)}
