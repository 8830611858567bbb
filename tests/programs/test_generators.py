"""A random program is a function of its seed: not of the day, or of the hashes of a process."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphc.ir.node import NODES, Node
from graphc.ir.text import print_graph
from graphc.ir.walk import Graph
from graphc.loopir.syntax import print_function
from tests.support import plain_programs, random_blocks, random_loops, random_scans, sparse_programs, wide_programs
from tests.support.blends import running as blends
from tests.support.corners import programs as corners
from tests.support.unrolled_programs import random_steps

ROOT = Path(__file__).parents[2]


def printed(inputs: Any, outputs: Any) -> str:
    return print_graph(Graph(tuple(inputs), tuple(outputs)))


def wide(seed: int) -> str:
    program = wide_programs.random_program(seed)
    return printed([leaf for leaf, _ in (*program.inputs, *program.shared)], program.outputs)


def blocks(seed: int) -> str:
    program = random_blocks.Program(seed)
    leaves = [*program.inputs, *(leaf for leaf, _ in program.updates)]
    return printed(dict.fromkeys(leaves), [*program.outputs, *(new for _, new in program.updates)])


GENERATORS: dict[str, Callable[[int], str]] = {
    "blends": lambda seed: blends.described(blends.random_program(f"seed:{seed}")),
    "blocks": blocks,
    "corners": lambda seed: str(corners.random_program(f"seed:{seed}")),
    "loops": lambda seed: print_function(random_loops.random_loops(seed)),
    "plain": lambda seed: plain_programs.program(random.Random(seed)),
    "scans": lambda seed: repr(random_scans.program_of(seed)),
    "sparse": lambda seed: repr(sparse_programs.random_program(seed)),
    "steps": lambda seed: printed(*random_steps(seed, 5)),
    "wide": wide,
}


def digests() -> str:
    """A line for some programs of each generator."""
    texts = (f"{name} {seed} {make(seed)}" for name, make in GENERATORS.items() for seed in range(3))
    return "\n".join(hashlib.sha256(text.encode()).hexdigest() for text in texts)


def digests_in(hash_seed: str) -> str:
    """The digests as a new process finds them: nodes that earlier tests made are not there."""
    code = "from tests.programs.test_generators import digests\nprint(digests())"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_programs_are_the_same_in_every_process() -> None:
    assert digests_in("7") == digests_in("8")


@pytest.mark.slow
def test_programs_do_not_depend_on_nodes_that_are_alive() -> None:
    """Equal nodes are one object: those that earlier tests hold are not told from those that a program makes."""
    first = digests()
    alive: list[Node] = []
    before = NODES.watch(alive.append)
    try:
        digests()
    finally:
        NODES.watch(before)
    assert alive and digests() == first
