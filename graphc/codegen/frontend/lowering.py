"""numba's front end, type inference and lowering, cut down to kernels over raw pointers.

In: the functions of one generated source text and their prototypes. Out: one module of LLVM IR in which each function
is a plain C symbol. numba infers the types of its IR of the source (parse.py) and lowers it; its registries, its
calling convention with a status code, its runtime and its code generator are replaced by the few records below, so
that a compilation starts at once and leaves no trace of the process in the object.
"""

# mypy: allow-untyped-calls, allow-subclassing-any, no-warn-return-any
# numba has hardly any annotations.

from __future__ import annotations

import linecache
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import llvmlite.ir as llvm
import numba.core.types  # noqa: F401 - before what it imports in a circle
from numba.core import errors, ir, lowering, typeinfer, types
from numba.core.base import BaseContext as TargetContext
from numba.core.funcdesc import FunctionDescriptor
from numba.core.targetconfig import ConfigStack, Option, TargetConfig
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.templates import Signature

from graphc.arrays.dtypes import FLOATS
from graphc.codegen.frontend import primitives
from graphc.codegen.frontend.intrinsics import FastModule, InferenceError
from graphc.codegen.frontend.parse import SOURCE_NAME, Parsed, definitions_of, parsed
from graphc.codegen.llvm.module import Module, Prototype
from graphc.codegen.llvm.target import has_fma, usual_width, vector_widths
from graphc.codegen.llvm.values import Builder, Value, emit_cast
from graphc.codegen.vecmath.table import define_called, parts_called
from graphc.codegen.vecmath.variants import limit_vectors
from graphc.codegen.vectorize.loopinfo import has_loops
from graphc.codegen.vectorize.vectorizer import vectorize
from graphc.errors import CompileError
from graphc.loopir.ir import CONSTANTS

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


# --- contexts -------------------------------------------------------------------------------------------------------


class KernelTyping(TypingContext):
    """Types the values and calls that a kernel may hold, with no registry to load."""

    def refresh(self) -> None:
        pass

    def resolve_value_type(self, val: Any) -> types.Type:
        match val:
            case bool():
                return types.boolean
            case int():
                return types.int64
            case float():
                return primitives.LITERAL_FLOAT
            case primitives.Primitive():
                return val
        primitive = primitives.PRIMITIVES.get(val) if callable(val) else None
        if primitive is None:
            raise ValueError(f"a kernel cannot hold {val!r}")
        return primitive

    def resolve_function_type(self, func: Any, args: Sequence[types.Type], kws: Any) -> Signature | None:
        primitive = func if isinstance(func, primitives.Primitive) else primitives.PRIMITIVES.get(func)
        if primitive is None:
            return None
        if kws:
            raise errors.TypingError(f"{primitive.name} takes no keywords")
        return primitive.get_call_type(self, args, kws)

    def unify_pairs(self, first: types.Type, second: types.Type) -> types.Type | None:
        """The type of a variable assigned both: equal types, or a literal that adapts."""
        if first == second:
            return first
        try:
            dtypes = primitives.dtype_of(first), primitives.dtype_of(second)
        except InferenceError:
            return None
        strong = {dtype for dtype in dtypes if dtype not in ("int", "float")}
        if not strong:
            return types.int64 if dtypes == ("int", "int") else primitives.LITERAL_FLOAT
        if len(strong) > 1 or ("float" in dtypes and strong.isdisjoint(FLOATS)):
            return None
        return primitives.SCALARS[strong.pop()]

    def can_convert(self, fromty: types.Type, toty: types.Type) -> int | None:
        return None if self.unify_pairs(fromty, toty) is None else 0


