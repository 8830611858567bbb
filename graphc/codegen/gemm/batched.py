"""Batches of matrix products: one product where it can be, else product by product, shared by threads.

In: the suffix of a dtype. Out: gc_batched_gemm_<t> (api.py) in LLVM IR, which calls gc_gemm_<t> and
`share` (context.py).

Matrices are shared out where each is so small that its product runs on one thread, and all together are worth several;
a larger one is itself shared out. A product is the same whoever computes it, and so are the results.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from graphc.codegen.gemm.context import SETTING, Words, share
from graphc.codegen.gemm.microkernel import ARITHMETIC, WORDS
from graphc.codegen.gemm.prototypes import ARGUMENTS
from graphc.codegen.llvm.builder import Code
from graphc.codegen.llvm.functions import Function, external
from graphc.codegen.llvm.typed import F64, I64, NoAlias, Ptr
from graphc.codegen.threads.chunking import LEAST_WORK

UNIT = {"f64": 0.3, "f32": 0.15, "i64": 2.0, "i32": 0.5}
"""The cost of a multiplication and an addition of a product, in units of work (threads/chunking.py)."""

BATCHED = ARGUMENTS["batched_gemm"].split()[1:]
"""The arguments behind the count, which threads find in a record, a word each."""


def batch(suffix: str, largest: int) -> Function[..., I64]:
    """gc_batched_gemm_<t>. largest: multiplications of a matrix from which on it is shared out itself."""
    element: Any = ARITHMETIC[suffix].kind
    kinds = {"alpha": element, "beta": element} | dict.fromkeys("abc", NoAlias)
    params: dict[str, Any] = {name: kinds.get(name, I64) for name in BATCHED}
    gemm: Function[..., I64] = external(f"gc_gemm_{suffix}", I64, *(params[name] for name in WORDS))
    part: dict[str, Any] = {"context": Ptr, "begin": I64, "end": I64}
    range_ = Function(
        f"batch_range_{suffix}", None, part, partial(_write_range, gemm, params), "noinline optsize", is_internal=True
    )
    write = partial(_write_batch, gemm, range_, UNIT[suffix], largest)
    return Function(f"gc_batched_gemm_{suffix}", I64, {"count": I64, **params}, write, "noinline optsize")


def _write_range(
    gemm: Function[..., I64], params: dict[str, Any], code: Code, context: Ptr, begin: I64, end: I64
) -> None:
    """The products from begin to end of a batch."""
    words = Words(params).read(context)
    element = params["alpha"]
    with code.count(begin, end) as number:
        here = {name: words[name].at(number * words[f"{name}_batch"], element) for name in "abc"}
        gemm(code, *(here.get(name, words[name]) for name in WORDS))


def _write_batch(
    gemm: Function[..., I64],
    range_: Function[..., None],
    unit: float,
    largest: int,
    code: Code,
    count: I64,
    *values: Any,
) -> I64:
    word = dict(zip(BATCHED, values, strict=True))
    # Rows of a and c that follow each other through the batch, times one b, are a single product.
    follow = [word[f"{name}_batch"] == word["m"] * word[f"{name}_row"] for name in "ac"]
    with code.when(follow[0] & follow[1] & (word["b_batch"] == 0)):
        joined = {**word, "m": count * word["m"]}
        code.ret(gemm(code, *(joined[name] for name in WORDS)))
    context = Words({name: type(value) for name, value in word.items()}).write(code, word)
    m, n, k, products = (number.to(F64) for number in (word["m"], word["n"], word["k"], count))
    each = m * n * k
    each_work = each * unit
    with code.when(each < float(largest)):
        exact = SETTING(code).at(LEAST_WORK, I64).load(I64).to(F64) / each_work  # products that are worth a claim
        few = (exact < products).choose(exact, products).to(I64)
        size = (few > 1).choose(few, 1)
        share(code, range_.pointer(code), context, count, size, each_work * products)
        code.ret(I64.of(0))
    range_(code, context, I64.of(0), count)
    return I64.of(0)
