"""Checkpoints: files that stay whole when the process is killed while writing.

In: arrays by name, and data for json. Out: a file in NumPy's format npz. It is written beside its place, flushed to the
disk, and then renamed, so that a reader finds the last or the previous file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphc.errors import GraphValueError

SAID = "said"
"""The name of the json text in the file."""


def save(path: str | Path, arrays: Mapping[str, Any], said: Any = None) -> None:
    """Write a file that `load` reads. arrays: {name: array}. said: data that json can write. If the process is killed
    meanwhile, the old file stays."""
    place = Path(path)
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    _clear(place)
    try:
        with beside.open("wb") as file:
            held: dict[str, Any] = {f"of {name}": array for name, array in arrays.items()}
            held[SAID] = np.array(json.dumps(said))
            np.savez(file, **held)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, is to be on the disk
    finally:
        os.close(folder)


def _clear(place: Path) -> None:
    """Remove unfinished files of processes that were killed."""
    prefix = f".{place.name}."
    for left in place.parent.iterdir():
        number = left.name.removeprefix(prefix)
        if left.name != number and number.isdecimal():
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)
            except OSError:  # it is another user's
                continue


def load(path: str | Path) -> tuple[dict[str, Any], Any]:
    """Return the arrays and the json data of a checkpoint. Raises GraphValueError for another file, OSError where there
    is none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name.removeprefix("of "): file[name] for name in file.files if name != SAID}
            return arrays, json.loads(str(file[SAID]))
    except (ValueError, KeyError, EOFError) as error:
        raise GraphValueError(f"{path} is no checkpoint: {error}") from None