class NativeConvention:
    """C's calling convention: arguments and the result by value, no status code."""

    def __init__(self, context: KernelTarget) -> None:
        self.context = context

    def get_function_type(self, restype: types.Type, argtypes: Sequence[types.Type]) -> llvm.FunctionType:
        returns = llvm.VoidType() if restype == types.void else self.context.get_return_type(restype)
        return llvm.FunctionType(returns, [self.context.get_argument_type(arg) for arg in argtypes])

    def decorate_function(
        self, function: llvm.Function, args: Sequence[str], argtypes: Sequence[types.Type], noalias: bool = False
    ) -> None:
        for arg, name, type_ in zip(function.args, args, argtypes, strict=True):
            arg.name = name
            if noalias and isinstance(type_, types.CPointer):
                arg.add_attribute("noalias")
                # LLVM would look for a proof at every call that passes it on.
                arg.add_attribute("nonnull")
        function.attributes.add("nounwind")
        # Inlined into the one that calls it, its loops would be optimised twice.
        function.attributes.add("noinline")

    def decode_arguments(
        self, builder: Builder, argtypes: Sequence[types.Type], function: llvm.Function
    ) -> list[Value]:
        return [
            self.context.get_argument_value(builder, type_, arg)
            for type_, arg in zip(argtypes, function.args, strict=True)
        ]

    def init_call_helper(self, builder: Builder) -> None:
        pass

    def return_value(self, builder: Builder, value: Value) -> None:
        builder.ret(value)

    def return_user_exc(
        self, builder: Builder, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
    ) -> None:
        raise errors.UnsupportedError("a kernel cannot raise", loc=loc)


class KernelTarget(TargetContext):
    """Lowers what `KernelTyping` types, with no registry to load and no runtime to link."""

    def refresh(self) -> None:
        pass

    def codegen(self) -> None:
        return None

    @property
    def call_conv(self) -> NativeConvention:
        return NativeConvention(self)

    def get_function(self, fn: Any, sig: Signature, _firstcall: bool = True) -> Callable[..., Value]:
        primitive = fn if isinstance(fn, primitives.Primitive) else primitives.PRIMITIVES.get(fn)
        if primitive is None or any(isinstance(arg, types.Omitted) for arg in sig.args):
            raise NotImplementedError(f"no lowering for {fn}{sig}")
        return lambda builder, args, loc=None: primitive.emit(builder, sig, args)

    def get_constant_generic(self, builder: Builder, ty: types.Type, val: Any) -> Value:
        if isinstance(ty, primitives.Primitive):
            return self.get_dummy_value()
        if isinstance(ty, types.IntegerLiteral):
            return llvm.Constant(llvm.IntType(64), int(val))
        return llvm.Constant(self.get_value_type(ty), val)

    def cast(self, builder: Builder, val: Value, fromty: types.Type, toty: types.Type) -> Value:
        if fromty == toty:
            return val
        if isinstance(fromty, (types.CPointer, primitives.Primitive)):
            raise errors.NumbaTypeError(f"cannot cast {fromty} to {toty}")
        source, target = primitives.dtype_of(fromty), primitives.dtype_of(toty)
        if target in ("int", "float") and target == source:
            return val
        return emit_cast(builder, source, "float64" if target == "float" else target, val)

    def pair_first(self, builder: Builder, val: Value, ty: types.Type) -> Value:
        return builder.extract_value(val, 0)

    def pair_second(self, builder: Builder, val: Value, ty: types.Type) -> Value:
        return builder.extract_value(val, 1)


class _Module:
    """The code library that numba's lowering expects: it hands out the one module."""

    def __init__(self, module: llvm.Module) -> None:
        self.module = module

    def create_ir_module(self, name: str) -> llvm.Module:
        return self.module


class LoweringFlags(TargetConfig):
    """The flags that numba's lowering asks for, all off: its own have dozens."""

    __slots__ = ()
    debuginfo = Option(type=bool, default=False, doc="Emit debug information.")
    dbg_directives_only = Option(type=bool, default=False, doc="Emit lines only.")
    dbg_optnone = Option(type=bool, default=False, doc="Switch optimisation off for a debugger.")


