"""Theano's paths and names that graphc has no files for: what stands behind them, or why there is nothing.

    import graphc.gof.graph          a module with the names of graphc.theano.graphs
    import graphc.gpuarray.dnn       an empty module: many programs import what they never use
    graphc.gof.CLinker               an AttributeError: "there is no C code and no linker: ..."
    graphc.tensor.ARange             graphc.theano.opclasses.ARange
    import theano.tensor as T        graphc.tensor itself, after `install_as_theano()`

In: an import statement that Python has found no file for; a name that a package of graphc does not have. Out: a module
that has the names of others; what the name stands for; or the sentence that says what to use instead. Tests and the
documentation are written from the same tables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from graphc.errors import GraphcError
from graphc.startup.hooks import HOOKS, alias


def _by_path(modules: Mapping[str, str]) -> dict[str, str]:
    """For each path, in order, the modules that serve it."""
    return dict(sorted((path, served) for served, paths in modules.items() for path in paths.split()))


PATHS = _by_path(
    {
        "": "misc sandbox",
        "control.branch theano.opclasses": "ifelse",
        "control.scan": "scan scan.basic scan.views scan_module scan_module.scan scan_module.scan_views updates",
        "control.scan theano.graphs": "scan.utils scan_module.scan_utils",
        "functions.function theano.compile": "compile.function",
        "printing": "d3viz d3viz.d3viz",
        "printing.monitormode": "compile.monitormode",
        "random.raw": "sandbox.multinomial tensor.raw_random",
        "random.streams": "tensor.shared_randomstreams",
        "random.streams theano.names": "sandbox.cuda.rng_curand sandbox.rng_mrg",
        "shared theano.names": "scalar.sharedvar tensor.sharedvar",
        "sparse": "sparse.basic sparse.type",
        "sparse theano.names": "sparse.sharedvar",
        "tensor": "tensor.subtensor tensor.type tensor.type_other tensor.var tensor.xlogx",
        "tensor tensor.nnet": "tensor.inplace",
        "tensor tensor.nnet theano.names": "tensor.extra_ops",
        "tensor.inspection": "assert_op raise_op",
        "tensor.inspection theano.opclasses theano.names theano.graphs": "tensor.opt",
        "tensor.linalg.theano_ops": "sandbox.solve tensor.nlinalg tensor.slinalg",
        "tensor.nnet": "sandbox.softsign tensor.nnet.nnet tensor.nnet.sigm",
        "tensor.nnet.conv": "tensor.nnet.conv3d2d",
        "tensor.nnet.images": "sandbox.neighbours tensor.nnet.neighbours",
        "tensor.nnet.losses": "tensor.nnet.ctc",
        "tensor.nnet.normalization": "tensor.nnet.bn",
        "tensor.nnet.scores": "sandbox.blocksparse tensor.nnet.blocksparse",
        "tensor.signal.pool": "tensor.signal.downsample",
        "tensor.sorting theano.opclasses": "tensor.sort",
        "theano.compile": """
        compile.builders compile.debugmode compile.function_module compile.io compile.mode compile.nanguardmode
        compile.pfunc compile.sharedvalue compile.function.pfunc compile.function.types
    """,
        "theano.compile theano.opclasses": "compile.ops",
        "theano.compile theano.opclasses printing.monitormode": "compile",
        "theano.fft": "tensor.fft",
        "theano.flags": "configdefaults configparser",
        "theano.flags theano.user_ops theano.names": "graph.op graph.utils",
        "theano.gradient theano.opclasses": "gradient",
        "theano.graphs": "gof.fg gof.graph graph.fg tensor.utils",
        "theano.names theano.graphs": "graph.basic",
        "theano.names": """
        compat compat.python2x gof.null_type gof.opt gof.optdb gof.type gpuarray gpuarray.dnn graph.null_type
        graph.opt graph.optdb graph.type misc.safe_asarray
        sandbox.cuda sandbox.cuda.dnn
    """,
        "theano.names tensor theano.opclasses": "tensor.basic",
        "theano.names tensor.linalg.theano_ops": "sandbox.linalg sandbox.linalg.ops",
        "theano.names theano.user_ops theano.graphs": "gof gof.utils graph",
        "theano.opclasses": "scan.op scan_module.scan_op tensor.nnet.corr tensor.nnet.corr3d",
        "theano.opclasses tensor": "tensor.blas",
        "theano.pickles": "misc.pkl_utils",
        "theano.scalar": "scalar scalar.basic scalar.basic_scipy",
        "theano.user_ops": "gof.op",
    }
)
"""Paths, and the modules that are searched for their names: here by the modules."""

FORMER = _by_path(
    {
        "control.scan": "control.updates",
        "functions.debug_modes": "functions.checked",
        "functions.factory": "functions.making functions.recall",
        "functions.variants": "functions.layouts",
        "functions.wrappers": "functions.nested functions.counted functions.staged functions.wrapped",
        "ir.source_lines": "ir.where",
        "ir.types": "ir.kind",
        "layers.standard": "layers.dense layers.recurrent layers.spatial",
        "numpy.named": "numpy.array_api",
        "tensor.linalg.theano_ops": "tensor.linalg.nlinalg tensor.linalg.slinalg",
        "tensor.nnet.normalization": "tensor.nnet.attention",
        "tensor.statistics": "tensor.histograms",
        "theano.compile": "theano.made_ops",
        "theano.fft": "gof.fft",
        "theano.flags": "gof.test_values theano.example_values",
        "theano.graphs": "gof.replacing gof.shapes theano.rebuilding",
        "theano.names": "gof.python gof.synonyms gof.tried theano.optdb",
        "theano.names tensor": "gof.tensor_basic",
        "theano.opclasses": "gof.opclasses",
        "theano.owners": "ir.apply theano.recognised",
        "theano.pickles": "gof.saved",
        "theano.scalar": "scalar.composite scalar.ops",
        "theano.sparse_ops": "gof.sparse_ops",
        "train.trainer": "train.checkpoint train.plots",
        "trees": "arrays.trees",
    }
)
"""The same of paths that graphc had itself: pickles name them."""

ONE_MACHINE = (
    "graphc computes on the processor of one machine: results are there when a call returns, as NumPy's arrays"
)
JAX = (
    (
        "jnp.zeros(count).at[segments].add(x) adds up segments; .multiply, .min and .max stand for the others",
        "ops.segment_sum ops.segment_prod ops.segment_min ops.segment_max",
    ),
    ("a key is a number of uint64 itself", "random.clone random.key_data random.key_dtype random.key_impl"),
    ("a key is a number of uint64 itself: graphc.random.key(seed) makes one", "random.wrap_key_data"),
    (
        "graphc.tree has these functions: graphc.tree.map, graphc.tree.leaves and others",
        "tree_map tree_leaves tree_flatten tree_unflatten tree_structure tree_reduce",
    ),
    (
        "graphc.tree.reduce goes from the first leaf to the last",
        "tree.reduce_associative tree_util.tree_reduce_associative",
    ),
    ("register_static makes a class whose objects have no arrays", "tree.static"),
    (
        "graphc.tree.structure(tree).children() are the structures of the parts",
        "tree_util.flatten_one_level tree_util.flatten_one_level_with_keys",
    ),
    ("arrays are NumPy's: np.ndarray, of which tensors are instances in traced functions", "Array"),
    (
        ONE_MACHINE,
        """
        Device NamedSharding P Shard array_garbage_collection_guard auto_pcast block_until_ready
        copy_to_host_async default_backend default_device device_count device_get device_put devices
        effects_barrier host_count host_id host_ids live_arrays local_device_count local_devices
        make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
        make_mesh memory pmap process_count process_index process_indices
        remove_size_one_mesh_axis_from_type reshard set_mesh shard_map sharding smap thread_guard
        transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host
        transfer_guard_host_to_device""",
    ),
    ("graphc.make_graph(f)(x) gives the text of what f computes", "make_jaxpr"),
    (
        "arrays that a traced function has made may be written to: a[i] = v (docs/jit.md)",
        "Ref empty_ref free_ref freeze new_ref",
    ),
    (
        "sums have the dtype of their operands, and dtypes are promoted as in NumPy",
        "allow_f16_reductions default_matmul_precision numpy_dtype_promotion numpy_rank_promotion",
    ),
    ("arrays have NumPy's default dtypes, float64 and int64; graphc.options.floatX is another", "enable_x64"),
    (
        "a tensor that leaves its trace is an error; mode=NanGuardMode and mode=DebugMode check values",
        "check_tracer_leaks checking_leaks debug_infs debug_nans debug_key_reuse enable_checks",
    ),
    (
        "a key is a number of uint64, of one generator",
        "default_prng_impl enable_custom_prng legacy_prng_key threefry_partitionable",
    ),
    ("graphc.cache.clear() removes compiled code; f.functions lists that of a function", "clear_caches"),
    ("GRAPHC_LOG=recompiles says which guard of which line failed", "explain_cache_misses log_compiles"),
    ("a function may use tensors of the function around it: nothing needs to be converted", "closure_convert"),
    ("graphc.vjp(f, x)[1] is the transposed function of a linear f", "linear_transpose"),
    ("graphc.vjp gives the value and the function of cotangents", "fwd_and_bwd"),
    ("graphc.eval_shape(lambda x: x, x) gives the shape and the dtype", "typeof"),
    ("functions of NumPy of arrays that are no tensors are computed in the trace", "ensure_compile_time_eval"),
    ("graphc.disable_jit() runs jitted functions as plain Python", "no_execution no_tracing"),
    (
        "graphs have no scopes: x.name names a tensor, and messages name its line",
        "make_user_context named_call named_scope",
    ),
    ("lax.dynamic_slice(x, starts, sizes) takes a part", "ds"),
    ("derivatives are arrays of floats", "float0"),
    ("it is a setting of JAX's own code", "jax2tf_associative_scan_reductions softmax_custom_jvp"),
    ("graphc.__version__ says it", "print_environment_info"),
    ("graphc.custom_jvp and graphc.custom_vjp make derivatives", "custom_derivatives ad"),
    ("graphc.vmap has a rule for each op, and computes an op without one element by element", "custom_batching"),
    ("graphc.checkpoint, checkpoint_policies and checkpoint_name have it", "ad_checkpoint"),
    ("NumPy's dtypes serve: np.dtype, np.issubdtype, np.result_type", "dtypes"),
    ("numpy.typing has ArrayLike and DTypeLike", "typing"),
    ("graphc.gradient.verify_grad compares derivatives with differences", "test_util"),
    ("it is experimental in JAX; graphc.sparse has sparse matrices, graphc.scipy.integrate solvers", "experimental"),
    ("graphc.optimizers and graphc.layers have optimisers and layers", "example_libraries"),
    (
        "jnp.einsum and lax.dot_general have products; scales are factors",
        "nn.get_scaled_dot_general_config nn.scaled_dot_general nn.scaled_matmul",
    ),
)
"""Names of JAX's that graphc has not, each group with graphc's name or the reason."""

REASONS = (
    ("there are no GPUs: functions run on the CPU", "gpuarray"),
    (
        "Theano's rewriting has no counterpart: graphc.rewrite has its own rules, and Mode.excluding switches them off",
        """compile.sandbox gof.destroyhandler gof.toolbox gof.unify graph.destroyhandler graph.toolbox graph.unify
        scan.opt scan_module.scan_opt sparse.opt tensor.nnet.opt
        tensor.opt_uncanonicalize tensor.elemwise_cgen tensor.inc_code""",
    ),
    (
        "there is no C code and no linker: perform, graphc.op and graphc.op(native=True) make ops",
        """gof.callcache gof.cc gof.cmodule gof.cutils gof.lazylinker_c gof.link gof.params_type gof.sched gof.vm
        graph.callcache graph.params_type graph.sched link scan.scan_perform_ext
        scan_module.scan_perform_ext sparse.utils tensor.blas_c tensor.blas_headers tensor.blas_scipy""",
    ),
    ("compiled code is kept by graphc.cache", "gof.compiledir gof.compilelock"),
    ("graphc.function(profile=True) and f.profile count and time calls", "compile.profiling"),
    ("graphc.printing.d3viz draws pages of its own", "d3viz.formatting"),
    ("inputs and outputs of functions may be lists of tensors, at any depth; loops are graphc.scan's", "typed_list"),
    ("graphc.scan(checkpoint=...) keeps less", "scan.checkpoints scan_module.scan_checkpoints"),
    ("Python 3's own functions serve", "pathparse"),
    ("graphc.__version__ says it", "version _version"),
    ("graphc.testing has what checks ops; numpy.testing compares arrays", "tests"),
    ("it serves Theano's own code, tests or machines", "misc scalar.basic_sympy sandbox.minimal"),
    ("there is no communication between processes", "tensor.io"),
    ("what was tried there is in graphc.tensor", "sandbox"),
)
"""Reasons why modules are not there, with all that is below them; the first that fits."""


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
    ("function(..., profile=True) counts and times calls, and f.profile.summary() tells", "ProfileMode ProfileStats"),
)
"""Reasons why names are not there, in Theano's modules that graphc has otherwise."""


