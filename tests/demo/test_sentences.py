from __future__ import annotations

import pytest

from rankwell.demo.sentences import meaningful_words, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One line", ["One line"]),
        ("Open a file.  Return it.", ["Open a file.", "Return it."]),
        ("Open a file\nand return it.\n\nMore\ntext", ["Open a file and return it.", "More text"]),
        ("Like e.g. Perl, i.e. Larry's.", ["Like e.g. Perl, i.e. Larry's."]),
        ("Version 3.11 of os.path is new. `x` is old!", ["Version 3.11 of os.path is new.", "`x` is old!"]),
        ("It is 'quoted.' Then more (a lot.) End?", ["It is 'quoted.'", "Then more (a lot.)", "End?"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_meaningful_words() -> None:
    assert meaningful_words("Copy the file_name of a file, copy it to 2 places via utf8.") == [
        *("copy", "file", "name", "places", "via")
    ]
