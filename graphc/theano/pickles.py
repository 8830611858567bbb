"""Theano's `misc.pkl_utils`: objects in a zip file, a pickle beside their arrays, each of which NumPy reads by itself.

In: anything that can be pickled, a binary file. Out: a zip file of `pkl` and one `.npy` for each array, or what one
had. `np.load(file)["w"]` is then the value of the shared variable named w.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from graphc.errors import GraphValueError
from graphc.ir.types import Scratchpad
from graphc.shared import SharedVariable

__all__ = [
    "CompatUnpickler", "PersistentNdarrayID", "PersistentNdarrayLoad", "PersistentSharedVariableID", "StripPickler",
    "dump", "load",
]  # fmt: skip

PICKLE = "pkl"
"""The name that the pickle has within the file."""


class PersistentNdarrayID:
    """For `Pickler.persistent_id`: writes each array into a zip file once, and gives the name it has there."""

    def __init__(self, zip_file: ZipFile) -> None:
        self.zip_file = zip_file
        self.count = 0
        self.seen: dict[int, tuple[str, Any]] = {}  # the array as well: its id is its own while it lives

    def name(self, array: Any) -> str:
        """The name of an array that was not met before."""
        self.count += 1
        return f"array_{self.count - 1}"

    def __call__(self, obj: Any) -> str | None:
        """The name of an array; None for what is pickled as it is."""
        if type(obj) is not np.ndarray or obj.dtype.hasobject:
            return None
        if id(obj) not in self.seen:
            name = self.name(obj)
            with self.zip_file.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, obj, allow_pickle=False)
            self.seen[id(obj)] = name, obj
        return f"ndarray.{self.seen[id(obj)][0]}"


class PersistentSharedVariableID(PersistentNdarrayID):
    """The same, where the value of a shared variable has its name; of two with one name the later has a number more.

    Raises GraphValueError for a variable without a name or with one that was there, unless it is allowed, and for one
    called "pkl".
    """

    def __init__(self, zip_file: ZipFile, allow_unnamed: bool = True, allow_duplicates: bool = True) -> None:
        super().__init__(zip_file)
        self.allow_unnamed, self.allow_duplicates = allow_unnamed, allow_duplicates
        self.names: dict[str, int] = {}
        self.variables: dict[int, SharedVariable] = {}
        self.following: str | None = None

    def name(self, array: Any) -> str:
        following, self.following = self.following, None
        return following or super().name(array)

    def __call__(self, obj: Any) -> str | None:
        if isinstance(obj, SharedVariable) and id(obj) not in self.variables:
            self.variables[id(obj)] = obj
            self.following = self._name_of(obj)  # the next array is its value
        return super().__call__(obj)

    def _name_of(self, variable: SharedVariable) -> str | None:
        name = variable.name
        if not name:
            if self.allow_unnamed:
                return None
            raise GraphValueError(f"dump: {variable} has no name")
        before = self.names.get(name, 0)
        if name == PICKLE or (before and not self.allow_duplicates):
            raise GraphValueError(f"dump: {name!r} is the name of something else in the file")
        self.names[name] = before + 1
        return f"{name}_{before + 1}" if before else name


class PersistentNdarrayLoad:
    """For `Unpickler.persistent_load`: reads an array of a zip file, once."""

    def __init__(self, zip_file: ZipFile) -> None:
        self.zip_file = zip_file
        self.cache: dict[str, Any] = {}

    def __call__(self, persid: str) -> Any:
        """The array of a name. Raises KeyError where the file has none."""
        name = persid.partition(".")[2]
        if name not in self.cache:
            with self.zip_file.open(f"{name}.npy") as file:
                self.cache[name] = np.lib.format.read_array(file, allow_pickle=False)
        return self.cache[name]


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, protocol: int, name_of: Callable[[Any], Any]) -> None:
        super().__init__(file, protocol)
        self.name_of = name_of

    def persistent_id(self, obj: Any) -> Any:
        return self.name_of(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, object_of: Callable[[str], Any]) -> None:
        super().__init__(file)
        self.object_of = object_of

    def persistent_load(self, pid: str) -> Any:
        return self.object_of(pid)


def dump(
    obj: Any,
    file_handler: Any,
    protocol: int = pickle.DEFAULT_PROTOCOL,
    persistent_id: Callable[[ZipFile], Callable[[Any], Any]] = PersistentSharedVariableID,
) -> None:
    """Write an object into a binary file, its arrays beside it: those of named shared variables under their names.

    >>> with open("model.zip", "wb") as file:
    ...     dump((w, b), file)
    """
    with ZipFile(file_handler, "w", ZIP_DEFLATED, allowZip64=True) as zip_file:
        text = BytesIO()
        _Pickler(text, protocol, persistent_id(zip_file)).dump(obj)
        zip_file.writestr(PICKLE, text.getvalue())


def load(f: Any, persistent_load: Callable[[ZipFile], Callable[[str], Any]] = PersistentNdarrayLoad) -> Any:
    """The object that `dump` has written into a binary file. As any pickle it may run code: load what you trust."""
    with ZipFile(f) as zip_file, zip_file.open(PICKLE) as text:
        return _Unpickler(text, persistent_load(zip_file)).load()


class StripPickler(pickle.Pickler):
    """A pickler that leaves out test values, and the tags of other names that are told."""

    def __init__(self, file: Any, protocol: int = 0, extra_tag_to_remove: str | None = None) -> None:
        super().__init__(file, protocol)
        self.left_out = {"test_value", extra_tag_to_remove}

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of tags: without those that are left out."""
        if not isinstance(obj, Scratchpad):
            return NotImplemented
        return type(obj), (), {name: value for name, value in vars(obj).items() if name not in self.left_out}


class CompatUnpickler(pickle.Unpickler):
    """An unpickler that reads Python 2's strings, which NumPy's arrays of that time have within."""

    def __init__(self, file: Any, **options: Any) -> None:
        super().__init__(file, **{"encoding": "latin1", **options})
