"""Theano's paths that are no files here: the modules whose names they have, or why there is no such module.

In: a path below `theano`. Out: modules of graphc, or the sentence that an import is answered with; the documentation is
written from the same tables.
"""

from __future__ import annotations

PATHS = {
    "compat": "gof.python",
    "compat.python2x": "gof.python",
    "compile.function": "function compile",
    "compile.monitormode": "printing.monitormode",
    "d3viz": "printing",
    "d3viz.d3viz": "printing",
    "gof.opt": "gof.optdb",
    "gof.utils": "gof",
    "gpuarray": "gof.tried",
    "gpuarray.dnn": "gof.tried",
    "misc": "",
    "misc.pkl_utils": "gof.saved",
    "misc.safe_asarray": "gof.tensor_basic",
    "sandbox": "",
    "sandbox.blocksparse": "tensor.nnet.blocksparse",
    "sandbox.cuda": "gof.tried",
    "sandbox.cuda.dnn": "gof.tried",
    "sandbox.cuda.rng_curand": "random.streams gof.synonyms",
    "sandbox.linalg": "gof.tried tensor.linalg.nlinalg tensor.linalg.slinalg",
    "sandbox.linalg.ops": "gof.tried tensor.linalg.nlinalg tensor.linalg.slinalg",
    "sandbox.multinomial": "random.categories",
    "sandbox.neighbours": "tensor.nnet.neighbours",
    "sandbox.rng_mrg": "random.streams gof.synonyms",
    "sandbox.softsign": "tensor.nnet",
    "sandbox.solve": "tensor.linalg.slinalg",
    "scalar.basic_scipy": "scalar",
    "scalar.sharedvar": "shared gof.synonyms",
    "scan_module": "control.scan",
    "scan_module.scan": "control.scan",
    "scan_module.scan_op": "gof.opclasses",
    "scan_module.scan_utils": "control.scan gof.graph gof.replacing",
    "scan_module.scan_views": "control.scan",
    "sparse.basic": "sparse",
    "sparse.sharedvar": "sparse gof.synonyms",
    "sparse.type": "sparse",
    "tensor.basic": "gof.tensor_basic",
    "tensor.blas": "gof.opclasses tensor",
    "tensor.extra_ops": "tensor tensor.nnet gof.synonyms",
    "tensor.fft": "gof.fft",
    "tensor.inplace": "tensor tensor.nnet",
    "tensor.nlinalg": "tensor.linalg.nlinalg",
    "tensor.nnet.conv3d2d": "tensor.nnet.films",
    "tensor.nnet.corr": "gof.opclasses",
    "tensor.nnet.corr3d": "gof.opclasses",
    "tensor.nnet.nnet": "tensor.nnet",
    "tensor.nnet.sigm": "tensor.nnet",
    "tensor.opt": "tensor.assertion gof.opclasses gof.optdb gof.shapes",
    "tensor.raw_random": "random.raw",
    "tensor.shared_randomstreams": "random.streams",
    "tensor.sharedvar": "shared gof.synonyms",
    "tensor.slinalg": "tensor.linalg.slinalg",
    "tensor.sort": "tensor.order gof.opclasses",
    "tensor.subtensor": "tensor",
    "tensor.type": "tensor",
    "tensor.type_other": "tensor",
    "tensor.utils": "gof.shapes",
    "tensor.var": "tensor",
    "tensor.xlogx": "tensor",
}
"""Paths, and the modules that are searched for their names."""

REASONS = (
    ("there are no GPUs: functions run on the CPU", "gpuarray"),
    (
        "Theano's rewriting has no counterpart: graphc.rewrite has its own rules, and Mode.excluding switches them off",
        """compile.sandbox gof.destroyhandler gof.toolbox gof.unify scan_module.scan_opt sparse.opt tensor.nnet.opt
        tensor.opt_uncanonicalize tensor.elemwise_cgen tensor.inc_code""",
    ),
    (
        "there is no C code and no linker: perform, graphc.op and graphc.op(native=True) make ops",
        """gof.callcache gof.cc gof.cmodule gof.cutils gof.lazylinker_c gof.link gof.params_type gof.sched gof.vm
        scan_module.scan_perform_ext sparse.utils tensor.blas_c tensor.blas_headers tensor.blas_scipy""",
    ),
    ("compiled code is kept by graphc.cache", "gof.compiledir gof.compilelock"),
    ("graphc.function(profile=True) and f.profile count and time calls", "compile.profiling"),
    ("graphc.printing.d3viz draws pages of its own", "d3viz.formatting"),
    ("inputs and outputs of functions may be lists of tensors, at any depth; loops are graphc.scan's", "typed_list"),
    ("graphc.scan(checkpoint=...) keeps less", "scan_module.scan_checkpoints"),
    ("Python 3's own functions serve", "pathparse"),
    ("graphc.__version__ says it", "version _version"),
    ("T.opt.Assert raises where values say so", "raise_op"),
    ("graphc.testing has what checks ops; numpy.testing compares arrays", "tests"),
    ("it serves Theano's own code, tests or machines", "misc scalar.basic_sympy sandbox.minimal"),
    ("there is no communication between processes", "tensor.io"),
    ("what was tried there is in graphc.tensor", "sandbox"),
)
"""Why modules are not there, with all that is below them; the first that fits."""


NAMES = (
    (
        "variables hold arrays of numbers; what a function of one's own needs besides, it can hold itself",
        "generic Generic CDataType CEnumType EnumList EnumType ParamsType Params",
    ),
    (
        REASONS[1][0],
        """BadOptimization CheckStackTraceOptimization DB EquilibriumDB Feature LocalGroupDB LocalOptGroup
        LocalOptTracker LocalOptTrackerGroup MergeFeature MetaOptimizer NavigatorOptimizer NodeFinder OpKeyOptimizer
        PrintListener ProxyDB Query ReplaceValidate ReplacementDidntRemovedError SequenceDB Validator VectorReplace
        inplace_optimizer keep_going pre_constant_merge pre_greedy_local_optimizer toolbox warn_inplace
        FusionOptimizer InplaceElemwiseOptimizer ShapeFeature ShapeOptimizer""",
    ),
    (
        REASONS[2][0],
        """CLinker COp CLinkerObject CLinkerOp CLinkerType Linker LocalLinker DualLinker OpWiseCLinker PerformLinker
        VM_Linker WrapLinker WrapLinkerMany HideC cc link vm""",
    ),
    ("graphc.scan(checkpoint=...) keeps less", "scan_checkpoints"),
)
"""Why names are not there, in Theano's modules that graphc has otherwise."""


def why_name(name: str) -> str:
    """The reason why there is no such name, or nothing where none is known."""
    if name.startswith("local_"):  # what Theano calls its rules
        return REASONS[1][0]
    return next((reason for reason, names in NAMES if name in names.split()), "")


def why(place: str) -> str:
    """The reason why there is no such module, or nothing where none is known."""
    return next(
        (reason for reason, names in REASONS for name in names.split() if f"{place}.".startswith(f"{name}.")), ""
    )
