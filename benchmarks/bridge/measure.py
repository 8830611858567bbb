"""One figure of a model, in a process of its own: `python -m benchmarks.bridge.measure density graphc radon`.

In: density or sample, graphc or pytensor, a model. Out: a line of JSON: seconds from the model, which is built, to its
first log-density with gradient (`first`), of a later call (`call`), and the density there; or to nutpie's trace of 4
chains of 1000 and 1000 draws (`sample`), and the mean and deviation of the first parameter.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from time import perf_counter
from timeit import repeat
from typing import Any

import numpy as np
import pymc

from benchmarks.bridge.models import MODELS

if sys.argv[2] == "graphc":
    import graphc.pymc

CALLS, ROUNDS = 500, 7


def density(backend: str, model: Any) -> dict[str, float]:
    start = perf_counter()
    if backend == "graphc":
        compiled = graphc.pymc.compile(model)
        call, q = compiled.logp_dlogp, np.full(compiled.dimension, 0.1)
    else:
        with model:
            call = model.logp_dlogp_function(ravel_inputs=True)
        call.set_extra_values({})
        call._pytensor_function.trust_input = True
        q = np.full(sum(int(np.prod(variable.type.shape)) for variable in model.continuous_value_vars), 0.1)
    value, _ = call(q)
    first = perf_counter() - start
    return {
        "first": first,
        "call": min(repeat(lambda: call(q), number=CALLS, repeat=ROUNDS)) / CALLS,
        "value": float(value),
    }


def sample(backend: str, model: Any) -> dict[str, float]:
    nutpie = import_module("nutpie")  # a density is measured without it
    start = perf_counter()
    compiled = graphc.pymc.nutpie(model) if backend == "graphc" else nutpie.compile_pymc_model(model)
    compiling = perf_counter() - start
    trace = nutpie.sample(compiled, draws=1000, tune=1000, chains=4, seed=1, progress_bar=False)
    seconds = perf_counter() - start
    values = trace.posterior[model.free_RVs[0].name].values
    return {"sample": seconds, "compile": compiling, "mean": float(values.mean()), "deviation": float(values.std())}


def main() -> None:
    what, backend, name = sys.argv[1:]
    warnings.simplefilter("ignore")
    with pymc.Model() as model:
        MODELS[name]()
    print(json.dumps({"density": density, "sample": sample}[what](backend, model)))


if __name__ == "__main__":
    main()
