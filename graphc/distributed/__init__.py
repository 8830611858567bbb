"""graphc on dask: compiled functions over blocks, sums of losses, training, samples, searches, on many workers.

In: functions of arrays, arrays and frames of dask's. Out: dask's arrays, or values. An extra: `pip install
graphc-compiler[distributed]`. Computations go to dask's client where there is one, else to threads of this process; the
numbers are the same bits. Read kernels.py (what is sent), fits.py, sampling.py.

    client = distributed.Client()                                        dask's; without it, threads
    x = da.from_array(np.load("x.npy", mmap_mode="r"), chunks=(10**5, -1))
    found = graphc.distributed.fit(loss, params, x, y)
"""

try:
    import dask.array
    import dask.dataframe
    import distributed
except ImportError as error:
    raise ImportError(
        f"graphc.distributed needs dask ({error}): "
        "pip install 'graphc-compiler[distributed]', or '.[distributed]' in a checkout"
    ) from error

from graphc.distributed.fits import Fit, Minima, State, Sweep, fit, grid, minimize, sweep, value_and_grad
from graphc.distributed.kernels import Kernel, apply_gufunc, blockwise, kernel_of, map_blocks, map_columns, reduction
from graphc.distributed.sampling import Samples, sample
from graphc.ir.call_errors import explain_all

assert dask.array and dask.dataframe and distributed  # the extra has all three
__all__ = [
    "Fit", "Kernel", "Minima", "Samples", "State", "Sweep", "apply_gufunc", "blockwise", "fit", "grid", "kernel_of",
    "map_blocks", "map_columns", "minimize", "reduction", "sample", "sweep", "value_and_grad",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


explain_all(globals())
