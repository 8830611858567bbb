"""The vectoriser, as text before and after, in `cases.txt`.

A case begins with `== what it shows`; then comes a loop over arrays of float64, x, y and z, and after `--` what stands
in its place but for the guard: LLVM IR, with names counted, no types but the lengths of vectors. Loops that stay as
they are begin with `== kept:`. `GRAPHC_UPDATE=1 pytest tests/codegen/vectorize/test_cases.py` writes what comes after
anew: read the difference before you commit it. Both forms are run for each trip count, on whole numbers, and leave the
same.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.frontend.lowering import lower_source
from graphc.codegen.llvm.module import Prototype
from graphc.options import options
from tests.support.vector_loops import MOST, Compiled, on_processor, same_bits

FILE = Path(__file__).parent / "cases.txt"
POINTERS = ("x", "y", "z")
PROTOTYPE = Prototype("f", (*["float64*"] * len(POINTERS), "int64"))
WITHOUT = "without masks"


def read_cases() -> dict[str, tuple[str, str]]:
    """The loops, and what stands in their place."""
    cases = {}
    for part in re.split("^== ", FILE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        before, _, after = rest.partition("\n--\n")
        cases[title] = before.strip("\n"), after.strip("\n")
    return cases


CASES = read_cases()


def source_of(text: str) -> str:
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return f"def f({', '.join(POINTERS)}, n):\n{body}    return 0\n"


def printed(module: str) -> str:
    """The blocks that the vectoriser has written, in few words."""
    lines: list[str] = []
    numbers: dict[str, str] = {}
    is_new = False
    bounds: Iterator[str] = iter(())
    for line in module.splitlines():
        text = line.replace('"', "").split(", !llvm.loop")[0]
        if label := re.fullmatch(r"([\w.$]+):", text):
            is_guard = label[1].endswith(".guard")
            is_new = bool(re.fullmatch(r"B\d+\.[a-z_.]+", label[1])) and not is_guard
            lines += [f"{short(label[1])}:"] if is_new else []
            bounds = iter(("%start", "%stop")) if is_guard else bounds
        elif text.startswith("}"):
            is_new = False
        elif not is_new and (bound := re.search(r"(%\.\d+) = load i64,", text)):
            numbers[bound[1]] = next(bounds, "")
        elif is_new and text.strip():
            lines.append("    " + instruction(text.strip(), numbers))
    return "\n".join(lines)


def short(label: str) -> str:
    """The name of a block without that of the loop's body; `exit` where it was there before."""
    return re.sub(r"^B\d+\.", "", label) if "." in label else "exit"


def instruction(text: str, numbers: dict[str, str]) -> str:
    text = re.sub(r"%(B\d+[\w.]*)", lambda found: short(found[1]), text)
    text = re.sub(r"<(i\d+ \d+(?:, i\d+ \d+)+)>", in_short, text)
    text = re.sub(r"<(\d+) x (?:i\d+|double|float|ptr)>", r"<\1>", text)
    text = re.sub(r", align \d+|\blabel |\b(?:i\d+|double|float|ptr|void)\b,? ?", "", text)
    text = re.sub(r"0x([0-9a-f]{16})", lambda found: repr(struct.unpack(">d", bytes.fromhex(found[1]))[0]), text)
    text = re.sub(r"%\.\d+(?:\.\d+)?", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), text)
    text = re.sub(r"%\$\w+(\.\d+)?", "%counter", re.sub(r"(%\w+)\.\d+", r"\1", text))
    text = re.sub(r"\*,? ?|\{[^{}]*\}(?:, )?", "", text)
    return re.sub(r"\( ", "(", re.sub(r" +", " ", text)).strip()


def in_short(found: re.Match[str]) -> str:
    elements = [int(each.split()[1]) for each in found[1].split(", ")]
    return f"{elements[0]}..{elements[-1]}" if elements[0] != elements[-1] else f"all {elements[0]}"


@pytest.fixture(autouse=True)
def inline() -> Iterator[None]:
    with options.change(compile="inline"):
        yield


@pytest.mark.parametrize("title", CASES)
def test_a_loop(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CASES[title]
    source = source_of(before)
    on_processor(WITHOUT not in title, monkeypatch)
    text = printed(lower_source(source, [PROTOTYPE], {}, False).ir)
    assert (not text) == title.startswith("kept: ")
    if not os.environ.get("GRAPHC_UPDATE"):
        assert text == after
    written, plain = (Compiled(source, [PROTOTYPE], scalar) for scalar in (False, True))
    rng = np.random.default_rng(len(title))
    given = {name: rng.integers(0, 9, 13 * MOST + 16).astype("float64") for name in POINTERS}
    for n in range(MOST + 1):
        got, wanted = ({name: array.copy() for name, array in given.items()} for _ in range(2))
        written.call("f", got, n)
        plain.call("f", wanted, n)
        for name in POINTERS:
            assert same_bits(got[name], wanted[name]), f"{name} of {n} iterations"


@pytest.mark.skipif(not os.environ.get("GRAPHC_UPDATE"), reason="writes the file")
def test_update(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for title, (before, _) in CASES.items():
        with monkeypatch.context() as patch:
            on_processor(WITHOUT not in title, patch)
            after = printed(lower_source(source_of(before), [PROTOTYPE], {}, False).ir)
        lines += [f"== {title}", before, *(["--", after] if after else []), ""]
    FILE.write_text("\n".join(lines), "utf-8")