# functions of tensors -------------------------------------------------------------------------------------------------

COMPLEX = "complex numbers have no order here: sort by x.real or abs(x)"
RANDOM = "random numbers are made by RandomStreams and graphc.random"
FACTORS = "linalg has factorisations and lstsq; Theano's BLAS ops are not there"
OP_CLASS = "it is a part of another op of Theano's: apply the function"
INDEX_OP = "x[...], set_subtensor and inc_subtensor make every form of indexing"
REWRITE = "rewriting is graphc's own: nothing of Theano's optimizer has a counterpart"
GRAPH = "it is part of Theano's graph, not of its functions"
IMPORTED = "Theano's module imports it from Python, NumPy or itself"
TOOL = "it serves Theano's own code or tests"
MPI = "there is no communication between processes"
IN_PLACE = (
    "it writes into an array, and tensors never change: use set_subtensor, where or the function that gives a copy"
)
DTYPES = "it is about dtypes, or makes NumPy scalars, and takes no tensor: NumPy's own serves"
FILES = "it reads, writes or prints arrays, which tensors are not while a graph is built: NumPy's own serves"
SETTINGS = "it is a setting or a part of NumPy itself"
LOOPS = "it walks through elements in Python: use scan, map, vmap or a function of whole arrays"
OBJECTS = "it is a kind of object that graphc has no counterpart of"
TIME = "graphc has no dtype for it"
BYTES = "NumPy has it, Theano has not: graphc.numpy and NumPy's own function take tensors"

