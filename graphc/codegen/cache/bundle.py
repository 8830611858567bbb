"""Bundles of cache entries: a zip file with the files of each entry under its key.

In: the path of a zip file. Out: such a file, or entries in the user's folder. Imported where it is asked for: a warm
start needs no zip files.
"""

from __future__ import annotations

import os
import zipfile

from graphc.codegen.cache import files, store
from graphc.errors import GraphcError
from graphc.options import options


def write_bundle(path: str | os.PathLike[str]) -> int:
    """What `store.export` does."""
    exported = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for entry in sorted(store.entries(options.cache_dir)):
            try:
                contents = store.read_files(entry)
            except (FileNotFoundError, files.Untrusted):
                continue  # another process has just removed it, or somebody else could have written it
            for name, content in contents.items():
                bundle.writestr(f"{os.path.basename(entry)}/{name}", content)
            exported += 1
    return exported


def read_bundle(path: str | os.PathLike[str]) -> int:
    """What `store.import_` does."""
    added = 0
    root = options.cache_dir
    files.make_folder(root)
    problem = files.objection_to(root)
    if problem:
        raise GraphcError(f"nothing is imported: {root} {problem}")
    try:
        with zipfile.ZipFile(path) as bundle:
            for digest in sorted({name.partition("/")[0] for name in bundle.namelist()}):
                place = store.place_of(root, digest)
                if not store.is_key(digest):
                    raise GraphcError(f"{path} is not a bundle of cache entries: it holds {digest!r}")
                if not os.path.exists(place):
                    store.write(root, digest, {name: bundle.read(f"{digest}/{name}") for name in store.FILES})
                    store.verify(place, digest)
                    added += 1
    except (zipfile.BadZipFile, KeyError, files.Damaged) as error:
        raise GraphcError(f"{path} is not a bundle of cache entries: {error}") from error
    return added
