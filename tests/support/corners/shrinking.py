"""A program that fails, made smaller: fewer results, and values in place of what they were computed from."""

from __future__ import annotations

from dataclasses import replace

from tests.support.corners.bounded import Array
from tests.support.corners.checks import Setting, Tally, failures
from tests.support.corners.programs import Program, pruned
from tests.support.corners.slopes import Case, case
from tests.support.corners.steps import leaf


def shrunk(program: Program, this: Case, setting: Setting) -> tuple[Program, Case, str]:
    """A smaller program that fails too: fewer results, and values in place of what they were computed from."""

    def fails(candidate: Program, arrays: list[Array]) -> tuple[Case, str] | None:
        try:
            attempt = case(candidate, arrays, this.seed)
            text = failures([candidate], [[attempt]], setting, Tally())[0]
        except Exception:
            return None
        return (attempt, text) if text else None

    first = fails(program, this.arrays)
    if first is None:
        return program, this, ""
    best, text = first
    for _ in range(40):
        for candidate, arrays in _smaller(program, best):
            outcome = fails(candidate, arrays)
            if outcome is not None:
                program, (best, text) = candidate, outcome
                break
        else:
            break
    return program, best, text


def _smaller(program: Program, this: Case) -> list[tuple[Program, list[Array]]]:
    arrays = dict(zip(program.leaves, this.arrays, strict=True))

    def of(candidate: Program, cut: int | None = None) -> tuple[Program, list[Array]]:
        values = list(candidate.values)
        have = dict(arrays)
        if cut is not None:
            step = values[cut]
            have[cut] = this.values[cut].num
            sizes = tuple(size if isinstance(size, int) else f"s{cut}_{k}" for k, size in enumerate(step.sizes))
            values[cut] = leaf(step.dtype, sizes)
        marked = replace(candidate, values=tuple(values))
        wanted = _needed(marked)
        return pruned(marked), [have[k] for k in sorted(have) if k in wanted and marked.values[k].kind]

    found = []
    if program.updates:
        found.append(of(replace(program, updates=())))
    if program.order:
        found.append(of(replace(program, order=program.order - 1)))
    found += [of(replace(program, outputs=(k,), updates=())) for k in program.outputs if len(program.outputs) > 1]
    if this.values:
        found += [of(replace(program, outputs=(k,), updates=())) for k, step in enumerate(program.values)
                  if not step.kind and program.outputs != (k,) and (step.is_float or not program.order)]  # fmt: skip
        found += [of(program, cut=k) for k in range(len(program.values) - 1, -1, -1)
                  if not program.values[k].kind and k not in program.outputs]  # fmt: skip
    return found


def _needed(program: Program) -> set[int]:
    wanted = {*program.outputs, *(place for pair in program.updates for place in pair)}
    for place in range(len(program.values) - 1, -1, -1):
        if place in wanted:
            wanted |= set(program.values[place].operands)
    return wanted