GROUPS: tuple[tuple[str, str], ...] = (
    (COMPLEX, "sort_complex"),
    (RANDOM, "random"),
    (FACTORS, "blas blas_c blas_headers blas_scipy sparse_module_ref"),
    (OP_CLASS, """
        MakeSlice make_slice ScalarSoftsign scalar_sigmoid scalar_softsign ConvOp corr corr3d _arange _nd_grid
    """),
    (INDEX_OP, """
        AdvancedBooleanIndexingError adv_index_broadcastable_pattern as_index_variable as_int_none_variable
        check_advanced_indexing_dimensions check_and_reject_bool get_canonical_form_slice get_idx_list inc_code
        make_constant slicetype SliceType SliceConstant NoneConst NoneTypeT none_type_t
    """),
    (REWRITE, """
        elemwise_cgen opt_uncanonicalize graph_merge_softmax_with_crossentropy_softmax softmax_simplifier
        crossentropy_to_crossentropy_with_softmax crossentropy_to_crossentropy_with_softmax_with_bias optdb
        local_advanced_indexing_crossentropy_onehot local_advanced_indexing_crossentropy_onehot_grad
        local_argmax_pushdown local_logsoftmax local_logsoftmax_grad
        local_softmax_grad_to_crossentropy_with_softmax_grad
        local_softmax_with_bias local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc copy_stack_trace
        register_transfer
    """),
    (GRAPH, """
        type type_other Generic ParamsType TensorConstantSignature _tensor_py_operators _as_tensor_variable
        constant_cache constructor
        scal pprint min_informative_str
    """),
    (TOOL, """
        SubtensorPrinter alloc_validate_shape check_and_normalize_axes check_equal_numpy key_to_cmp
        get_scalar_constant_value_elemwises numpy_diagonal_return_view numpy_scalar values_eq_approx_always_true
        values_eq_approx_remove_inf values_eq_approx_remove_nan _cast_mapping _conversion _convert_to_bool
        _convert_to_float16 _convert_to_float32 _convert_to_float64 _convert_to_int16 _convert_to_int32
        _convert_to_int64 _convert_to_int8 _convert_to_uint16 _convert_to_uint32 _convert_to_uint64 _convert_to_uint8
        _is_const _check_rows_is_arange_len_labels _logger _multi _obj_is_wrappable_as_tensor _pack
        _scal_elemwise _scal_elemwise_with_nfunc _sum_grad_over_bcasted_dims _tensordot_as_dot float16_atol
        float16_rtol float32_atol float32_rtol float64_atol float64_rtol float_matrix_types float_scalar_types
        float_types float_vector_types int_matrix_types int_scalar_types int_types int_vector_types integer_types
        int32_t int_t utils complex_matrix_types complex_scalar_types complex_types complex_vector_types
        _convert_to_complex64 _convert_to_complex128 python_complex
    """),
    (MPI, """
        MPIRecv MPIRecvWait MPISend MPISendWait irecv isend recv send mpi_cmps mpi_enabled mpi_keys
        mpi_send_wait_cmp mpi_send_wait_key mpi_tag_cmp mpi_tag_key io
    """),
    (IMPORTED, """
        EnumList Iterable absolute_import builtins dedent division izip logging np numbers partial print_function
        setdefault sys warnings xrange
    """),
    (IN_PLACE, "copyto place put put_along_axis putmask"),
    (DTYPES, """
        False_ True_ ScalarType bool bool_ byte bytes_ can_cast cdouble character clongdouble common_type complex64
        complex128 complex256 complexfloating csingle double dtype dtypes finfo
        flexible float128 float16 float32 float64 floating generic half iinfo inexact int16 int32 int64 int8 int_
        intc integer intp isdtype issubdtype long longdouble longlong min_scalar_type mintypecode number object_
        promote_types result_type sctypeDict short signedinteger single str_ typecodes typename ubyte uint uint16
        uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort void
    """),
    (FILES, """
        LoadFromDisk load array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific from_dlpack frombuffer fromfile fromiter fromregex fromstring genfromtxt
        get_printoptions loadtxt printoptions save savetxt savez savez_compressed set_printoptions
    """),
    (SETTINGS, """
        char core ctypeslib emath errstate exceptions f2py fft get_include getbufsize geterr geterrcall info lib
        little_endian ma may_share_memory polynomial rec setbufsize seterr seterrcall shares_memory show_config
        show_runtime strings test testing typing
    """),
    (LOOPS, "apply_along_axis frompyfunc ndenumerate ndindex nditer nested_iters vectorize iterable"),
    (OBJECTS, """
        asarray_chkfinite asmatrix bmat broadcast flatiter isfortran memmap ndarray poly1d recarray record ufunc
    """),
    (TIME, """
        busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat
        timedelta64
    """),
    (BYTES, "packbits unpackbits"),
)  # fmt: skip
"""Reasons why names of Theano's tensor modules and of NumPy are not there, and the names."""


