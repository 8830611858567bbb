"""Pages of the reference that are no functions: options, environment, command line, errors, files.

In: the options, the parser of the command line, the classes of errors, docstrings. Out: pages by their names.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from book.docstrings import first_sentence, markdown
from graphc import cli, errors
from graphc.options import MODES, OPTIONS, PREFIX, TARGETS

ENVIRONMENT = {
    "THEANO_FLAGS": "settings as Theano reads them, `floatX=float32,mode=FAST_RUN`",
    "OMP_NUM_THREADS": 'the threads of a call where `threads` is "auto"; the threads of NumPy\'s BLAS as well',
    "XDG_CACHE_HOME": "the folder in which the folder `graphc` of the cache lies; `~/.cache` where it is not set",
    "CC": "the C compiler that links the libraries which `f.export` writes; `cc` where it is not set",
}
"""Environment variables besides those of the options."""


def pages() -> dict[str, str]:
    """Return the pages, by name."""
    return {
        "reference/options": options(),
        "reference/command_line": command_line(),
        "reference/errors": error_classes(),
        "reference/files": files(),
    }


def options() -> str:
    """The options with their defaults and environment variables."""
    rows = []
    for name, each in OPTIONS.items():
        value = "~/.cache/graphc" if name == "cache_dir" else each.default
        rows.append(f"| `{name}` | `{value!r}` | `{PREFIX}{name.upper()}` | {markdown(each.__doc__ or '')} |")
    others = "\n".join(f"| `{name}` | {said} |" for name, said in ENVIRONMENT.items())
    return f"""# Options and environment variables

Options are attributes of `graphc.options`. An environment variable sets an option for the whole process, an
assignment sets it from then on, and `graphc.options.change` sets it for a block:

```python
with graphc.options.change(mode="interpreted"):
    ...
```

A value that an option does not take is a `GraphcError`. `print(graphc.options)` and `graphc options` show all values.

| option | default | environment variable | meaning |
|---|---|---|---|
{chr(10).join(rows)}

`mode` is one of {listed(MODES)}. `target` is one of {listed(TARGETS)}.

## Other environment variables

| variable | meaning |
|---|---|
{others}
"""


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def command_line() -> str:
    """The help of each command."""
    parts = ["# Command line", "", "`graphc` is installed with the package; `python -m graphc` is the same.", ""]
    for parser in parsers(cli._parser()):
        title = parser.prog
        parts += [
            f"## {title}" if " " in title else "## All commands",
            "",
            "```text",
            parser.format_help().rstrip(),
            "```",
            "",
        ]
    return "\n".join(parts)


def parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += [each for child in action.choices.values() for each in parsers(child)]
    return found


def error_classes() -> str:
    """The classes of errors with their bases."""
    rows = []
    for name, each in sorted(vars(errors).items()):
        if isinstance(each, type) and issubclass(each, Exception | Warning) and each.__module__ == errors.__name__:
            bases = ", ".join(
                f"`{base.__name__}`" for base in each.__mro__[1:] if base not in (Exception, BaseException, object)
            )
            rows.append(f"| `{name}` | {bases} | {' '.join(markdown(inspect.getdoc(each) or '').split())} |")
    head = markdown(inspect.getdoc(errors) or "")
    return f"# Errors\n\n{head}\n\n| class | is also | raised where |\n|---|---|---|\n{chr(10).join(rows)}\n"


def files() -> str:
    """The formats of files, as the modules that write them say."""
    archive, store = import_module("graphc.functions.archive"), import_module("graphc.codegen.cache.store")
    adding = inspect.getdoc(import_module("graphc").cache.import_) or ""
    return f"""# Files

graphc writes these files. [Deployment](../docs/deploy.md) tells how they are used, and [the cache](../docs/cache.md)
what is kept in its folder.

## Saved functions

`f.save(path)`, `Sequential.save(path)` and others write one format.

{doc(archive, "The format:")}

## Entries of the cache

{doc(store, "Each entry is a folder")}

## Bundles

`graphc.cache.export(path)` writes a zip file of entries. `import_`: {first_sentence(adding)}

## C libraries

`f.export(path)` writes a folder with a header, an object, libraries, and files for pkg-config and CMake
([Deployment](../docs/deploy.md)).
"""


def doc(module: ModuleType, start: str) -> str:
    """A module's docstring from the words `start` on."""
    _, found, rest = (inspect.getdoc(module) or "").partition(start)
    return markdown(found + rest)
