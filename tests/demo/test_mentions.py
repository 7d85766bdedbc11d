"""Which words are names, and how names are resolved in their context."""

from __future__ import annotations

import pytest

from rankwell.demo.definitions import Definition
from rankwell.demo.mentions import NameTable, mentions


def defined(name: str, module: str) -> Definition:
    return Definition(name, module, "function", "...")


PLACE = defined("zipfile.ZipFile.open", "zipfile")
TABLE = NameTable(
    [
        PLACE,
        defined("zipfile.ZipFile.close", "zipfile"),
        defined("zipfile.close", "zipfile"),
        defined("zipfile.is_zipfile", "zipfile"),
        defined("os.path.join", "os.path"),
        defined("builtins.print", "builtins"),
        defined("gzip.GzipFile", "gzip"),
        defined("hmac.new", "hmac"),
        defined("shutil.copy_file", "shutil"),
        defined("dbm.copy_file", "dbm"),
    ]
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("See close().", "zipfile.ZipFile.close"),  # the class's before the module's
        ("Ask is_zipfile first.", "zipfile.is_zipfile"),  # an underscore inside
        ("Use os.path.join for it.", "os.path.join"),
        ("It is `print`ed.", "builtins.print"),
        ("A GzipFile is another.", "gzip.GzipFile"),  # capitals inside, the only one of that name
        ("Please close the door.", None),  # a plain word
        ("Some print() it twice: print().", "builtins.print"),  # counted once a sentence
        ("Set it to 'new'.", None),  # quoted, but nothing of that name is here
        ("Either copy_file could be meant.", None),  # two of that name
        ("See open() itself.", None),  # its own name
        ("see zos.path.join or os.path.joined", None),  # parts of other words
    ],
)
def test_what_is_mentioned(sentence: str, expected: str | None) -> None:
    assert [name for name, _ in mentions(sentence, PLACE, TABLE)] == ([] if expected is None else [expected])


def test_the_words_around_are_the_anchor_text() -> None:
    before, after = [f"b{i}" for i in range(12)], [f"a{i}" for i in range(12)]
    sentence = " ".join([*before, "is_zipfile", *after])
    [(_, around)] = mentions(sentence, PLACE, TABLE)
    assert around == " ".join([*before[-8:], "is_zipfile", *after[:8]])