class KernelLowering(lowering.Lower):
    """numba's lowering of statements without its environment, debug information and generators. A name that is
    assigned once, before all its uses on every way, is the value itself; others have a place on the stack."""

    def __init__(self, context: KernelTarget, module: llvm.Module, description: Any, function: Parsed) -> None:
        self.values = function.values
        super().__init__(context, _Module(module), description, function.ir)

    def lower(self) -> None:
        self.lower_normal_function(self.fndesc)

    def _find_singly_assigned_variable(self) -> None:
        self._singly_assigned_vars = self.values
        self._blk_local_varmap: dict[str, Value] = {}

    def alloca_lltype(self, name: str, lltype: llvm.Type, datamodel: Any = None) -> Value:
        with self.builder.goto_entry_block():
            return self.builder.alloca(lltype, name=name)

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for statement in block.body:
            self.loc = statement.loc
            try:
                self.lower_inst(statement)
            except Exception:  # numba prepares what an error tells for every statement
                place = statement.loc
                wrong = partial(errors.LoweringError, loc=place)
                context = lowering.new_error_context(  # type: ignore[attr-defined]
                    'lowering "{inst}" at {loc}', inst=statement, loc=place, errcls_=wrong
                )
                with context:
                    raise
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, ir.Assign):  # numba prints each for its debugger
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        else:
            super().lower_inst(inst)

    def lower_binop(self, resty: types.Type, expr: Any, op: Any) -> Value:
        """Lower an operator. numba asks three times before whether there is code for operands that are literals."""
        context, native = self.context, self.fndesc.calltypes[expr]
        operator = context.typing_context.resolve_value_type(op)
        loaded = [self.loadvar(operand.name) for operand in (expr.lhs, expr.rhs)]
        own = [self.typeof(operand.name) for operand in (expr.lhs, expr.rhs)]
        args = [context.cast(self.builder, *each) for each in zip(loaded, own, native.args, strict=True)]
        own = operator.get_call_type(context.typing_context, native.args, {})
        result = context.get_function(operator, own)(self.builder, args)
        return context.cast(self.builder, result, native.return_type, resty)

    def storevar(self, value: Value, name: str, argidx: int | None = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


class CallTyping:
    """The constraint of a call, for numba's rounds over all constraints: the types of the operands give a signature.
    It is met again only where since then an operand has become another type."""

    def __init__(self, function: Any, operands: Sequence[ir.Var], target: str, loc: ir.Loc) -> None:
        self.function, self.operands, self.target, self.loc = function, operands, target, loc
        self.known: list[types.Type] = []
        self.signature: Signature | None = None

    def __call__(self, inference: Any) -> None:
        typevars = inference.typevars
        taken = [typevars[each.name].type for each in self.operands]
        if self.known == taken or None in taken:
            return
        callee, *args = taken if self.function is None else (self.function, *taken)
        self.signature = inference.resolve_call(callee, args, {})
        if self.signature is None:
            raise errors.TypingError(f"a kernel cannot call {callee}", loc=self.loc)
        if self.target:
            inference.add_type(self.target, self.signature.return_type, loc=self.loc)
        self.known = taken

    def get_call_signature(self) -> Signature | None:
        return self.signature


class Inference(typeinfer.TypeInferer):
    """numba's type inference, in which operators, calls, loads and stores are `CallTyping`. numba's own constraints
    look for keywords, tuples and arrays of unknown types in each."""

    def add_call(self, statement: Any, function: Any, operands: Sequence[ir.Var], target: str) -> None:
        constraint = CallTyping(function, operands, target, statement.loc)
        self.constraints.append(constraint)
        self.calls.append((statement.value if target else statement, constraint))

    def typeof_call(self, inst: Any, target: ir.Var, call: Any) -> None:
        self.add_call(inst, None, (call.func, *call.args), target.name)

    def typeof_intrinsic_call(self, inst: Any, target: ir.Var, func: Any, *args: ir.Var) -> None:
        self.add_call(inst, func, args, target.name)

    def typeof_setitem(self, inst: Any) -> None:
        self.add_call(inst, operator.setitem, (inst.target, inst.index, inst.value), "")


# --- the stages -----------------------------------------------------------------------------------------------------


MODULE_SIZE = 65
"""Statements of a module's functions, beside the last of them: some 15 ms of LLVM's time, against 1 for a module."""
WORTH_A_MODULE = 32
"""Statements of nests that are compiled beside what calls them, not with it."""


def lower_source(
    source: str, functions: Sequence[Prototype], externals: Mapping[str, Prototype], fast_math: bool
) -> Module:
    """The LLVM IR of `functions`, which `source` defines; they may call each other and `externals`.

    Raises CompileError for a source that does not parse, a name it lacks, and a statement that cannot be typed.
    """
    read = _read(source, functions, externals)
    return _whole(*_lower_functions(functions, read, fast_math))


def lower_modules(
    source: str, functions: Sequence[Prototype], externals: Mapping[str, Prototype], fast_math: bool
) -> Iterator[Module]:
    """The same in modules of a few functions, one after the other, for two processes to compile. What is in which
    depends on the source alone. The last two functions are those of a program that check sizes and call the nests."""
    read = _read(source, functions, externals)
    group: list[Prototype] = []
    size = 0
    rare: dict[str, str] = {}
    for number, prototype in enumerate(functions):
        if number == len(functions) - 2 and size > WORTH_A_MODULE:
            yield from _split_module(*_lower_functions(group, read, fast_math), rare)
            group, size = [], 0
        group.append(prototype)
        size += read[prototype.name].size
        if size > MODULE_SIZE:
            yield from _split_module(*_lower_functions(group, read, fast_math), rare)
            group, size = [], 0
    if group or not functions:
        yield from _split_module(*_lower_functions(group, read, fast_math), rare)
    if rare:
        yield Module("\n".join(rare.values()), is_vectorized=True, is_straight=True, is_rare=True)


def _read(source: str, functions: Sequence[Prototype], externals: Mapping[str, Prototype]) -> dict[str, Parsed]:
    """numba's IR of the functions, by name."""
    native = dict(externals) | {prototype.name: prototype for prototype in functions}
    names: dict[str, Any] = (
        primitives.NAMES
        | CONSTANTS
        | {"range": range}
        | {name: primitives.NativeCall(prototype) for name, prototype in native.items()}
    )
    # Error messages of numba quote the line.
    linecache.cache[SOURCE_NAME] = (len(source), None, source.splitlines(keepends=True), SOURCE_NAME)
    definitions = definitions_of(source)
    for prototype in functions:
        if prototype.name not in definitions:
            raise CompileError(f"the source defines no function {prototype.name!r}")
    return {prototype.name: parsed(definitions[prototype.name], names) for prototype in functions}


def _lower_functions(
    functions: Sequence[Prototype], read: Mapping[str, Parsed], fast_math: bool
) -> tuple[llvm.Module, list[str]]:
    """One module of these functions, and the names of those with loops that are left to LLVM."""
    module = (FastModule if fast_math else llvm.Module)("graphc", llvm.Context())  # its types are its own
    typing_context = KernelTyping()
    target_context = KernelTarget(typing_context, "cpu")
    for prototype in functions:
        try:
            _lower_function(module, typing_context, target_context, read[prototype.name], prototype)
        except errors.NumbaError as error:
            raise CompileError(f"{prototype.name}: {_COLOUR.sub('', str(error))}") from error
    left = vectorize(module)
    define_called(module, has_fma(), vector_widths())
    limit_vectors(module, usual_width())
    return module, left


WORTH_APART = 40
"""Instructions of the functions that need no pass over loops, from which they are a module of their own."""
WORTH_ONCE = 20
"""Instructions of the functions that run once for a call or a launch, from which they are a module of their own."""


def _split_module(module: llvm.Module, left: Sequence[str], texts_run_once: dict[str, str]) -> Iterator[Module]:
    """Split a module in two where both are large enough: the functions with loops that are left to LLVM, for all its
    passes take ten times as long, and the others. Functions that run once for a call or a launch go to
    `texts_run_once` instead: the texts, by name, of one module for all such functions of a program."""
    is_whole = any(each.linkage == "appending" for each in module.global_values)
    run_once = [each for each in module.functions if _runs_once(each)]
    if is_whole or _instructions(run_once) < WORTH_ONCE:
        run_once = []
    for each in run_once:
        each.linkage = ""
    exported = [each for each in module.functions if each.blocks and each.linkage != "internal"]
    kept = [each for each in exported if each not in run_once]
    others = [each for each in kept if each.name not in left]
    groups = [kept]
    if not is_whole and len(others) < len(kept) and _instructions(others) >= WORTH_APART:
        groups = [[each for each in kept if each.name in left], others]
    if groups == [exported]:
        yield _whole(module, left)
        return
    texts = {name: str(each) for name, each in module.globals.items()}
    named = {name: re.findall('@"([^"]+)"', text) for name, text in texts.items()}
    structs = {each.name: each.get_declaration() for each in module.get_identified_types().values()}

    def texts_of(functions: Sequence[llvm.Function]) -> dict[str, str]:
        """The texts of functions and of what they name, by name: defined where it is internal, else declared."""
        names = {each.name for each in functions}
        wanted, pending = {*names}, [*names]
        while pending:
            new = {*named[pending.pop()]} - wanted
            wanted |= new
            pending += [name for name in new if module.globals[name].linkage == "internal"]
        foreign = {each.name for each in exported} - names
        return {
            name: _declaration(module.globals[name]) if name in foreign else text
            for name, text in texts.items()
            if name in wanted
        }

    for functions in groups:
        definitions = texts_of(functions)
        calls = parts_called(each for each in module.functions if each.name in definitions)
        ir = "\n".join((*structs.values(), *definitions.values(), *map(str, module.metadata)))
        is_straight = not any(map(has_loops, functions))
        yield Module(ir, tuple(calls), not left or functions is others, is_straight)
    texts_run_once |= structs if run_once else {}
    for name, text in texts_of(run_once).items():
        if name not in texts_run_once or text.startswith("define"):
            texts_run_once[name] = text


def _instructions(functions: Sequence[llvm.Function]) -> int:
    return sum(len(block.instructions) for each in functions for block in each.blocks)


def _runs_once(function: llvm.Function) -> bool:
    """True for straight code that runs once for a launch, or for a call and computes sizes: with no floats, whose
    arithmetic LLVM's levels may write otherwise."""
    if primitives.LAUNCH in function.name.split("."):
        return bool(function.blocks)
    instructions = (each for block in function.blocks for each in block.instructions)
    return (
        function.name == "sizes"
        and not has_loops(function)
        and all(isinstance(each.type, SIZE_TYPES) and not each.metadata for each in instructions)
    )


SIZE_TYPES = (llvm.IntType, llvm.PointerType, llvm.VoidType)


def _declaration(function: llvm.Function) -> str:
    """The text that declares a function which a module defines."""
    blocks, function.blocks = function.blocks, []
    try:
        return str(function)
    finally:
        function.blocks = blocks


def _whole(module: llvm.Module, left: Sequence[str]) -> Module:
    """A module of all functions."""
    is_straight = not any(map(has_loops, module.functions))
    return Module(str(module), tuple(parts_called(module.functions)), not left, is_straight)


def _lower_function(
    module: llvm.Module,
    typing_context: KernelTyping,
    target_context: KernelTarget,
    function: Parsed,
    prototype: Prototype,
) -> None:
    kernel_ir = function.ir
    if kernel_ir.arg_count != len(prototype.args):
        raise CompileError(
            f"{prototype.name} takes {kernel_ir.arg_count} arguments; its prototype has {len(prototype.args)}"
        )
    arguments = tuple(map(primitives.numba_type, prototype.args))
    returns = primitives.numba_type(prototype.returns)
    typemap, calltypes = _infer_types(typing_context, target_context, kernel_ir, arguments, returns)
    description = FunctionDescriptor(
        native=True,
        modname="",
        qualname=prototype.name,
        unique_name=prototype.name,
        doc="",
        typemap=typemap,
        restype=returns,
        calltypes=calltypes,
        args=kernel_ir.arg_names,
        kws=(),
        mangler=partial(_plain_name, prototype.name),
        argtypes=arguments,
        noalias=True,
        global_dict=NO_GLOBALS,
    )
    with ConfigStack().enter(LoweringFlags()):
        KernelLowering(target_context, module, description, function).lower()


NO_GLOBALS = {"": None}
"""What numba takes for the names of a function's module."""


def _plain_name(name: str, mangled: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    return f".env.{name}" if mangled.startswith(".NumbaEnv") else name


def _infer_types(
    typing_context: KernelTyping,
    target_context: KernelTarget,
    kernel_ir: Any,
    arguments: tuple[types.Type, ...],
    returns: types.Type,
) -> tuple[Any, Any]:
    inference = Inference(typing_context, kernel_ir, _NoWarnings())
    with typing_context.callstack.register(target_context.target, inference, kernel_ir.func_id, arguments):
        for position, (name, type_) in enumerate(zip(kernel_ir.arg_names, arguments, strict=True)):
            inference.seed_argument(name, position, type_)
        inference.seed_return(returns)
        inference.build_constraint()
        inference.propagate()
        typemap, _, calltypes = inference.unify()
    return typemap, calltypes


class _NoWarnings:
    """Stands in for numba's collector of warnings: a kernel gives none worth showing."""

    def catch_warnings(self, filename: str | None = None, lineno: int | None = None) -> Any:
        return nullcontext()