def why_function(name: str) -> str:
    """The reason why there is no function of tensors of a name, or nothing where none is known."""
    return next((reason for reason, names in GROUPS if name in names.split()), "")


def why_name(name: str, place: str = "") -> str:
    """The reason why a package has no such name, or nothing where none is known."""
    if place in ("tensor", "tensor.nnet") and (reason := why_function(name)):
        return reason
    if name.startswith("local_"):  # what Theano calls its rules
        return REASONS[1][0]
    return next((reason for reason, names in NAMES if name in names.split()), "")


def why(place: str) -> str:
    """The reason why there is no such module, or nothing where none is known."""
    return next(
        (reason for reason, names in (*REASONS, *JAX) for name in names.split() if f"{place}.".startswith(f"{name}.")),
        "",
    )


LISTED: dict[str, dict[str, str]] = {
    "": {
        "compile": """
            FunctionMaker Mode OpFromGraph Param SymbolicInput SymbolicOutput as_op predefined_linkers predefined_modes
            predefined_optimizers
        """,
        "flags": "change_flags",
        "gradient": "sparse_grad",
        "graphs": "FunctionGraph clone=clone_replace clone_replace graph_replace is_same_graph map_variables",
        "names": "Apply Container InconsistencyError Op",
        "paths": "compile configdefaults configparser gof gradient sandbox scalar scan_module updates",
    },
    "tensor": {
        "opclasses": """
            ARange AdvancedBooleanIncSubtensor AdvancedBooleanSubtensor AdvancedIncSubtensor AdvancedIncSubtensor1
            AdvancedSubtensor AdvancedSubtensor1 Alloc AllocDiag AllocEmpty ArgSortOp Argmax Bartlett
            BaseAdvancedIncSubtensor BaseAdvancedSubtensor BatchedDot Choose CpuContiguous CumOp CumprodOp CumsumOp
            Default DiffOp Dot Dot22 Dot22Scalar ExtractDiag Eye FillDiagonal FillDiagonalOffset Flatten Gemm Gemv Ger
            IfElse IncSubtensor Join LogSoftmax MakeVector MaxAndArgmax Mean Nonzero PermuteRowElements
            Prepend_scalar_constant_to_each_row Prepend_scalar_to_each_row RavelMultiIndex Rebroadcast RepeatOp Reshape
            ScalarFromTensor Scan SearchsortedOp Shape Shape_i Softmax SoftmaxGrad SortOp SpecifyShape Split Subtensor
            TensorFromScalar Tile TopKOp Tri Unique UnravelIndex advanced_boolean_inc_subtensor
            advanced_boolean_set_subtensor advanced_boolean_subtensor advanced_inc_subtensor advanced_inc_subtensor1
            advanced_set_subtensor advanced_set_subtensor1 advanced_subtensor advanced_subtensor1 bartlett_
            fill_diagonal_ fill_diagonal_offset_ gemm_inplace gemm_no_inplace gemv gemv_inplace gemv_no_inplace ger
            ger_destructive join_ make_vector softmax_grad
        """,
        "gradient": "grad_undefined numeric_grad verify_grad",
    },
}
"""Names that this room gives to packages of graphc, with the module here that has them, under the name behind `=` where
that is another: part of their `__all__`, and of `dir`. Those of `paths` are modules."""

