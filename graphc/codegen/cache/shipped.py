"""The code of parts that comes with graphc: files beside its sources, one for each target.

In: the name of a part (pipeline/runtime.py). Out: its code, or None where no file has it. A file is of use
only with the sources that it was made by, so it is never stale: after a change of any source, parts are compiled again.

    shipped_part("gc_exp_f64")        machine code, from the file that this processor takes
    write(place, {"gc_exp_f64": code})

`python -m release.parts` writes the files; `make` calls it for this machine, a release for all targets. A first line
has the checksum and length of the table that follows, which has the place and the checksum of each part behind it.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Mapping
from typing import Any

from graphc.codegen.cache import files
from graphc.codegen.cache.key import fingerprint, fingerprint_parts
from graphc.codegen.cache.store import MARSHAL_VERSION
from graphc.codegen.llvm.cpu import equivalent
from graphc.ir.source_lines import PACKAGE
from graphc.options import NATIVE, options
from graphc.startup.process import PROCESS
from graphc.startup.versions import digest_of

FOLDER = os.path.join(PACKAGE, "codegen", "parts")
LONGEST_LINE = 200

Table = Mapping[str, Any]
"""sources: the digest of graphc's sources; system; target; parts: of each name the place, length and checksum; start:
where the first part begins."""


def shipped_target() -> str:
    """Return the named target whose parts this process takes: that of the options, or for "native" the one that
    computes the same bits; "" for none."""
    if PROCESS.triple or options.poison != "off":
        return ""
    return equivalent() if options.target == NATIVE else options.target


def place_of(target: str) -> str:
    """Return the path of the file for a target."""
    return os.path.join(FOLDER, target)


def identity_of(target: str) -> dict[str, str]:
    """Return what decides whether a file for a target fits: it must agree in all of it."""
    parts = fingerprint_parts(fingerprint(target))
    return {"sources": parts["graphc"], "system": parts["system"], "target": target}


def shipped_part(name: str) -> bytes | None:
    """Return the code of a part from the file for this process, None where there is none."""
    if not has_part(name):
        return None
    table = _table(shipped_target())
    place, (start, length, checksum) = place_of(table["target"]), table["parts"][name]
    try:
        with open(place, "rb", buffering=0) as file:
            file.seek(table["start"] + start)
            code = file.read(length)
    except OSError:
        return None
    if digest_of(code) != checksum:
        _warn(place, "a checksum is wrong")
        return None
    return code


def has_part(name: str) -> bool:
    """True where the file for this process has a part."""
    return name in _table(shipped_target()).get("parts", ())


def describe() -> str:
    """Return which parts this process takes from files, in a few words."""
    target = shipped_target()
    number = len(_table(target).get("parts", ()))
    return f"{number} compiled before, for {target}" if number else "none compiled before"


def _table(target: str) -> Table:
    """The table of the file for a target, read once; empty where the file is missing or of no use."""
    if target not in PROCESS.shipped:
        PROCESS.shipped[target] = read_table(target) if target else {}
    table: Table = PROCESS.shipped[target]
    return table


def read_table(target: str) -> Table:
    """Return the table of the file for a target; empty where there is no file, or it does not fit. Warns of a damaged
    one."""
    place = place_of(target)
    try:
        with open(place, "rb") as file:
            checksum, _, length = file.readline(LONGEST_LINE).partition(b" ")
            content = file.read(int(length))
            start = file.tell()
    except OSError:
        return {}
    except ValueError:
        return _warn(place, "its first line is wrong")
    if digest_of(content).encode() != checksum:
        return _warn(place, "the checksum of its table is wrong")
    table = {**marshal.loads(content), "start": start}
    return table if table.items() >= identity_of(target).items() else {}


def write(place: str, target: str, parts: Mapping[str, bytes]) -> None:
    """Write the file of these parts for a target. Raises OSError."""
    places, start = {}, 0
    for name, code in parts.items():
        places[name] = (start, len(code), digest_of(code))
        start += len(code)
    content = marshal.dumps({**identity_of(target), "parts": places}, MARSHAL_VERSION)
    first = b"%s %d\n" % (digest_of(content).encode(), len(content))
    os.makedirs(os.path.dirname(place), exist_ok=True)
    files.replace(place, first, content, *parts.values(), mode=files.PUBLIC)


def _warn(place: str, problem: str) -> Table:
    files.warn_once(place, f"{place} is damaged ({problem})", "parts that came with graphc are compiled again")
    return {}
