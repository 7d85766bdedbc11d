"""The standard library of the running interpreter: everything it documents, by the names its users write.

A name can be written in several ways: `json.loads` is defined in `json`, but `json.JSONDecoder` in `json.decoder`, and
`collections.abc.Mapping` in `_collections_abc`. A definition gets the name under which an enclosing package exports it;
one of a private module gets the name under which a public module exports it, and is left out if there is none.
"""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rankwell.demo.compiled_module import HARMLESS, compiled_definitions
from rankwell.demo.definitions import Definition, is_public
from rankwell.demo.module_source import ModuleSource, parse_module
from rankwell.errors import DataError

# Not the library's documentation: tests, installed packages, applications, and what is kept for old programs.
_LEFT_OUT = {
    *("__pycache__", "__phello__", "antigravity", "distutils", "ensurepip", "idlelib", "idle_test", "lib-dynload"),
    *("lib2to3", "pydoc_data", "site-packages", "dist-packages", "test", "tests", "this", "turtledemo"),
}
# Public by their names only: users write the other name, or the name of a module that exports theirs.
_OTHER_NAME = {"posixpath": "os.path", "_collections_abc": "collections.abc"}
_PRIVATE = {"genericpath", "ntpath", "nturl2path", "posix", "sre_compile", "sre_constants", "sre_parse"}
# An installation with fewer than this has no sources.
_FEWEST = 1000


@dataclass(frozen=True)
class Library:
    """What the library documents.

    Attributes
    ----------
    definitions : tuple of Definition
        Sorted by name, each name once.
    uses : Counter of str
        How often the library's own code uses each of them, outside the module that defines it.
    """

    definitions: tuple[Definition, ...]
    uses: Counter[str]


def read_library(folder: Path | None = None, compiled: Iterable[str] = HARMLESS) -> Library:
    """Read the sources below `folder` (the running interpreter's library) and inspect the `compiled` modules.

    Only the modules in `compiled` are imported; files that are not Python of this version are skipped.
    """
    folder = Path(sysconfig.get_paths()["stdlib"]) if folder is None else folder
    sources: dict[str, ModuleSource] = {}
    for source in _read_sources(folder):
        sources.setdefault(source.name, source)
    for name in compiled:
        sources.setdefault(name, ModuleSource(name, compiled_definitions(name)))
    aliases = _aliases(sources)
    definitions: dict[str, Definition] = {}
    for definition in _named_definitions(sources, aliases):
        definitions.setdefault(definition.name, definition)
    if folder == Path(sysconfig.get_paths()["stdlib"]) and len(definitions) < _FEWEST:
        raise DataError(
            f"{folder} contains only {len(definitions)} documented modules, classes and functions: this Python comes "
            "without the sources of its standard library. Use a Python that has them."
        )
    ordered = tuple(definitions[name] for name in sorted(definitions))
    return Library(ordered, _count_uses(sources.values(), aliases, definitions))


def _read_sources(folder: Path) -> Iterator[ModuleSource]:
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if any(part in _LEFT_OUT or part.startswith(("config-", "_sysconfigdata")) for part in parts):
            continue
        is_package = parts[-1] == "__init__"
        parts = parts[:-1] if is_package else parts
        if not parts or parts[-1] == "__main__" or not all(part.isidentifier() for part in parts):
            continue
        name = ".".join(parts)
        try:
            yield parse_module(path.read_bytes(), _OTHER_NAME.get(name, name), is_package)
        except (SyntaxError, ValueError):
            continue


def _is_private(module: str) -> bool:
    return module in _PRIVATE or not is_public(module)


def _aliases(sources: dict[str, ModuleSource]) -> dict[str, str]:
    """The name under which users know something, by the name where it is defined.

    Many modules import a name for their own use: that counts only where `__all__` does not leave it out, and less than
    an import of everything.
    """
    by_name: dict[str, str] = {}
    by_star: dict[str, str] = {}
    for exporter in sorted(sources.values(), key=lambda source: source.name):
        if _is_private(exporter.name):
            continue
        for origin, name, new_name in exporter.exports:
            source = sources.get(origin)
            if source is None or not (_is_private(origin) or origin.startswith(f"{exporter.name}.")):
                continue
            for definition in source.members():
                first = definition.local_name.partition(".")[0]
                if name == "*" and source.is_exported(first):
                    by_star[definition.name] = f"{exporter.name}.{definition.local_name}"
                elif name == first == new_name and exporter.is_exported(first):
                    by_name[definition.name] = f"{exporter.name}.{definition.local_name}"
    return by_name | by_star


def _named_definitions(sources: dict[str, ModuleSource], aliases: dict[str, str]) -> Iterator[Definition]:
    """Definitions under their users' names; those written in Python first, since they say more."""
    compiled = set(HARMLESS)
    for source in sorted(sources.values(), key=lambda source: (source.name in compiled, source.name)):
        for definition in source.definitions:
            known = aliases.get(definition.name)
            if known is not None:
                yield definition.exported_as(known.removesuffix(f".{definition.local_name}"))
            elif not _is_private(source.name):
                yield definition


def _count_uses(
    sources: Iterable[ModuleSource], aliases: dict[str, str], definitions: dict[str, Definition]
) -> Counter[str]:
    uses: Counter[str] = Counter()
    for source in sources:
        for used, count in source.uses.items():
            name = aliases.get(used, used)
            if name in definitions and definitions[name].module != source.name:
                uses[name] += count
    return uses