UNLISTED: dict[str, dict[str, str]] = {
    "": {"names": "_asarray"},
    "sparse": {
        "sparse_ops": """
            AddSD AddSS AddSSData CSMProperties Cast ColScaleCSC ConstructSparseFromList DenseFromSparse Diag Dot
            EnsureSortedIndices GetItem2Lists GetItem2d GetItemList GetItemScalar HStack MulSD MulSS MulSV Neg Remove0
            RowScaleCSC SamplingDot SparseFromDense SpSum SquareDiagonal StructuredAddSV StructuredDot Transpose
            TrueDot Usmm VStack
        """,
    },
    "tensor": {
        "opclasses": "_dot _nonzero _permute_row_elements",
        "names": """
            Apply Constant DisconnectedType MethodNotDefined Op Tensor Type disconnected_type grad_not_implemented
            hashtype compile config gof printing theano _allclose _get_atol_rtol _shared
        """,
    },
    "tensor.nnet": {
        "opclasses": """
            CrossentropyCategorical1Hot CrossentropyCategorical1HotGrad CrossentropySoftmax1HotWithBiasDx
            CrossentropySoftmaxArgmax1HotWithBias LogSoftmax Prepend_scalar_constant_to_each_row
            Prepend_scalar_to_each_row Softmax SoftmaxGrad SoftmaxWithBias softmax_grad
        """,
    },
    "tensor.nnet.abstract_conv": {
        "opclasses": """
            AbstractConv2d AbstractConv2d_gradInputs AbstractConv2d_gradWeights AbstractConv3d
            AbstractConv3d_gradInputs AbstractConv3d_gradWeights
        """,
    },
}
"""The same of names that no list shows."""


