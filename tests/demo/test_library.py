"""The library's documentation: read without running it, under the names its users write."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rankwell.demo.compiled_module import HARMLESS, compiled_definitions
from rankwell.demo.definitions import Definition
from rankwell.demo.library import Library, read_library
from rankwell.demo.module_source import parse_module

ARCHIVE = '''"""Read and write archives."""
raise RuntimeError("this module was run")
import os
from archive._format import header, hidden
from archive.parts import *
__all__ = ["header"]

class Archive:
    """An archive of files."""
    def __init__(self, path, mode="r"):
        """Open an archive."""
        os.path.join(path, mode)
        os.path.join(path, mode)
    def add(self, name: str, *, level: int = 3) -> None:
        """Add a file."""
    @staticmethod
    def is_archive(path):
        """Whether it is one."""
    @property
    def size(self):
        """Bytes."""
    def undocumented(self): ...
    def _private(self):
        """Not for users."""

if True:
    def walk(top, /, *rest, **more):
        """Visit everything."""
else:
    def walk(other):
        """The other one."""
'''
FORMAT = '''
def header():
    """What a file starts with."""
def hidden():
    """Imported, but not listed."""
def unused():
    """Not exported."""
'''
PARTS = '''"""Parts of archives."""
__all__ = ("Part",)
class Part:
    """One part."""
    def read(self):
        """Read it."""
class Other:
    """Not listed."""
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "archive"
    package.mkdir()
    (package / "__init__.py").write_text(ARCHIVE)
    (package / "_format.py").write_text(FORMAT)
    (package / "parts.py").write_text(PARTS)
    (package / "broken.py").write_text("def (:")
    (package / "tests").mkdir()
    (package / "tests" / "test_archive.py").write_text('"""A test."""')
    (tmp_path / "os.py").write_text('"""The system."""\nimport posixpath as path\n')
    (tmp_path / "posixpath.py").write_text('"""Paths."""\ndef join(a, *p):\n    """Join parts."""\n')
    return tmp_path


def names(library: Library) -> list[str]:
    return [definition.name for definition in library.definitions]


def named(library: Library, name: str) -> Definition:
    return next(definition for definition in library.definitions if definition.name == name)


def test_names_are_those_that_users_write(folder: Path) -> None:
    assert names(read_library(folder, compiled=())) == [
        "archive",
        "archive.Archive",
        "archive.Archive.add",
        "archive.Archive.is_archive",
        "archive.Archive.size",
        "archive.Part",  # defined in archive.parts, exported by the package with a star
        "archive.Part.read",
        "archive.header",  # defined in the private archive._format
        "archive.parts",
        "archive.parts.Other",  # the star leaves it out, so it stays where it is
        "archive.walk",
        "os",
        "os.path",
        "os.path.join",
    ]


def test_what_a_definition_says(folder: Path) -> None:
    library = read_library(folder, compiled=())
    archive = named(library, "archive.Archive")
    assert archive.docstring == "An archive of files.\n\nOpen an archive."
    assert (archive.kind, archive.signature, archive.n_parameters) == ("class", "(path, mode='r')", 2)
    add = named(library, "archive.Archive.add")
    assert (add.kind, add.signature, add.n_parameters) == ("function", "(name, *, level=3)", 2)
    assert (add.module, add.local_name, add.parent) == ("archive", "Archive.add", "archive.Archive")
    assert named(library, "archive.Archive.is_archive").signature == "(path)"
    assert named(library, "archive.Archive.size").signature == ""
    walk = named(library, "archive.walk")
    assert (walk.docstring, walk.signature, walk.n_parameters) == ("Visit everything.", "(top, /, *rest, **more)", 3)
    assert named(library, "archive").local_name == "archive"


def test_uses_are_counted_in_other_modules_only(folder: Path) -> None:
    uses = read_library(folder, compiled=()).uses
    assert uses["os.path.join"] == 2
    # `import os`, and twice in each of `os`, `os.path`, `os.path.join`.
    assert (uses["os"], uses["os.path"]) == (3, 2)
    assert uses["archive.header"] == 0


def test_nothing_is_imported(folder: Path) -> None:
    before = set(sys.modules)
    read_library(folder, compiled=())
    assert "archive" not in sys.modules
    assert set(sys.modules) == before


def test_relative_imports_are_resolved() -> None:
    text = b"from . import a\nfrom .b import c as d\nfrom .. import e\n"
    assert parse_module(text, "one.two", is_package=True).exports == [
        ("one.two", "a", "a"),
        ("one.two.b", "c", "d"),
        ("one", "e", "e"),
    ]
    assert parse_module(text, "one.two", is_package=False).exports[1] == ("one.b", "c", "d")


def test_modules_without_text_are_asked() -> None:
    by_name = {definition.name: definition for definition in compiled_definitions("math")}
    assert by_name["math"].kind == "module"
    assert "square root" in by_name["math.sqrt"].docstring
    assert (by_name["math.sqrt"].signature, by_name["math.sqrt"].n_parameters) == ("(x, /)", 1)
    split = next(d for d in compiled_definitions("builtins") if d.name == "builtins.str.split")
    assert (split.signature, split.n_parameters) == ("(sep=None, maxsplit=-1)", 2)
    assert compiled_definitions("no_such_module") == []


def test_the_installed_library_is_there(installed: Library) -> None:
    found = set(names(installed))
    assert len(found) > 3000
    # Defined in C, in private modules, in packages' parts, under another name: all where a user looks for them.
    assert found >= {
        *("asyncio.run", "builtins.str.split", "collections.abc.Mapping", "collections.deque", "decimal.Decimal"),
        *("io.open", "itertools.chain", "json.JSONDecoder", "math.sqrt", "os.mkdir", "os.path.join", "struct.pack"),
        *("time.sleep", "tomllib.loads", "unittest.TestCase", "zipfile", "zipfile.ZipFile", "zipfile.ZipFile.open"),
    }
    assert not any(name.startswith(("test.", "idlelib", "_")) or "._" in name for name in found)
    assert all(definition.docstring.strip() for definition in installed.definitions)
    assert installed.uses["os.path.join"] > 50


def test_a_second_reading_finds_the_same(installed: Library) -> None:
    assert read_library() == installed


def test_the_harmless_modules_have_no_source(installed: Library) -> None:
    import importlib

    for name in HARMLESS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        assert not (getattr(module, "__file__", None) or "").endswith(".py"), name
