"""What is done to llvmlite's values behind its back, and that one file does it."""

from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

import graphc
from graphc.codegen.llvm.values import append_copy, array_elements, literal, loop_id, remove_global, set_attribute

INT, PAIR = ir.IntType(32), ir.VectorType(ir.IntType(32), 2)


@pytest.fixture
def function() -> ir.Function:
    module = ir.Module("these")
    return ir.Function(module, ir.FunctionType(PAIR, [INT, PAIR]), "these")


def check(function: ir.Function) -> str:
    """The module as LLVM reads it."""
    parsed = llvm.parse_assembly(str(function.module))
    parsed.verify()
    return str(parsed)


def test_a_literal_is_written_as_it_stands(function: ir.Function) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.add(function.args[1], literal(PAIR, "splat (i32 7)")))
    assert "splat (i32 7)" in check(function)


def test_any_attribute_may_be_set(function: ir.Function) -> None:
    with pytest.raises(ValueError, match="min-legal-vector-width"):
        function.attributes.add('"min-legal-vector-width"="256"')
    set_attribute(function, '"min-legal-vector-width"="256"')
    ir.IRBuilder(function.append_basic_block()).ret(function.args[1])
    assert '"min-legal-vector-width"="256"' in check(function)


def test_a_name_is_free_again(function: ir.Function) -> None:
    ir.IRBuilder(function.append_basic_block()).ret(function.args[1])
    variable = ir.GlobalVariable(function.module, ir.ArrayType(INT, 2), "words")
    variable.initializer = ir.Constant(variable.value_type, [INT(4), INT(5)])
    assert [element.constant for element in array_elements(variable)] == [4, 5]
    remove_global(function.module, "words")
    again = ir.GlobalVariable(function.module, INT, "words")
    again.initializer = INT(3)
    assert "@words = global i32 3" in check(function) and "[2 x i32]" not in check(function)


def test_an_instruction_is_copied_for_vectors(function: ir.Function) -> None:
    builder = ir.IRBuilder(function.append_basic_block())
    one = builder.mul(function.args[0], INT(3), name="one", flags=("nsw",))
    str(one)  # llvmlite keeps the text
    copied = append_copy(builder, one, PAIR, [function.args[1], function.args[1]])
    builder.ret(copied)
    text = check(function)
    assert re.search(r"%one = mul nsw i32 %", text) and re.search(r"mul nsw <2 x i32> %(\S+), %\1", text)
    assert one.operands[0] is function.args[0] and one.type == INT


def test_loops_have_identities(function: ir.Function) -> None:
    module = function.module
    ir.IRBuilder(function.append_basic_block()).branch(block := function.append_basic_block())
    builder = ir.IRBuilder(block)
    end = function.append_basic_block()
    branch = builder.cbranch(ir.IntType(1)(1), block, end)
    ir.IRBuilder(end).ret(function.args[1])
    ids = [loop_id(module, [module.add_metadata(["llvm.loop.unroll.disable"])]) for _ in range(2)]
    branch.set_metadata("llvm.loop", ids[0])
    assert ids[0].name != ids[1].name
    assert re.search(r"!(\d+) = distinct !{!\1, |!(\d+) = !{!\2, ", check(function))


def test_one_file_touches_them() -> None:
    internal = re.compile(r"_useset|_clear_string_cache|FormattedConstant|MDValue\(|set\.add\(|\.instructions\.append")
    package = Path(graphc.__file__ or "").parent
    found = {path.name for path in package.rglob("*.py") if internal.search(path.read_text("utf-8"))}
    assert found == {"values.py"}