def names(package: str) -> list[str]:
    """The names that a package, by its full name, has from here and lists."""
    return [*_names_of(LISTED, place_of(package))]


def absent(package: str, name: str) -> tuple[Any, str]:
    """The value that a package gets under a name that is not its own, None for nothing; and why there is nothing, where
    that is known."""
    place = place_of(package)
    module, there = {**_names_of(UNLISTED, place), **_names_of(LISTED, place)}.get(name, ("paths", ""))
    if module != "paths":
        return getattr(import_module(f"graphc.theano.{module}"), there), ""
    path = f"{place}.{name}".removeprefix(".")
    return (import_module(f"graphc.{path}"), "") if path in PATHS else (None, why_name(name, place) or why(path))


def _names_of(table: Mapping[str, Mapping[str, str]], place: str) -> dict[str, tuple[str, str]]:
    """For each name that a package gets, the module that has it and its name there."""
    words = [(word.partition("="), module) for module, text in table.get(place, {}).items() for word in text.split()]
    return {name: (module, there or name) for (name, _, there), module in words}


def place_of(module: str) -> str:
    """The path of a module below graphc."""
    return module.partition(".")[2]


# modules --------------------------------------------------------------------------------------------------------------


class Path(ModuleType):
    """A module whose names are those of other modules, looked up when they are asked for."""

    def __init__(self, name: str, sources: Sequence[str], function: Any, missing: str = "") -> None:
        said = f"Theano's path of names in {', '.join(sources) or 'the modules below it'}."
        if missing:
            said = f"Not in graphc: {missing}."
        super().__init__(name, said if function is None else function.__doc__)
        self.__path__: list[str] = []
        self.__dict__.update(_sources=sources, _missing=missing)
        if function is not None:
            self.__dict__["__wrapped__"] = getattr(function, "__wrapped__", function)  # whose signature it has
            self.__doc__ = function.__doc__

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted({each for source in self.__dict__["_sources"] for each in public_names(source)})
        place = f"{self.__name__}.{name}"
        if place_of(place) in PATHS and place not in sys.modules:
            return import_module(place)
        return self.found(name)

    def found(self, name: str) -> Any:
        """The value that the first of the modules has under a name; AttributeError where none has it."""
        if not name.startswith("__"):
            for source in self.__dict__["_sources"]:
                module = import_module(source)
                if hasattr(module, name):
                    return getattr(module, name)
                short = name.removesuffix("_inplace")
                if short != name and hasattr(module, short):  # where a result lies is graphc's own decision
                    return getattr(module, short)
        place = place_of(self.__name__)
        missing = self.__dict__["_missing"] or why_name(name) or why(place)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{missing and ': '}{missing}")

    def __dir__(self) -> list[str]:
        return sorted({name for source in self.__dict__["_sources"] for name in dir(import_module(source))})


