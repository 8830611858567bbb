"""Names of Theano's tensor modules and of NumPy that graphc does not have, each with the reason.

In: a name. Out: the sentence that a user who asks for it is told; the documentation is written from the same table.
"""

from __future__ import annotations

COMPLEX = "graphc has no complex dtypes"
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
    (COMPLEX, """
        ccol cmatrix crow cscalar ctensor3 ctensor4 ctensor5 ctensor6 ctensor7 cvector zcol zmatrix zrow zscalar
        ztensor3 ztensor4 ztensor5 ztensor6 ztensor7 zvector complex complex_from_polar complex_matrix_types
        complex_scalar_types complex_types complex_vector_types _convert_to_complex64 _convert_to_complex128
        python_complex cdouble clongdouble csingle complex64 complex128 complex256 complexfloating sort_complex
    """),
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
        int32_t int_t utils
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
        False_ True_ ScalarType bool bool_ byte bytes_ can_cast character common_type double dtype dtypes finfo
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
"""Reasons, and the names that are missing for each."""


def why(name: str) -> str:
    """The reason why graphc has no `name`, or nothing where none is known."""
    return next((reason for reason, names in GROUPS if name in names.split()), "")