def public_names(module: str) -> list[str]:
    """The names that a module offers."""
    found = import_module(module)
    return getattr(found, "__all__", None) or [name for name in dir(found) if name[0] != "_"]


class Loader:
    """Makes the modules of paths."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """The module of a path, which is a function too where its package has one of that name."""
        place = place_of(spec.name)
        homes = [f"graphc.{home}" for home in {**FORMER, **PATHS}.get(place, "").split()]
        parent, _, child = spec.name.rpartition(".")
        package = sys.modules[parent]
        if isinstance(package, Path):
            function = package.found(child) if child in dir(package) else None
        else:
            # what graphc lists are modules too: here are the names that modules have
            late = [name for name, module in vars(package).get("_LATE", {}).items() if name != module]
            listed = late if parent == "graphc" else getattr(package, "__all__", ())
            function = getattr(package, child) if child in vars(package) or child in listed else None
        if not callable(function):
            return Path(spec.name, homes, None, "" if homes else why(place))
        kind = type("Path", (Path,), {"__call__": staticmethod(function)})  # theano.tensor.sort, which an import takes
        module: ModuleType = kind(spec.name, homes, function)
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing: its names are looked up later."""


def find_spec(name: str) -> ModuleSpec | None:
    """A module under Theano's path; None for what nobody knows. Raises ModuleNotFoundError for what there is a reason
    to miss."""
    place, loader = place_of(name), Loader
    reason = why(place)
    if place in PATHS or place in FORMER or any(place in missing.split() for _, missing in REASONS):
        return ModuleSpec(name, loader, is_package=True)  # type: ignore[arg-type]
    if not reason:
        return None
    # named after the package, or `from package import name` would drop the reason
    raise ModuleNotFoundError(f"{name!r} is not in graphc: {reason}", name=name.rpartition(".")[0])


HOOKS.absent, HOOKS.names, HOOKS.find_spec = absent, names, find_spec


# --- import theano ----------------------------------------------------------------------------------------------------


THEANO = "theano"


class Finder:
    """The first of Python's finders: others would find the files of graphc, and load them again."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module of graphc for one of Theano's; None for the modules of others, and for what nobody has."""
        if name != THEANO and not name.startswith(f"{THEANO}."):
            return None
        own = f"graphc{name.removeprefix(THEANO)}"
        try:
            import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            return None
        return alias(name, own)


def install_as_theano() -> None:
    """Let every import of `theano`, and of what is below it, find graphc: for libraries that were written for Theano.

    A second call changes nothing. Raises GraphcError where Theano itself has been imported before.

        >>> graphc.install_as_theano()
        >>> import theano.tensor
        >>> theano.tensor is graphc.tensor
        True
    """
    known = sys.modules.get(THEANO)
    if known is not None and known is not sys.modules["graphc"]:
        raise GraphcError("install_as_theano: Theano is imported already; call this before anything imports it")
    sys.modules.setdefault(THEANO, sys.modules["graphc"])
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
